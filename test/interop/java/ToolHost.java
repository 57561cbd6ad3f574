import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs the main methods of Kafka's command line tools, one after the other, in one Java machine: to start one for each call takes
 * most of a second of a core. What is asked comes on the standard input, what came of it goes to the standard output:
 *
 *   call    string class name | int32 count | that many strings, arguments | string standard input
 *   result  int32 exit code | string standard output | string standard error
 *
 * A string is int32 length and UTF-8. A tool that would end the process ends its call instead, and what it
 * left to do then is done.
 */
public class ToolHost {
  /** Thrown where a tool would end the process. Tools that catch and print all print nothing of it. */
  private static final class Ended extends Error {
    private Ended() {
      super("", null, false, false);
    }

    @Override
    public String toString() {
      return "";
    }
  }

  /** Writes to whoever calls at present; loggers hold on to the stream that they see first. */
  private static final class Switch extends OutputStream {
    private volatile ByteArrayOutputStream target = new ByteArrayOutputStream();

    @Override
    public void write(int b) {
      target.write(b);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) {
      target.write(bytes, offset, length);
    }
  }

  public static void main(String[] args) throws Exception {
    DataInputStream calls = new DataInputStream(new BufferedInputStream(System.in));
    DataOutputStream results = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
    Switch out = new Switch();
    Switch err = new Switch();
    System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
    System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
    Integer[] exitCode = new Integer[1];
    Exit.Procedure end = (code, message) -> {
      if (exitCode[0] == null) exitCode[0] = code;
      throw new Ended();
    };
    Exit.setExitProcedure(end);
    Exit.setHaltProcedure(end);
    List<Runnable> hooks = new ArrayList<>();
    Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
    for (;;) {
      String name;
      try {
        name = readString(calls);
      } catch (EOFException noMore) {
        Runtime.getRuntime().halt(0);
        return;
      }
      String[] arguments = new String[calls.readInt()];
      for (int i = 0; i < arguments.length; i++) arguments[i] = readString(calls);
      System.setIn(new ByteArrayInputStream(readString(calls).getBytes(StandardCharsets.UTF_8)));
      out.target = new ByteArrayOutputStream();
      err.target = new ByteArrayOutputStream();
      exitCode[0] = null;
      try {
        Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
      } catch (ReflectiveOperationException thrown) {
        Throwable cause = thrown instanceof InvocationTargetException ? thrown.getCause() : thrown;
        if (!(cause instanceof Ended)) {
          cause.printStackTrace();
          if (exitCode[0] == null) exitCode[0] = 1;
        }
      }
      for (Runnable hook : hooks) hook.run();
      hooks.clear();
      System.out.flush();
      System.err.flush();
      results.writeInt(exitCode[0] == null ? 0 : exitCode[0]);
      writeString(results, out.target.toByteArray());
      writeString(results, err.target.toByteArray());
      results.flush();
    }
  }

  private static String readString(DataInputStream in) throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static void writeString(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes.length);
    out.write(bytes);
  }
}
