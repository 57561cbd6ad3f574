import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Answers what Kafka's generated classes make of messages. Cases come on the standard input, answers go to the standard
 * output in their order:
 *
 *   case    int8 kind | int16 length, class name | int16 version | int32 length, content
 *   answer  int32 length, bytes; or -1, int32 length, the text of the exception
 *
 * Kind 0: content is an encoded message, which is decoded and encoded again. Kind 1: content is the message as JSON, which is encoded.
 */
public class CodecJudge {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, Class<?>> CLASSES = new HashMap<>();

  public static void main(String[] args) throws Exception {
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
    DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
    for (;;) {
      byte kind;
      try {
        kind = in.readByte();
      } catch (EOFException end) {
        out.flush();
        return;
      }
      String name = new String(in.readNBytes(in.readShort()), StandardCharsets.UTF_8);
      short version = in.readShort();
      byte[] content = in.readNBytes(in.readInt());
      try {
        byte[] answer = encode(kind == 0 ? decode(name, version, content) : fromJson(name, version, content), version);
        out.writeInt(answer.length);
        out.write(answer);
      } catch (Throwable fault) {
        Throwable cause = fault instanceof InvocationTargetException ? fault.getCause() : fault;
        byte[] text = cause.toString().getBytes(StandardCharsets.UTF_8);
        out.writeInt(-1);
        out.writeInt(text.length);
        out.write(text);
      }
    }
  }

  private static Message decode(String name, short version, byte[] content) throws Exception {
    Message message = (Message) classNamed(name).getDeclaredConstructor().newInstance();
    ByteBuffer buffer = ByteBuffer.wrap(content);
    message.read(new ByteBufferAccessor(buffer), version);
    if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes are left");
    return message;
  }

  private static Message fromJson(String name, short version, byte[] content) throws Exception {
    Class<?> converter = classNamed(name + "JsonConverter");
    return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, JSON.readTree(content), version);
  }

  private static byte[] encode(Message message, short version) {
    ObjectSerializationCache cache = new ObjectSerializationCache();
    ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
    message.write(new ByteBufferAccessor(buffer), cache, version);
    if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes fewer than counted");
    return buffer.array();
  }

  private static Class<?> classNamed(String name) throws ClassNotFoundException {
    Class<?> known = CLASSES.get(name);
    if (known == null) CLASSES.put(name, known = Class.forName(name));
    return known;
  }
}
