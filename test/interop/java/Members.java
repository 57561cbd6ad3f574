import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Many Java consumers in one process. Commands come as lines on the standard input:
 *
 *   start NAME TOPIC KEY=VALUE...   a consumer with these settings, subscribed to the topic
 *   stop NAME                       closes it: it commits, and leaves its group unless it is a static member
 *   rejoin NAME REASON              has it join its group again
 *
 * What happens to them goes to the standard output, one line each in the order in which it happened:
 *
 *   NAME assigned GENERATION PARTITION...
 *   NAME revoked PARTITION...      NAME lost PARTITION...
 *   NAME record PARTITION OFFSET
 *   NAME stopped                   NAME failed EXCEPTION
 */
public class Members {
  private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();
  private static final PrintStream EVENTS = System.out;

  public static void main(String[] args) throws Exception {
    System.setOut(System.err); // what loggers say is no event
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = commands.readLine()) != null; ) {
      String[] words = line.split(" ");
      switch (words[0]) {
        case "start" -> {
          Properties settings = new Properties();
          for (String setting : List.of(words).subList(3, words.length)) {
            int equals = setting.indexOf('=');
            settings.put(setting.substring(0, equals), setting.substring(equals + 1));
          }
          Member member = new Member(words[1], words[2], settings);
          MEMBERS.put(words[1], member);
          member.start();
        }
        case "stop" -> MEMBERS.remove(words[1]).isWanted = false;
        case "rejoin" -> MEMBERS.get(words[1]).rejoinReason.set(line.substring("rejoin ".length() + words[1].length() + 1));
        default -> throw new IllegalArgumentException(line);
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private static synchronized void say(String name, String what) {
    EVENTS.println(name + " " + what);
  }

  private static final class Member extends Thread implements ConsumerRebalanceListener {
    private final String name;
    private final String topic;
    private final Properties settings;
    private final AtomicReference<String> rejoinReason = new AtomicReference<>();
    private volatile boolean isWanted = true;
    private KafkaConsumer<String, String> consumer;

    private Member(String name, String topic, Properties settings) {
      super(name);
      this.name = name;
      this.topic = topic;
      this.settings = settings;
      setDaemon(true);
      settings.putIfAbsent(ConsumerConfig.CLIENT_ID_CONFIG, name);
      settings.putIfAbsent(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
      settings.putIfAbsent(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, "50");
      settings.putIfAbsent(ConsumerConfig.AUTO_COMMIT_INTERVAL_MS_CONFIG, "100");
    }

    @Override
    public void run() {
      try (var opened = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
        consumer = opened;
        consumer.subscribe(List.of(topic), this);
        while (isWanted) {
          String reason = rejoinReason.getAndSet(null);
          if (reason != null) consumer.enforceRebalance(reason);
          for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
            say(name, "record " + record.partition() + " " + record.offset());
          }
        }
      } catch (Exception exception) {
        say(name, "failed " + exception.getClass().getSimpleName());
        return;
      }
      say(name, "stopped");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
      say(name, "assigned " + consumer.groupMetadata().generationId() + list(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      // In a cooperative rebalance it has read on since the client last committed by itself.
      consumer.commitSync();
      say(name, "revoked" + list(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
      say(name, "lost" + list(partitions));
    }

    private static String list(Collection<TopicPartition> partitions) {
      return partitions.stream().map(each -> " " + each.partition()).sorted().collect(Collectors.joining());
    }
  }
}
