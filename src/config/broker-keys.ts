import {
  boolean,
  counts,
  declareKeys,
  double,
  enumOf,
  int,
  list,
  long,
  maxLong,
  password,
  short,
  string,
  type ValuesOf,
} from './keys.ts'

/** Consumers read from a replica in their own rack, where there is one. */
export const rackAwareSelector = 'org.apache.kafka.common.replica.RackAwareReplicaSelector'

/**
 * The keys of one node that Rookery acts on, with Kafka's names, types, limits and defaults; `kafkaDefault` and
 * `singleNodeDefault` mark the defaults that differ. Kafka's other keys are accepted and named at start. `dynamic` as in Kafka, but
 * for the listeners and what TLS they speak, which stay as they are while a node runs.
 */
export const brokerKeys = declareKeys({
  // Who this node is.
  processRoles: list('process.roles', {
    default: ['broker', 'controller'],
    oneOf: ['broker', 'controller'],
    doc: 'What this node does: it serves clients (broker), takes part in the metadata quorum (controller), or both',
  }),
  nodeId: int('node.id', { default: 1, min: 0, doc: 'Identifies this node in its cluster' }),
  brokerId: int('broker.id', { default: -1, min: -1, doc: 'The older name of node.id; -1 is "not set"' }),
  brokerRack: string('broker.rack', { default: null, doc: 'Where this node stands; told to clients' }),
  clusterId: string('cluster.id', {
    default: null,
    doc: 'The id of the cluster that this node belongs to, 22 characters of base64url; when not set, an empty data folder gets a new one. Only Rookery has this key',
  }),
  controllerQuorumVoters: list('controller.quorum.voters', {
    default: [],
    doc: 'The voters of the metadata quorum, each as id@host:port, the same on every node. Where it is not set, controller.quorum.bootstrap.servers counts; a node with neither is a quorum of its own',
  }),
  controllerQuorumBootstrapServers: list('controller.quorum.bootstrap.servers', {
    default: [],
    doc: 'Where controllers are found, each as host:port, for a quorum whose voters are added and removed while it runs. The controllers there that are all started with empty folders form a new cluster',
  }),
  controllerQuorumElectionTimeoutMs: int('controller.quorum.election.timeout.ms', {
    default: 1000,
    min: 1,
    doc: 'How long a voter that stands for election waits for votes before it tries again; a random time of up to as much is added',
  }),
  controllerQuorumFetchTimeoutMs: int('controller.quorum.fetch.timeout.ms', {
    default: 1000,
    kafkaDefault: 2000,
    min: 1,
    doc: 'A voter that has not heard its leader for this long, and a random time of up to as much, stands for election; a leader that has not heard a majority for this long steps down',
  }),
  controllerQuorumAutoJoinEnable: boolean('controller.quorum.auto.join.enable', {
    default: false,
    doc: 'A controller without a vote asks to be made a voter by itself, in the place of what its folder was before; only with controller.quorum.bootstrap.servers',
  }),
  brokerSessionTimeoutMs: int('broker.session.timeout.ms', {
    default: 3000,
    kafkaDefault: 9000,
    min: 1,
    doc: 'A broker that was not heard for this long is fenced: a node that hangs is replaced within seconds. One whose process ended is fenced at once, whatever this is',
  }),
  brokerHeartbeatIntervalMs: int('broker.heartbeat.interval.ms', {
    default: 500,
    kafkaDefault: 2000,
    min: 1,
    doc: 'Time between two heartbeats from a broker to the controller; several fit into the session timeout',
  }),
  metadataLogMaxRecordBytesBetweenSnapshots: long('metadata.log.max.record.bytes.between.snapshots', {
    default: 20_971_520,
    min: 1,
    doc: 'A snapshot of the metadata is written after this many bytes of new records',
  }),
  metadataLogMaxSnapshotIntervalMs: long('metadata.log.max.snapshot.interval.ms', {
    default: 3_600_000,
    min: 0,
    doc: 'A snapshot of the metadata is written when the last one is older than this and there are new records; 0 is never',
  }),

  // Where it listens.
  listeners: list('listeners', {
    default: ['PLAINTEXT://localhost:9092'],
    kafkaDefault: ['PLAINTEXT://:9092'],
    doc: 'Where this node listens, each as NAME://host:port; no host is every address. Kafka listens on every address by default; without authentication Rookery does so only when asked',
  }),
  advertisedListeners: list('advertised.listeners', {
    default: null,
    doc: 'What clients are told to connect to, each as NAME://host:port; when not set, the listeners, and for one on every address the address that the client dialled',
  }),
  listenerSecurityProtocolMap: string('listener.security.protocol.map', {
    default: 'SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT',
    doc: 'The security protocol of each listener name, as NAME:PROTOCOL; the names of controller.listener.names are PLAINTEXT when it does not list them',
  }),
  controllerListenerNames: list('controller.listener.names', {
    default: [],
    doc: 'The names of those listeners that serve the metadata quorum (over gRPC) and no clients',
  }),
  interBrokerListenerName: string('inter.broker.listener.name', {
    default: null,
    doc: 'The listener that brokers use among themselves; the first one for clients when not set',
  }),
  securityInterBrokerProtocol: string('security.inter.broker.protocol', {
    default: 'PLAINTEXT',
    oneOf: ['PLAINTEXT'],
    doc: 'The security protocol among brokers; only PLAINTEXT is built yet',
  }),
  sslKeystoreType: string('ssl.keystore.type', {
    default: 'JKS',
    doc: 'What ssl.keystore.location is: PEM or PKCS12. JKS, the default of Kafka, is refused where it would be read',
  }),
  sslKeystoreLocation: string('ssl.keystore.location', {
    default: null,
    doc: 'The file with the private key of this node and its certificate, and those between it and the CA. As all keys that begin with ssl. it counts for the listener of controllers where that has the protocol SSL; listener.name.controller.ssl.keystore.location comes before it',
  }),
  sslKeystorePassword: password('ssl.keystore.password', {
    default: null,
    doc: 'The password of a file of type PKCS12',
  }),
  sslKeystoreKey: password('ssl.keystore.key', {
    default: null,
    doc: 'The private key itself, in PEM, in place of a file',
  }),
  sslKeystoreCertificateChain: password('ssl.keystore.certificate.chain', {
    default: null,
    doc: 'The certificate that belongs to ssl.keystore.key, in PEM, and those between it and the CA',
  }),
  sslKeyPassword: password('ssl.key.password', {
    default: null,
    doc: 'The password of a private key in PEM that is encrypted',
  }),
  sslTruststoreType: string('ssl.truststore.type', {
    default: 'JKS',
    doc: 'What ssl.truststore.location is: only PEM can be read',
  }),
  sslTruststoreLocation: string('ssl.truststore.location', {
    default: null,
    doc: 'The file with the certificates of the CAs whose certificates are trusted; there are no others',
  }),
  sslTruststoreCertificates: password('ssl.truststore.certificates', {
    default: null,
    doc: 'These certificates themselves, in PEM, in place of a file',
  }),
  sslClientAuth: enumOf('ssl.client.auth', {
    default: 'none',
    oneOf: ['required', 'requested', 'none'],
    doc: 'Whether who connects has to show a certificate that is trusted (required), shows one if it has one (requested), or is not asked',
  }),
  sslEndpointIdentificationAlgorithm: enumOf('ssl.endpoint.identification.algorithm', {
    default: 'https',
    oneOf: ['https', 'HTTPS', ''],
    doc: 'A certificate has to name the host or the address that was connected to; when empty, it need not',
  }),
  sslEnabledProtocols: list('ssl.enabled.protocols', {
    default: ['TLSv1.2', 'TLSv1.3'],
    oneOf: ['TLSv1.2', 'TLSv1.3'],
    doc: 'The versions of TLS that may be spoken',
  }),
  authorizerClassName: string('authorizer.class.name', {
    default: '',
    oneOf: [''],
    doc: 'The authorizer; none is built yet, and a setting that would not be obeyed is refused',
  }),

  // Connections and requests.
  socketRequestMaxBytes: int('socket.request.max.bytes', {
    default: 104_857_600,
    min: 1,
    doc: 'The largest request; a connection that announces a larger one is closed',
  }),
  queuedMaxRequestBytes: long('queued.max.request.bytes', {
    default: -1,
    min: -1,
    doc: 'The bytes of requests that this node holds at one time over all connections, and as many of responses; reading pauses at the limit. -1, no limit in Kafka, is 128 MiB here, or socket.request.max.bytes where that is more',
  }),
  connectionsMaxIdleMs: long('connections.max.idle.ms', {
    default: 600_000,
    min: 1,
    doc: 'A connection without a request for this long is closed',
  }),
  maxConnections: int('max.connections', {
    default: 2_147_483_647,
    min: 0,
    dynamic: true,
    doc: 'The connections that this node holds at one time; further ones are closed at once. Never more than the open files that the system allows leave room for',
  }),
  maxConnectionsPerIp: int('max.connections.per.ip', {
    default: 2_147_483_647,
    min: 0,
    dynamic: true,
    doc: 'The connections that this node holds at one time from one address; further ones are closed at once',
  }),
  maxConnectionsPerIpOverrides: counts('max.connections.per.ip.overrides', {
    names: /^[0-9a-fA-F.:]{2,45}$/,
    what: 'address',
    dynamic: true,
    doc: 'Limits of single addresses, in place of max.connections.per.ip: 127.0.0.1:200,::1:200. Host names, which Kafka takes as well, are refused',
  }),
  requestTimeoutMs: int('request.timeout.ms', {
    default: 30_000,
    min: 1,
    doc: 'How long this node waits for the answer to a request of its own',
  }),
  fetchMaxBytes: int('fetch.max.bytes', {
    default: 57_671_680,
    min: 1024,
    doc: 'The largest answer to one fetch, whatever the client asks for; a first batch that is larger is sent whole',
  }),
  maxIncrementalFetchSessionCacheSlots: int('max.incremental.fetch.session.cache.slots', {
    default: 1000,
    min: 0,
    doc: 'The fetch sessions that this node keeps',
  }),
  maxRequestPartitionSizeLimit: int('max.request.partition.size.limit', {
    default: 2000,
    min: 1,
    doc: 'The most partitions in one answer of DescribeTopicPartitions',
  }),

  // Topics.
  numPartitions: int('num.partitions', { default: 1, min: 1, doc: 'Partitions of a topic that does not say how many' }),
  defaultReplicationFactor: int('default.replication.factor', {
    default: 1,
    min: 1,
    max: 32_767,
    doc: 'Replicas of a partition whose topic does not say how many',
  }),
  autoCreateTopicsEnable: boolean('auto.create.topics.enable', {
    default: true,
    doc: 'A topic that a client asks for and that is not there is created',
  }),
  deleteTopicEnable: boolean('delete.topic.enable', { default: true, doc: 'Topics may be deleted' }),

  // Where data is, and what a topic's log does when the topic doesn't say otherwise.
  logDir: list('log.dir', {
    default: ['data'],
    kafkaDefault: ['/tmp/kafka-logs'],
    doc: 'The folder for data, when log.dirs is not set. Kafka puts it into /tmp, which many systems empty at start',
  }),
  logDirs: list('log.dirs', { default: null, doc: 'The folders for data; log.dir when not set' }),
  metadataLogDir: string('metadata.log.dir', {
    default: null,
    doc: 'The folder for the metadata log; the first of the folders for data when not set',
  }),
  logSegmentBytes: int('log.segment.bytes', {
    default: 1_073_741_824,
    min: 1_048_576,
    dynamic: true,
    doc: 'A segment is closed and a new one begun before it would grow past this',
  }),
  logRollMs: long('log.roll.ms', {
    default: null,
    min: 1,
    dynamic: true,
    doc: 'A segment is closed when it is this old; log.roll.hours when not set',
  }),
  logRollHours: int('log.roll.hours', { default: 168, min: 1, doc: 'As log.roll.ms, in hours' }),
  logRollJitterMs: long('log.roll.jitter.ms', {
    default: null,
    min: 0,
    dynamic: true,
    doc: 'At most this much, at random, is taken from log.roll.ms; log.roll.jitter.hours when not set',
  }),
  logRollJitterHours: int('log.roll.jitter.hours', { default: 0, min: 0, doc: 'As log.roll.jitter.ms, in hours' }),
  logRetentionMs: long('log.retention.ms', {
    default: null,
    min: -1,
    dynamic: true,
    doc: 'A segment is removed when its newest record is older than this; -1 is never; log.retention.minutes when not set',
  }),
  logRetentionMinutes: int('log.retention.minutes', {
    default: null,
    min: -1,
    doc: 'As log.retention.ms, in minutes; log.retention.hours when not set',
  }),
  logRetentionHours: int('log.retention.hours', { default: 168, min: -1, doc: 'As log.retention.ms, in hours' }),
  logRetentionBytes: long('log.retention.bytes', {
    default: -1,
    dynamic: true,
    doc: 'Oldest segments are removed while a partition is larger than this; -1 is never',
  }),
  logRetentionCheckIntervalMs: long('log.retention.check.interval.ms', {
    default: 300_000,
    min: 1,
    doc: 'Time between two looks for segments to remove',
  }),
  logInitialTaskDelayMs: long('log.initial.task.delay.ms', {
    default: 30_000,
    min: 0,
    internal: true,
    doc: 'Time from the start to the first of the periodic tasks of the log',
  }),
  logSegmentDeleteDelayMs: long('log.segment.delete.delay.ms', {
    default: 60_000,
    min: 0,
    dynamic: true,
    doc: 'Time from taking a file out of use to removing it',
  }),
  logCleanupPolicy: list('log.cleanup.policy', {
    default: ['delete'],
    oneOf: ['compact', 'delete'],
    dynamic: true,
    doc: 'What becomes of old data: removed (delete), or only the last record of each key kept (compact)',
  }),
  logCleanerEnable: boolean('log.cleaner.enable', {
    default: true,
    doc: 'Logs with cleanup.policy=compact are compacted',
  }),
  logCleanerThreads: int('log.cleaner.threads', {
    default: 1,
    min: 0,
    dynamic: true,
    doc: 'Logs that are compacted at a time: always one, since one event loop does it; 0 is none',
  }),
  logCleanerBackoffMs: long('log.cleaner.backoff.ms', {
    default: 15_000,
    min: 0,
    dynamic: true,
    doc: 'Time between two looks for logs to compact',
  }),
  logCleanerDedupeBufferSize: long('log.cleaner.dedupe.buffer.size', {
    default: 134_217_728,
    min: 1,
    dynamic: true,
    doc: 'The most memory that the keys of a log take while it is compacted, at 24 bytes a key; a log with more of them is compacted in several passes',
  }),
  logCleanerIoBufferSize: int('log.cleaner.io.buffer.size', {
    default: 524_288,
    min: 0,
    dynamic: true,
    doc: 'The memory through which compaction reads and writes, larger batches apart',
  }),
  logCleanerIoBufferLoadFactor: double('log.cleaner.io.buffer.load.factor', {
    default: 0.9,
    dynamic: true,
    doc: 'How full the memory for keys gets, as a part of 1',
  }),
  logCleanerIoMaxBytesPerSecond: double('log.cleaner.io.max.bytes.per.second', {
    default: Number.MAX_VALUE,
    dynamic: true,
    doc: 'The most bytes a second that compaction reads and writes',
  }),
  logCleanerDeleteRetentionMs: long('log.cleaner.delete.retention.ms', {
    default: 86_400_000,
    min: 0,
    dynamic: true,
    doc: 'How long compaction keeps the mark of a deleted key',
  }),
  logCleanerMinCleanableRatio: double('log.cleaner.min.cleanable.ratio', {
    default: 0.5,
    min: 0,
    max: 1,
    dynamic: true,
    doc: 'A log is compacted when this part of it was not compacted yet',
  }),
  logCleanerMinCompactionLagMs: long('log.cleaner.min.compaction.lag.ms', {
    default: 0,
    min: 0,
    dynamic: true,
    doc: 'A record younger than this is not compacted',
  }),
  logCleanerMaxCompactionLagMs: long('log.cleaner.max.compaction.lag.ms', {
    default: maxLong,
    min: 1,
    dynamic: true,
    doc: 'A record older than this is compacted whatever the ratio',
  }),
  logFlushIntervalMessages: long('log.flush.interval.messages', {
    default: 1,
    kafkaDefault: maxLong,
    min: 1,
    dynamic: true,
    doc: 'At 1 every acknowledged record was synced to disk before the answer; at any other value a partition is synced in the background after this many records. Kafka leaves syncing to the operating system by default',
  }),
  logFlushIntervalMs: long('log.flush.interval.ms', {
    default: null,
    min: 0,
    dynamic: true,
    doc: 'A record is synced to disk at the latest after this time; log.flush.scheduler.interval.ms when not set',
  }),
  logFlushSchedulerIntervalMs: long('log.flush.scheduler.interval.ms', {
    default: maxLong,
    min: 0,
    doc: 'Time between two looks for records that are to be synced',
  }),
  logFlushOffsetCheckpointIntervalMs: int('log.flush.offset.checkpoint.interval.ms', {
    default: 60_000,
    min: 0,
    doc: 'Time between two writes of the recovery points',
  }),
  logFlushStartOffsetCheckpointIntervalMs: int('log.flush.start.offset.checkpoint.interval.ms', {
    default: 60_000,
    min: 0,
    doc: 'Time between two writes of the log start offsets',
  }),
  replicaHighWatermarkCheckpointIntervalMs: long('replica.high.watermark.checkpoint.interval.ms', {
    default: 5000,
    min: 1,
    doc: 'Time between two writes of the high watermarks',
  }),
  replicaFetchWaitMaxMs: int('replica.fetch.wait.max.ms', {
    default: 500,
    min: 0,
    doc: 'How long a leader may keep a follower waiting that has everything',
  }),
  replicaFetchMinBytes: int('replica.fetch.min.bytes', {
    default: 1,
    min: 0,
    doc: 'What a follower waits for, up to replica.fetch.wait.max.ms',
  }),
  replicaFetchMaxBytes: int('replica.fetch.max.bytes', {
    default: 1_048_576,
    min: 0,
    doc: 'What a follower asks of one partition at a time; a larger batch still comes, alone',
  }),
  replicaFetchResponseMaxBytes: int('replica.fetch.response.max.bytes', {
    default: 10_485_760,
    min: 0,
    doc: 'What a follower asks of one leader at a time',
  }),
  replicaFetchBackoffMs: int('replica.fetch.backoff.ms', {
    default: 1000,
    min: 0,
    doc: 'The longest time that a follower waits after a fetch that failed',
  }),
  replicaSocketTimeoutMs: int('replica.socket.timeout.ms', {
    default: 30_000,
    min: 1,
    doc: 'How long a follower waits for a leader that does not answer',
  }),
  replicaLagTimeMaxMs: long('replica.lag.time.max.ms', {
    default: 30_000,
    min: 1,
    doc: 'A follower that has not caught up with its leader for this long leaves the in-sync replicas',
  }),
  logIndexIntervalBytes: int('log.index.interval.bytes', {
    default: 4096,
    min: 0,
    dynamic: true,
    doc: 'Bytes of records between two entries of an index',
  }),
  logIndexSizeMaxBytes: int('log.index.size.max.bytes', {
    default: 10_485_760,
    min: 4,
    dynamic: true,
    doc: 'The largest index; a full one closes its segment',
  }),
  logPreallocate: boolean('log.preallocate', {
    default: false,
    dynamic: true,
    doc: 'A new segment takes its full size on disk at once',
  }),
  logMessageTimestampType: enumOf('log.message.timestamp.type', {
    default: 'CreateTime',
    oneOf: ['CreateTime', 'LogAppendTime'],
    dynamic: true,
    doc: 'The time in a record: the producer’s, or when it was appended',
  }),
  logMessageTimestampBeforeMaxMs: long('log.message.timestamp.before.max.ms', {
    default: maxLong,
    min: 0,
    dynamic: true,
    doc: 'A record whose time is further in the past than this is refused',
  }),
  logMessageTimestampAfterMaxMs: long('log.message.timestamp.after.max.ms', {
    default: 3_600_000,
    min: 0,
    dynamic: true,
    doc: 'A record whose time is further in the future than this is refused',
  }),
  messageMaxBytes: int('message.max.bytes', {
    default: 1_048_588,
    min: 0,
    dynamic: true,
    doc: 'The largest record batch, as compressed',
  }),
  compressionType: enumOf('compression.type', {
    default: 'producer',
    oneOf: ['uncompressed', 'zstd', 'lz4', 'snappy', 'gzip', 'producer'],
    dynamic: true,
    doc: 'How records are stored: as the producer compressed them, or compressed anew',
  }),
  compressionGzipLevel: int('compression.gzip.level', {
    default: -1,
    min: -1,
    max: 9,
    except: 0,
    dynamic: true,
    doc: 'The level of gzip where this broker compresses: compression.type is gzip, or compaction',
  }),
  compressionLz4Level: int('compression.lz4.level', {
    default: 9,
    min: 1,
    max: 17,
    dynamic: true,
    doc: 'The level of lz4 where compression.type is lz4; the library in use has one level only',
  }),
  compressionZstdLevel: int('compression.zstd.level', {
    default: 3,
    min: -131_072,
    max: 22,
    dynamic: true,
    doc: 'The level of zstd where this broker compresses: compression.type is zstd, or compaction',
  }),
  replicaSelectorClass: string('replica.selector.class', {
    default: null,
    oneOf: [rackAwareSelector, 'org.apache.kafka.common.replica.LeaderSelector'],
    doc: 'From which replica consumers read: the leader, or by racks one of their own broker.rack',
  }),
  leaderReplicationThrottledRate: long('leader.replication.throttled.rate', {
    default: maxLong,
    min: 0,
    dynamic: true,
    internal: true,
    doc: 'Bytes a second at which a leader serves the replicas of leader.replication.throttled.replicas',
  }),
  followerReplicationThrottledRate: long('follower.replication.throttled.rate', {
    default: maxLong,
    min: 0,
    dynamic: true,
    internal: true,
    doc: 'Bytes a second at which a follower fetches the replicas of follower.replication.throttled.replicas',
  }),
  replicaAlterLogDirsIoMaxBytesPerSecond: long('replica.alter.log.dirs.io.max.bytes.per.second', {
    default: maxLong,
    min: 0,
    dynamic: true,
    internal: true,
    doc: 'Bytes a second at which replicas are moved from one folder for data to another of the same broker',
  }),
  replicationQuotaWindowNum: int('replication.quota.window.num', {
    default: 11,
    min: 1,
    doc: 'Windows over which the rate of throttled replication is measured',
  }),
  replicationQuotaWindowSizeSeconds: int('replication.quota.window.size.seconds', {
    default: 1,
    min: 1,
    doc: 'The length of one of these windows',
  }),
  minInsyncReplicas: int('min.insync.replicas', {
    default: 1,
    min: 1,
    dynamic: true,
    doc: 'A write with acks=all is refused while fewer replicas than this are in sync',
  }),
  autoLeaderRebalanceEnable: boolean('auto.leader.rebalance.enable', {
    default: true,
    doc: 'Leaderships go back to the replicas that are first in their lists, when those are in sync again',
  }),
  leaderImbalanceCheckIntervalSeconds: long('leader.imbalance.check.interval.seconds', {
    default: 300,
    min: 1,
    doc: 'Time between two looks for partitions that are led by others than their first replica',
  }),
  uncleanLeaderElectionEnable: boolean('unclean.leader.election.enable', {
    default: false,
    dynamic: true,
    doc: 'A replica that is not in sync may become leader when no other is left, which loses records',
  }),
  logLocalRetentionMs: long('log.local.retention.ms', {
    default: -2,
    min: -2,
    dynamic: true,
    doc: 'Told to clients only: tiered storage is not built',
  }),
  logLocalRetentionBytes: long('log.local.retention.bytes', {
    default: -2,
    min: -2,
    dynamic: true,
    doc: 'Told to clients only: tiered storage is not built',
  }),

  // Groups and their offsets.
  groupMinSessionTimeoutMs: int('group.min.session.timeout.ms', {
    default: 6000,
    min: 0,
    doc: 'The shortest session timeout that a member may ask for',
  }),
  groupMaxSessionTimeoutMs: int('group.max.session.timeout.ms', {
    default: 1_800_000,
    min: 0,
    doc: 'The longest session timeout that a member may ask for',
  }),
  groupInitialRebalanceDelayMs: int('group.initial.rebalance.delay.ms', {
    default: 3000,
    singleNodeDefault: 0,
    min: 0,
    doc: 'How long an empty group waits for further members when its first one joins; 0 by default on a single node, so that a first consumer need not wait',
  }),
  groupMaxSize: int('group.max.size', { default: 2_147_483_647, min: 1, doc: 'The most members of a group' }),
  offsetMetadataMaxBytes: int('offset.metadata.max.bytes', {
    default: 4096,
    min: 0,
    doc: 'The longest text that may be committed beside an offset',
  }),
  offsetsTopicNumPartitions: int('offsets.topic.num.partitions', {
    default: 50,
    min: 1,
    doc: 'Partitions of __consumer_offsets; must not change once it is there',
  }),
  offsetsTopicReplicationFactor: short('offsets.topic.replication.factor', {
    default: 3,
    singleNodeDefault: 1,
    min: 1,
    doc: 'Replicas of each partition of __consumer_offsets',
  }),
  offsetsTopicSegmentBytes: int('offsets.topic.segment.bytes', {
    default: 104_857_600,
    min: 1,
    doc: 'The segment size of __consumer_offsets',
  }),
  offsetsCommitTimeoutMs: int('offsets.commit.timeout.ms', {
    default: 5000,
    min: 1,
    doc: 'How long a commit of offsets waits until it is stored',
  }),
  offsetsRetentionMinutes: int('offsets.retention.minutes', {
    default: 10_080,
    min: 1,
    doc: 'How long the offsets of a group without members are kept',
  }),
  offsetsRetentionCheckIntervalMs: long('offsets.retention.check.interval.ms', {
    default: 600_000,
    min: 1,
    doc: 'Time between two looks for offsets to forget',
  }),

  // Idempotent producers.
  producerIdExpirationMs: int('producer.id.expiration.ms', {
    default: 86_400_000,
    min: 1,
    dynamic: true,
    doc: 'A producer that wrote nothing to a partition for this long is forgotten there',
  }),
  producerIdExpirationCheckIntervalMs: int('producer.id.expiration.check.interval.ms', {
    default: 600_000,
    min: 1,
    internal: true,
    doc: 'Time between two looks for producers to forget',
  }),
})

/** The typed value of every declared key. */
export type BrokerValues = ValuesOf<typeof brokerKeys>
