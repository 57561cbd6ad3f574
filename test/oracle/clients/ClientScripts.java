import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

/**
 * What users of Apache Kafka's Java clients see: scripts that run against each broker named in the arguments, all brokers at a
 * time. Each line of the output is the broker's place in the arguments, the script's name and what the script says, behind tabs.
 */
public class ClientScripts {
    interface Script {
        void run(Context c) throws Exception;
    }

    private static final Map<String, Script> scripts = new LinkedHashMap<>();

    public static void main(String[] brokers) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(brokers.length * 6);
        List<Future<?>> running = new ArrayList<>();
        for (Map.Entry<String, Script> script : scripts.entrySet()) {
            for (int i = 0; i < brokers.length; i++) {
                Context context = new Context(i, script.getKey(), brokers[i]);
                running.add(pool.submit(() -> context.run(script.getValue())));
            }
        }
        for (Future<?> each : running) each.get();
        pool.shutdown();
        System.out.flush();
        System.exit(0);
    }

    static {
        scripts.put("topics", c -> {
            Admin admin = c.admin();
            String topic = c.name("t");
            CreateTopicsResult made = admin.createTopics(List.of(
                new NewTopic(topic, 3, (short) 1).configs(Map.of("retention.ms", "77777", "cleanup.policy", "compact,delete"))));
            c.attempt("create", () -> made.numPartitions(topic).get() + " partitions, " + made.replicationFactor(topic).get()
                + " replicas, " + told(made.config(topic).get()));
            c.attempt("create again", () -> c.create("t", 1));
            c.attempt("only validate", () -> admin.createTopics(List.of(new NewTopic(c.name("v"), 1, (short) 1)),
                new CreateTopicsOptions().validateOnly(true)).all().get());
            c.attempt("defaults", () -> admin.createTopics(
                List.of(new NewTopic(c.name("d"), Optional.empty(), Optional.empty()))).all().get());
            c.attempt("assigned", () -> admin.createTopics(List.of(new NewTopic(c.name("a"), Map.of(0, List.of(1), 1, List.of(1))))).all().get());
            for (String bad : List.of("", ".", "a b", "x".repeat(250))) {
                c.attempt("name '" + shortened(bad) + "'", () -> admin.createTopics(List.of(new NewTopic(bad, 1, (short) 1))).all().get());
            }
            c.attempt("no partitions", () -> c.create("n", 0));
            c.attempt("three replicas", () -> admin.createTopics(List.of(new NewTopic(c.name("n"), 1, (short) 3))).all().get());
            c.attempt("another broker", () -> admin.createTopics(List.of(new NewTopic(c.name("n"), Map.of(0, List.of(9))))).all().get());
            c.attempt("unknown config", () -> admin.createTopics(List.of(new NewTopic(c.name("n"), 1, (short) 1).configs(Map.of("no.such.key", "1")))).all().get());
            c.attempt("wrong config", () -> admin.createTopics(List.of(new NewTopic(c.name("n"), 1, (short) 1).configs(Map.of("retention.ms", "soon")))).all().get());
            c.settle();
            c.attempt("list", () -> c.mine(admin.listTopics().names().get()));
            c.attempt("describe", () -> described(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)));
            c.attempt("describe by id", () -> {
                Uuid id = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).topicId();
                return described(admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id));
            });
            c.attempt("describe what is missing", () -> admin.describeTopics(List.of(c.name("missing"))).allTopicNames().get());
            c.attempt("describe an unknown id", () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(new Uuid(5, 6)))).allTopicIds().get());
            c.attempt("more partitions", () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get());
            c.attempt("fewer partitions", () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get());
            c.attempt("as many partitions", () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get());
            c.attempt("partitions of what is missing", () -> admin.createPartitions(Map.of(c.name("missing"), NewPartitions.increaseTo(2))).all().get());
            c.attempt("delete", () -> admin.deleteTopics(List.of(topic)).all().get());
            c.attempt("delete again", () -> admin.deleteTopics(List.of(topic)).all().get());
            c.attempt("delete an unknown id", () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(new Uuid(5, 6)))).all().get());
        });

        scripts.put("settings", c -> {
            Admin admin = c.admin();
            c.create("t", 1);
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, c.name("t"));
            Supplier<Callable<Object>> told = () -> () -> told(admin.describeConfigs(List.of(topic),
                new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all().get().get(topic));
            BiFunction<String, AlterConfigOp.OpType, Callable<Object>> alter = (entry, type) -> () -> {
                String[] parts = entry.split("=", 2);
                AlterConfigOp op = new AlterConfigOp(new ConfigEntry(parts[0], parts.length < 2 ? "" : parts[1]), type);
                return admin.incrementalAlterConfigs(Map.of(topic, List.of(op))).all().get();
            };
            c.attempt("describe", told.get());
            c.attempt("set", alter.apply("retention.ms=5000", AlterConfigOp.OpType.SET));
            c.attempt("set what is wrong", alter.apply("retention.ms=soon", AlterConfigOp.OpType.SET));
            c.attempt("set what is unknown", alter.apply("no.such.key=1", AlterConfigOp.OpType.SET));
            c.attempt("append", alter.apply("cleanup.policy=compact", AlterConfigOp.OpType.APPEND));
            c.attempt("append to no list", alter.apply("retention.ms=1", AlterConfigOp.OpType.APPEND));
            c.settle();
            c.attempt("describe what was set", told.get());
            c.attempt("subtract", alter.apply("cleanup.policy=delete", AlterConfigOp.OpType.SUBTRACT));
            c.attempt("delete", alter.apply("retention.ms", AlterConfigOp.OpType.DELETE));
            c.settle();
            c.attempt("describe again", told.get());
            for (ConfigResource other : List.of(new ConfigResource(ConfigResource.Type.TOPIC, c.name("missing")),
                new ConfigResource(ConfigResource.Type.BROKER, "9"), new ConfigResource(ConfigResource.Type.BROKER, "x"))) {
                String what = other.type() + " " + shortened(other.name().replace(c.name(""), ""));
                c.attempt("describe " + what, () -> admin.describeConfigs(List.of(other), new DescribeConfigsOptions().timeoutMs(1500)).all().get().size());
                c.attempt("alter " + what, () -> admin.incrementalAlterConfigs(Map.of(other,
                    List.of(new AlterConfigOp(new ConfigEntry("log.retention.ms", "1"), AlterConfigOp.OpType.SET))),
                    new AlterConfigsOptions().timeoutMs(1500)).all().get());
            }
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, c.name("g"));
            c.attempt("describe a group", () -> admin.describeConfigs(List.of(group)).all().get().size());
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
            c.attempt("alter what is read at the start", () -> admin.incrementalAlterConfigs(Map.of(broker,
                List.of(new AlterConfigOp(new ConfigEntry("num.partitions", "3"), AlterConfigOp.OpType.SET)))).all().get());
            c.attempt("resources", () -> c.mine(admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions())
                .all().get().stream().map(ConfigResource::name).collect(Collectors.toSet())));
        });

        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            for (boolean idempotent : new boolean[] {true, false}) {
                scripts.put("records packed with " + codec + (idempotent ? ", idempotent" : ""), c -> {
                    c.create("t", 2);
                    try (Producer<byte[], byte[]> producer = c.producer(Map.of("compression.type", codec, "linger.ms", 50,
                        "enable.idempotence", idempotent))) {
                        for (int i = 0; i < 12; i++) {
                            byte[] key = i % 4 == 0 ? null : bytes("key " + i % 3);
                            byte[] value = i % 5 == 0 ? null : i % 5 == 1 ? new byte[0] : bytes("value " + i + " again".repeat(20));
                            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(c.name("t"), i % 2, 1_700_000_000_000L + i, key, value);
                            if (i % 3 == 0) record.headers().add("a", bytes("1")).add("a", null).add("", new byte[0]);
                            c.sent("send " + i, producer.send(record));
                        }
                    }
                    try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of())) {
                        c.read(consumer, 12, c.partition("t", 0), c.partition("t", 1));
                    }
                });
            }
        }

        for (String acks : List.of("0", "1", "all")) {
            scripts.put("acks " + acks, c -> {
                c.create("t", 1);
                try (Producer<byte[], byte[]> producer = c.producer(Map.of("acks", acks, "enable.idempotence", false))) {
                    c.sent("send", producer.send(new ProducerRecord<>(c.name("t"), bytes("v"))));
                    c.sent("send again", producer.send(new ProducerRecord<>(c.name("t"), bytes("w"))));
                }
                try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of())) {
                    c.read(consumer, 2, c.partition("t", 0));
                }
            });
        }

        scripts.put("records that are refused", c -> {
            c.create("compact", 1, Map.of("cleanup.policy", "compact"));
            c.create("small", 1, Map.of("max.message.bytes", "1000"));
            c.create("plain", 1);
            c.create("recent", 1, Map.of("message.timestamp.before.max.ms", "1000"));
            try (Producer<byte[], byte[]> producer = c.producer(Map.of("max.request.size", 5_000_000, "max.block.ms", 2000))) {
                c.sent("no key on a compacted topic", producer.send(new ProducerRecord<>(c.name("compact"), bytes("v"))));
                c.sent("a key on a compacted topic", producer.send(new ProducerRecord<>(c.name("compact"), bytes("k"), bytes("v"))));
                c.sent("too large for the topic", producer.send(new ProducerRecord<>(c.name("small"), new byte[2000])));
                c.sent("small enough", producer.send(new ProducerRecord<>(c.name("small"), new byte[500])));
                c.sent("too large for the broker", producer.send(new ProducerRecord<>(c.name("plain"), new byte[2_000_000])));
                c.sent("too old", producer.send(new ProducerRecord<>(c.name("recent"), 0, 5L, null, bytes("v"))));
                c.sent("in the future", producer.send(new ProducerRecord<>(c.name("plain"), 0, 9_000_000_000_000L, null, bytes("v"))));
                c.sent("after what was refused", producer.send(new ProducerRecord<>(c.name("plain"), bytes("v"))));
                c.attempt("a name that is none", () -> meta(producer.send(new ProducerRecord<>("a b", bytes("v"))).get()));
                c.attempt("a partition that is none", () -> meta(producer.send(new ProducerRecord<>(c.name("plain"), 7, null, bytes("v"))).get()));
                c.attempt("an internal topic", () -> meta(producer.send(new ProducerRecord<>("__consumer_offsets", 0, null, bytes("v"))).get()));
                c.attempt("a topic that nobody made", () -> meta(producer.send(new ProducerRecord<>(c.name("auto"), bytes("v"))).get()));
                c.attempt("partitions", () -> producer.partitionsFor(c.name("plain")).stream().map(ClientScripts::partition).toList());
            }
        });

        scripts.put("times of appending", c -> {
            c.create("t", 1, Map.of("message.timestamp.type", "LogAppendTime"));
            long before = System.currentTimeMillis();
            try (Producer<byte[], byte[]> producer = c.producer(Map.of())) {
                RecordMetadata sent = producer.send(new ProducerRecord<>(c.name("t"), 0, 5L, null, bytes("v"))).get();
                c.say("sent at " + (sent.timestamp() >= before ? "now" : sent.timestamp()));
            }
            try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of())) {
                consumer.assign(List.of(c.partition("t", 0)));
                consumer.seekToBeginning(List.of());
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofSeconds(10))) {
                    c.say(each.timestampType() + (each.timestamp() >= before ? " now" : " " + each.timestamp()));
                }
            }
        });

        scripts.put("positions", c -> {
            TopicPartition p = c.partition("t", 0);
            c.create("t", 2);
            c.fill("t", 10);
            try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of("group.id", c.name("g")))) {
                consumer.assign(List.of(p));
                c.attempt("at first", () -> consumer.position(p));
                c.attempt("committed at first", () -> consumer.committed(Set.of(p)));
                for (long time : new long[] {0, 1_700_000_000_003L, 1_700_000_000_009L, 1_700_000_000_010L}) {
                    c.attempt("offset for " + time, () -> consumer.offsetsForTimes(Map.of(p, time)));
                }
                c.attempt("beginning", () -> consumer.beginningOffsets(List.of(p, c.partition("t", 1))));
                c.attempt("end", () -> consumer.endOffsets(List.of(p, c.partition("t", 1))));
                consumer.seek(p, 4);
                c.attempt("after seek", () -> first(consumer));
                c.attempt("lag", () -> consumer.currentLag(p));
                consumer.seekToEnd(List.of(p));
                c.attempt("end position", () -> consumer.position(p));
                consumer.seekToBeginning(List.of(p));
                c.attempt("beginning position", () -> consumer.position(p));
                consumer.seek(p, 99);
                c.attempt("beyond the end", () -> first(consumer));
                c.attempt("position then", () -> consumer.position(p));
                c.attempt("commit", () -> { consumer.commitSync(Map.of(p, new OffsetAndMetadata(3, Optional.of(0), "note"))); return null; });
                c.attempt("committed", () -> consumer.committed(Set.of(p)));
                c.attempt("commit with a long note", () -> { consumer.commitSync(Map.of(p, new OffsetAndMetadata(3, "x".repeat(5000)))); return null; });
                c.attempt("commit of what is missing", () -> { consumer.commitSync(Map.of(new TopicPartition(c.name("missing"), 0), new OffsetAndMetadata(3))); return null; }, 3000);
                c.attempt("topics", () -> c.mine(consumer.listTopics().keySet()));
                c.attempt("partitions", () -> consumer.partitionsFor(c.name("t")).stream().map(ClientScripts::partition).sorted().toList());
            }
            try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of("auto.offset.reset", "none", "group.id", c.name("none")))) {
                consumer.assign(List.of(p));
                c.attempt("no offset and no rule", () -> first(consumer));
                consumer.seek(p, 99);
                c.attempt("beyond the end and no rule", () -> first(consumer));
            }
            try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of("auto.offset.reset", "latest", "group.id", c.name("latest")))) {
                consumer.assign(List.of(p));
                c.attempt("latest", () -> consumer.position(p));
            }
            try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of("auto.offset.reset", "by_duration:PT1H", "group.id", c.name("by")))) {
                consumer.assign(List.of(p));
                c.attempt("by duration", () -> consumer.position(p));
            }
            for (String isolation : List.of("read_committed", "read_uncommitted")) {
                try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of("isolation.level", isolation, "max.poll.records", 4))) {
                    c.read(consumer, 10, p);
                }
            }
        });

        scripts.put("records that are deleted", c -> {
            Admin admin = c.admin();
            TopicPartition p = c.partition("t", 0);
            c.create("t", 1);
            c.create("compact", 1, Map.of("cleanup.policy", "compact"));
            c.fill("t", 10);
            Function<RecordsToDelete, Callable<Object>> delete = until -> () -> admin.deleteRecords(Map.of(p, until)).lowWatermarks().get(p).get().lowWatermark();
            c.attempt("below 4", delete.apply(RecordsToDelete.beforeOffset(4)));
            c.attempt("below 2", delete.apply(RecordsToDelete.beforeOffset(2)));
            c.attempt("below 99", delete.apply(RecordsToDelete.beforeOffset(99)));
            c.attempt("first", () -> admin.listOffsets(Map.of(p, OffsetSpec.earliest())).partitionResult(p).get().offset());
            try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of())) {
                consumer.assign(List.of(p));
                consumer.seek(p, 1);
                c.attempt("read what is deleted", () -> first(consumer));
            }
            c.attempt("all", delete.apply(RecordsToDelete.beforeOffset(-1)));
            for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(), OffsetSpec.forTimestamp(5),
                OffsetSpec.earliestLocal(), OffsetSpec.latestTiered())) {
                c.attempt(spec.getClass().getSimpleName(), () -> offset(admin.listOffsets(Map.of(p, spec)).partitionResult(p).get()));
            }
            TopicPartition compact = c.partition("compact", 0);
            c.attempt("of a compacted topic", () -> admin.deleteRecords(Map.of(compact, RecordsToDelete.beforeOffset(0))).all().get());
            TopicPartition missing = c.partition("missing", 0);
            c.attempt("of what is missing", () -> admin.deleteRecords(Map.of(missing, RecordsToDelete.beforeOffset(0)), new DeleteRecordsOptions().timeoutMs(3000)).all().get());
        });

        scripts.put("offsets of partitions", c -> {
            Admin admin = c.admin();
            c.create("t", 1);
            c.fill("t", 10);
            TopicPartition p = c.partition("t", 0);
            for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(),
                OffsetSpec.forTimestamp(1_700_000_000_004L), OffsetSpec.forTimestamp(9_000_000_000_000L), OffsetSpec.earliestLocal(), OffsetSpec.latestTiered())) {
                for (IsolationLevel level : IsolationLevel.values()) {
                    c.attempt(spec.getClass().getSimpleName() + " " + level, () -> offset(admin.listOffsets(Map.of(p, spec), new ListOffsetsOptions(level)).partitionResult(p).get()));
                }
            }
            TopicPartition missing = c.partition("missing", 0);
            c.attempt("missing", () -> offset(admin.listOffsets(Map.of(missing, OffsetSpec.latest()), new ListOffsetsOptions().timeoutMs(2000)).partitionResult(missing).get()));
        });

        for (String assignor : List.of("Range", "RoundRobin", "Sticky", "CooperativeSticky")) {
            scripts.put("a group that assigns by " + assignor, c -> {
                Admin admin = c.admin();
                c.create("t", 4);
                c.fill("t", 8);
                String group = c.name("g");
                Map<String, Object> settings = Map.of("group.id", group, "partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer." + assignor + "Assignor");
                try (Member one = c.member(settings); Member two = c.member(settings)) {
                    one.until(4);
                    c.say("one alone: " + one.assigned());
                    two.start();
                    one.until(2);
                    two.until(2);
                    ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                    c.say("state " + described.groupState() + ", assignor " + described.partitionAssignor() + ", members " + described.members().size()
                        + ", simple " + described.isSimpleConsumerGroup() + ", type " + described.type());
                    described.members().stream().map(m -> m.assignment().topicPartitions().size() + " " + m.host() + " " + m.groupInstanceId() + " " + m.clientId().replaceAll("\\d+", "")).sorted().forEach(c::say);
                    c.attempt("delete", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
                    c.attempt("alter offsets", () -> admin.alterConsumerGroupOffsets(group, Map.of(c.partition("t", 0), new OffsetAndMetadata(1))).all().get());
                    c.attempt("delete offsets", () -> admin.deleteConsumerGroupOffsets(group, Set.of(c.partition("t", 0))).all().get());
                    two.close();
                    one.until(4);
                    c.say("one alone again: " + one.assigned());
                }
                c.attempt("offsets", () -> new TreeMap<>(offsets(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get())));
                c.attempt("alter offsets of an empty group", () -> admin.alterConsumerGroupOffsets(group, Map.of(c.partition("t", 0), new OffsetAndMetadata(1, "moved"))).all().get());
                c.attempt("delete offsets of an empty group", () -> admin.deleteConsumerGroupOffsets(group, Set.of(c.partition("t", 1))).all().get());
                c.attempt("offsets then", () -> new TreeMap<>(offsets(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get())));
                c.attempt("list", () -> admin.listGroups(ListGroupsOptions.forConsumerGroups()).all().get().stream().filter(g -> g.groupId().equals(group))
                    .map(g -> g.groupState() + " " + g.type() + " " + g.protocol()).toList());
                c.attempt("delete the empty group", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
                c.attempt("delete it again", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
                c.attempt("describe it", () -> admin.describeConsumerGroups(List.of(group)).all().get().size());
                c.attempt("its offsets", () -> admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get());
            });
        }

        scripts.put("static members", c -> {
            Admin admin = c.admin();
            c.create("t", 2);
            String group = c.name("g");
            Map<String, Object> settings = Map.of("group.id", group, "group.instance.id", "one", "session.timeout.ms", 20_000);
            Member one = c.member(settings);
            one.until(2);
            int generation = one.generation();
            one.close();
            Member again = c.member(settings);
            again.until(2);
            c.say("generations later: " + (again.generation() - generation));
            Member other = c.member(settings);
            other.until(2);
            c.say("the older one: " + again.untilFailed());
            c.attempt("members", () -> admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().stream().map(MemberDescription::groupInstanceId).toList());
            c.attempt("remove one that is none", () -> admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("nobody")))).all().get());
            other.close();
            c.attempt("remove it", () -> admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")))).all().get());
            c.attempt("state", () -> admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState());
        });

        scripts.put("groups that are not as wanted", c -> {
            Admin admin = c.admin();
            c.create("t", 1);
            c.attempt("no such group", () -> admin.describeConsumerGroups(List.of(c.name("none"))).all().get().size());
            c.attempt("no such group's offsets", () -> admin.listConsumerGroupOffsets(c.name("none")).partitionsToOffsetAndMetadata().get());
            c.attempt("delete no such group", () -> admin.deleteConsumerGroups(List.of(c.name("none"))).all().get());
            c.attempt("delete offsets of no such group", () -> admin.deleteConsumerGroupOffsets(c.name("none"), Set.of(c.partition("t", 0))).all().get());
            c.attempt("set offsets of no such group", () -> admin.alterConsumerGroupOffsets(c.name("set"), Map.of(c.partition("t", 0), new OffsetAndMetadata(5))).all().get());
            c.attempt("its offsets", () -> offsets(admin.listConsumerGroupOffsets(c.name("set")).partitionsToOffsetAndMetadata().get()));
            c.attempt("set offsets of no such topic", () -> admin.alterConsumerGroupOffsets(c.name("set"), Map.of(c.partition("missing", 0), new OffsetAndMetadata(5))).all().get());
            c.attempt("classic groups", () -> admin.describeClassicGroups(List.of(c.name("set"))).all().get().get(c.name("set")).state());
            Map<String, Object> short_ = Map.of("group.id", c.name("short"), "session.timeout.ms", 1000, "heartbeat.interval.ms", 300);
            c.attempt("a session that is too short", () -> {
                try (Consumer<byte[], byte[]> consumer = c.consumer(short_)) {
                    consumer.subscribe(List.of(c.name("t")));
                    return first(consumer);
                }
            });
            try (Member one = c.member(Map.of("group.id", c.name("mixed"), "partition.assignment.strategy", RangeAssignor.class.getName()))) {
                one.until(1);
                Map<String, Object> sticky = Map.of("group.id", c.name("mixed"), "partition.assignment.strategy", StickyAssignor.class.getName());
                c.attempt("another assignor", () -> {
                    try (Consumer<byte[], byte[]> consumer = c.consumer(sticky)) {
                        consumer.subscribe(List.of(c.name("t")));
                        return first(consumer);
                    }
                });
            }
            c.attempt("a group without a name", () -> {
                try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of("group.id", ""))) {
                    consumer.subscribe(List.of(c.name("t")));
                    return first(consumer);
                }
            });
        });

        scripts.put("a topic that is made anew under a consumer", c -> {
            Admin admin = c.admin();
            TopicPartition p = c.partition("t", 0);
            c.create("t", 1);
            c.fill("t", 5);
            try (Consumer<byte[], byte[]> consumer = c.consumer(Map.of("metadata.max.age.ms", 500, "allow.auto.create.topics", false))) {
                c.read(consumer, 5, p);
                admin.deleteTopics(List.of(c.name("t"))).all().get();
                c.attempt("gone", () -> consumer.poll(Duration.ofMillis(1500)).count());
                c.create("t", 1);
                c.fill("t", 3);
                List<String> found = new ArrayList<>();
                for (long end = System.currentTimeMillis() + 15_000; found.size() < 3 && System.currentTimeMillis() < end; ) {
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(200))) found.add(record(each));
                }
                found.forEach(c::say);
                c.attempt("position", () -> consumer.position(p));
            }
        });

        scripts.put("the cluster", c -> {
            Admin admin = c.admin();
            c.create("t", 2);
            c.fill("t", 3);
            DescribeClusterResult cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            c.attempt("nodes", () -> cluster.nodes().get().size() + " " + cluster.nodes().get().iterator().next().id());
            c.attempt("controller", () -> cluster.controller().get().id());
            c.attempt("operations", () -> cluster.authorizedOperations().get());
            c.attempt("operations on a topic", () -> admin.describeTopics(List.of(c.name("t")), new DescribeTopicsOptions().includeAuthorizedOperations(true))
                .allTopicNames().get().get(c.name("t")).authorizedOperations());
            c.attempt("folders", () -> {
                Map<String, LogDirDescription> dirs = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
                return dirs.values().iterator().next().replicaInfos().keySet().stream().filter(each -> each.topic().equals(c.name("t"))).map(Object::toString).sorted().toList();
            });
            c.attempt("quorum", () -> {
                QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
                return quorum.leaderId() + " " + quorum.voters().size() + " " + quorum.observers().size();
            });
            try (Producer<byte[], byte[]> producer = c.producer(Map.of())) {
                producer.send(new ProducerRecord<>(c.name("t"), 1, null, bytes("v"))).get();
            }
            TopicPartition p = c.partition("t", 1);
            c.attempt("producers", () -> admin.describeProducers(List.of(p)).partitionResult(p).get().activeProducers().stream()
                .map(each -> each.producerEpoch() + " " + each.lastSequence() + " " + each.coordinatorEpoch() + " " + each.currentTransactionStartOffset()).toList());
            c.attempt("producers of what is missing", () -> admin.describeProducers(List.of(c.partition("missing", 0)), new DescribeProducersOptions().timeoutMs(2000)).all().get());
            c.attempt("an id of this client for telemetry", () -> admin.clientInstanceId(Duration.ofSeconds(2)));
        });
    }

    // ---- what scripts say ----

    static String told(Config config) {
        return config.entries().stream().sorted(Comparator.comparing(ConfigEntry::name))
            .map(e -> e.name() + "=" + e.value() + " " + e.source() + " " + e.isReadOnly() + " " + e.isSensitive() + " " + e.type()
                + " " + (e.documentation() == null ? "none" : e.documentation().isEmpty()) + " "
                + e.synonyms().stream().map(s -> s.source() + ":" + s.name() + "=" + s.value()).toList())
            .collect(Collectors.joining("\n"));
    }

    static String described(TopicDescription topic) {
        return topic.isInternal() + " " + topic.partitions().stream().map(p -> p.partition() + " led by " + p.leader().id()
            + ", replicas " + p.replicas().stream().map(Node::id).toList() + ", in sync " + p.isr().stream().map(Node::id).toList()).toList();
    }

    static String partition(PartitionInfo p) {
        return p.partition() + " led by " + p.leader().id() + ", " + p.replicas().length + " replicas, " + p.inSyncReplicas().length + " in sync, " + p.offlineReplicas().length + " offline";
    }

    static String offset(ListOffsetsResult.ListOffsetsResultInfo info) {
        return info.offset() + " " + info.timestamp() + " " + info.leaderEpoch();
    }

    static Map<String, String> offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, String> told = new TreeMap<>();
        offsets.forEach((p, o) -> told.put(p.toString(), o == null ? "none" : o.offset() + " '" + o.metadata() + "' " + o.leaderEpoch()));
        return told;
    }

    static String record(ConsumerRecord<byte[], byte[]> r) {
        return r.topic() + "-" + r.partition() + " " + r.offset() + " " + r.timestampType() + " " + r.timestamp() + " " + text(r.key()) + " "
            + text(r.value()) + " " + r.leaderEpoch() + " " + Arrays.stream(r.headers().toArray()).map(h -> h.key() + ":" + text(h.value())).toList();
    }

    static String meta(RecordMetadata m) {
        return m.topic() + "-" + m.partition() + " " + m.offset();
    }

    static String first(Consumer<byte[], byte[]> consumer) {
        for (int i = 0; i < 20; i++) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
            if (!records.isEmpty()) return record(records.iterator().next());
        }
        return "nothing";
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? "null" : "'" + shortened(new String(bytes, StandardCharsets.UTF_8)) + "'";
    }

    static String shortened(String text) {
        return text.length() <= 30 ? text : text.substring(0, 30) + "... of " + text.length();
    }

    /** A consumer that polls in a thread of its own. */
    static final class Member implements AutoCloseable {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final String topic;
        private volatile Set<TopicPartition> assigned = Set.of();
        private volatile int generation = -1;
        private volatile Throwable failure;
        private volatile boolean ended;
        private Thread thread;

        Member(KafkaConsumer<byte[], byte[]> consumer, String topic) {
            this.consumer = consumer;
            this.topic = topic;
        }

        synchronized void start() {
            if (thread != null) return;
            thread = new Thread(() -> {
                try {
                    consumer.subscribe(List.of(topic));
                    while (!ended) {
                        consumer.poll(Duration.ofMillis(50));
                        assigned = Set.copyOf(consumer.assignment());
                        generation = consumer.groupMetadata().generationId();
                    }
                } catch (Throwable error) {
                    failure = error;
                } finally {
                    consumer.close(CloseOptions.timeout(Duration.ofSeconds(5)));
                }
            });
            thread.start();
        }

        /** Waits until it has as many partitions. */
        void until(int count) throws Exception {
            start();
            long end = System.currentTimeMillis() + 30_000;
            while (assigned.size() != count && failure == null) {
                if (System.currentTimeMillis() > end) throw new TimeoutException("has " + assigned + ", not " + count);
                Thread.sleep(10);
            }
        }

        String untilFailed() throws Exception {
            thread.join(30_000);
            return failure == null ? "lives" : failure.getClass().getSimpleName();
        }

        List<String> assigned() {
            return assigned.stream().map(Object::toString).sorted().toList();
        }

        int generation() {
            return generation;
        }

        @Override
        public synchronized void close() throws Exception {
            ended = true;
            if (thread == null) consumer.close();
            else thread.join(30_000);
        }
    }

    /** One script with one broker. */
    static final class Context {
        private final int place;
        private final String script;
        private final String broker;
        private final String prefix;
        private final List<String> said = new ArrayList<>();
        private int settled;
        private Admin admin;

        Context(int place, String script, String broker) {
            this.place = place;
            this.script = script;
            this.broker = broker;
            this.prefix = "java-" + script.replaceAll("[^a-zA-Z0-9]+", "-") + "-";
        }

        void run(Script body) {
            long start = System.currentTimeMillis();
            try {
                body.run(this);
            } catch (Throwable error) {
                say("FAILED " + name(error));
                error.printStackTrace();
            } finally {
                if (admin != null) admin.close(Duration.ofSeconds(5));
            }
            System.err.println(place + " " + script + " took " + (System.currentTimeMillis() - start));
            synchronized (System.out) {
                for (String line : said) System.out.println("@" + place + "\t" + script + "\t" + line);
            }
        }

        void say(Object line) {
            for (String each : String.valueOf(line).split("\n")) said.add(each.replace(prefix, ""));
        }

        /** Says what comes back, or which error. */
        void attempt(String what, Callable<Object> call) {
            attempt(what, call, 20_000);
        }

        void attempt(String what, Callable<Object> call, long timeoutMs) {
            try {
                say(what + ": " + call.call());
            } catch (Throwable error) {
                say(what + ": " + name(error));
            }
        }

        void sent(String what, Future<RecordMetadata> sending) {
            attempt(what, () -> meta(sending.get()));
        }

        private static String name(Throwable error) {
            Throwable cause = error instanceof ExecutionException && error.getCause() != null ? error.getCause() : error;
            if (cause instanceof org.apache.kafka.common.errors.TimeoutException) return "TimeoutException"; // of whichever try
            if (cause instanceof KafkaException && cause.getCause() instanceof org.apache.kafka.common.errors.ApiException) {
                return cause.getClass().getSimpleName() + " for " + cause.getCause().getClass().getSimpleName();
            }
            return cause.getClass().getSimpleName();
        }

        String name(String text) {
            return prefix + text;
        }

        TopicPartition partition(String topic, int partition) {
            return new TopicPartition(name(topic), partition);
        }

        /** Names of this script, in order. */
        List<String> mine(Collection<String> names) {
            return names.stream().filter(each -> each.startsWith(prefix)).sorted().toList();
        }

        Map<String, Object> settings(Map<String, Object> more) {
            Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", broker, "enable.metrics.push", true));
            settings.putAll(more);
            return settings;
        }

        Admin admin() {
            if (admin == null) admin = Admin.create(settings(Map.of("client.id", "admin")));
            return admin;
        }

        Object create(String topic, int partitions) throws Exception {
            return create(topic, partitions, Map.of());
        }

        /** Makes a topic, and waits until its partitions are served. */
        Object create(String topic, int partitions, Map<String, String> configs) throws Exception {
            admin().createTopics(List.of(new NewTopic(name(topic), partitions, (short) 1).configs(configs))).all().get();
            Map<TopicPartition, OffsetSpec> all = new HashMap<>();
            for (int i = 0; i < partitions; i++) all.put(partition(topic, i), OffsetSpec.latest());
            // An answer may come before the broker has heard of it.
            for (int attempts = 1; ; attempts++) {
                try {
                    admin().listOffsets(all).all().get();
                    return null;
                } catch (ExecutionException error) {
                    if (attempts == 100) throw error;
                    Thread.sleep(20);
                }
            }
        }

        /** What was changed before is seen by who sees a later topic. */
        void settle() throws Exception {
            create("settled-" + ++settled, 1);
        }

        void fill(String topic, int count) throws Exception {
            try (Producer<byte[], byte[]> producer = producer(Map.of())) {
                List<Future<RecordMetadata>> sending = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    sending.add(producer.send(new ProducerRecord<>(name(topic), 0, 1_700_000_000_000L + i, bytes("k" + i), bytes("v" + i))));
                }
                for (Future<RecordMetadata> each : sending) each.get();
            }
        }

        KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
            return new KafkaProducer<>(settings(more), new ByteArraySerializer(), new ByteArraySerializer());
        }

        KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
            Map<String, Object> settings = settings(Map.of("auto.offset.reset", "earliest", "client.id", "consumer", "default.api.timeout.ms", 5000,
                "group.id", name("reader"), "enable.auto.commit", false));
            settings.putAll(more);
            return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        Member member(Map<String, Object> more) {
            Map<String, Object> settings = new HashMap<>(Map.of("heartbeat.interval.ms", 200, "session.timeout.ms", 10_000, "enable.auto.commit", true));
            settings.putAll(more);
            return new Member(consumer(settings), name("t"));
        }

        /** Reads and says as many records. */
        void read(Consumer<byte[], byte[]> consumer, int count, TopicPartition... partitions) {
            consumer.assign(List.of(partitions));
            consumer.seekToBeginning(List.of(partitions));
            List<String> read = new ArrayList<>();
            for (long end = System.currentTimeMillis() + 20_000; read.size() < count && System.currentTimeMillis() < end; ) {
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(200))) read.add(record(each));
            }
            read.stream().sorted().forEach(this::say);
        }
    }
}
