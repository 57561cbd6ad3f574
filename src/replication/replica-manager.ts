import {
  type BrokerEpoch,
  type BrokerId,
  deferred,
  type LeaderEpoch,
  messageOf,
  type Offset,
  partitionName,
  type TopicPartition,
  type Uuid,
} from '../base/index.ts'
import { isThrottledReplica, type TopicConfig } from '../config/index.ts'
import type { OffsetOutOfRange, PartitionLog, ReadResult } from '../log/index.ts'
import {
  directoryOf,
  type MetadataDelta,
  type MetadataImage,
  type PartitionImage,
  type TopicImage,
} from '../metadata/index.ts'
import { nextTurn, type Platform, type Timer } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { BackgroundWork } from './background-work.ts'
import { DelayedFetch, type WatchedPartition } from './delayed-fetch.ts'
import { Fetchers, type FetchersOptions } from './fetchers.ts'
import type { IsrAnswer, WantedIsr } from './in-sync-replicas.ts'
import { type AskForIsrs, IsrChanges } from './isr-changes.ts'
import { Partition } from './partition.ts'
import type { ReplicationQuotas } from './replication-quota.ts'
import type {
  ActiveProducersOutcome,
  AppendOutcome,
  AppendRequest,
  DeleteRecordsOutcome,
  DeleteRecordsRequest,
  EndOffsetOutcome,
  FetchAnswer,
  FetchedPartition,
  FetchPartition,
  FetchRequest,
  LedPartition,
  ListOffsetOutcome,
  ListOffsetRequest,
  PartitionRef,
  ReplicaRefused,
  ReplicaService,
} from './service.ts'

/** The logs of this broker, as the replica manager needs them; `log/` implements it. */
export interface ReplicaLogs {
  get(topic: string, partition: number): PartitionLog | undefined
  /** Opens the partition's log or makes an empty one; a log of an older topic of the same name is discarded first. */
  getOrCreate(options: {
    readonly topic: string
    readonly topicId: Uuid
    readonly partition: number
    readonly config: TopicConfig
    /** It came to this broker after its start: there is no log of it, also where one could be that can't be seen. */
    readonly isNew: boolean
    /** The log directory that it is in, as far as the metadata knows; `zeroUuid` when it doesn't. */
    readonly directoryId: Uuid
  }): Promise<PartitionLog>
  delete(topic: string, partition: number): Promise<void>
  updateTopicConfigs(configs: ReadonlyMap<string, TopicConfig>): void
  /** Every partition of which there is anything on this broker's disks. */
  partitions(): Iterable<TopicPartition>
}

/** Coordinators follow the leaderships of their internal topic. Called in the turn in which the change was published. */
export interface LeadershipListener {
  onLeader(partition: LedPartition): void
  onResigned(topic: string, partition: number, leaderEpoch: LeaderEpoch): void
  onTopicsDeleted(topics: readonly TopicImage[]): void
}

export interface ReplicaManagerOptions {
  readonly platform: Platform
  readonly logger: Logger
  readonly localId: BrokerId
  readonly logs: ReplicaLogs
  /** The topic's effective config as of `image`. */
  readonly topicConfig: (topic: string, image: MetadataImage) => TopicConfig
  /** Of this broker's run; undefined until it is registered. */
  readonly brokerEpoch: () => BrokerEpoch | undefined
  readonly askForIsrs: AskForIsrs
  /** `replica.lag.time.max.ms`. */
  readonly maxLagMs: number
  readonly fetching: Pick<FetchersOptions, 'listenerName' | 'settings'>
  readonly quotas: ReplicationQuotas
}

/** A partition of the image that this broker holds, while its log opens and afterwards. */
interface Hosted {
  readonly topicId: Uuid
  config: TopicConfig
  image: PartitionImage
  /** Undefined while the log opens. */
  partition: Partition | undefined
  /** See `ReplicaLogs.getOrCreate`. */
  readonly isNew: boolean
  /** See `PartitionOptions.wasEmptied`. */
  readonly wasEmptied: boolean
  /** The last that was asked of the controller and not refused; outlives the log's failure. */
  askedIsr: WantedIsr | undefined
  /** Settles when `partition` is there, or can't be: `failure` then tells why. */
  readonly opened: Promise<void>
  failure: Error | undefined
}

/** Reads of one fetch that go to the disk at a time: a few threads of the pool, not all. */
const maxReadsUnderWay = 4

export class ReplicaManager implements ReplicaService {
  readonly #options: ReplicaManagerOptions
  readonly #hosted = new Map<string, Hosted>()
  readonly #listeners: LeadershipListener[] = []
  readonly #isrChanges: IsrChanges
  readonly #fetchers: Fetchers
  readonly #background: BackgroundWork
  #image: MetadataImage | undefined
  #lagTimer: Timer | undefined
  #isStopped = false

  constructor(options: ReplicaManagerOptions) {
    const { platform, logger, localId, brokerEpoch, quotas } = options
    this.#options = options
    this.#isrChanges = new IsrChanges(options.askForIsrs, platform.timers, logger)
    this.#fetchers = new Fetchers({
      platform,
      logger,
      localId,
      brokerEpoch,
      quota: quotas.follower,
      ...options.fetching,
    })
    this.#background = new BackgroundWork(platform.clock, platform.timers)
  }

  /**
   * Nothing is fetched, and no ISR changed, any more. Partitions stay as they are; those whose logs open from now on, in a
   * folder that has room again, begin nothing: it would keep the process from ending.
   */
  stop(): void {
    this.#isStopped = true
    this.#lagTimer?.cancel()
    this.#isrChanges.stop()
    this.#fetchers.stop()
  }

  onLeadership(listener: LeadershipListener): void {
    this.#listeners.push(listener)
  }

  /**
   * Follows the metadata: opens logs, changes roles, deletes. Roles of open partitions change before it returns, and nobody
   * finds a deleted one any more; a new partition's log opens in the background and requests for it wait until it has. The first
   * image has all that was there when this run was registered: what comes here later is new.
   */
  applyDelta(delta: MetadataDelta, image: MetadataImage): void {
    const isNew = this.#image !== undefined
    this.#image = image
    this.#fetchers.applyBrokers(delta, image)
    if (delta.isSnapshot) this.#applySnapshot(image, isNew)
    const deleted = [...delta.deletedTopics.values()]
    for (const topic of deleted) this.#deleteTopic(topic)
    for (const { topic, partitions } of delta.changedTopics.values()) {
      for (const index of partitions) this.#applyPartition(topic, topic.partitions[index]!, image, isNew)
    }
    const { brokers, topics } = delta.changedConfigs
    if (brokers.size > 0) this.#updateConfigs(image.topics.all(), image)
    else if (topics.size > 0) this.#updateConfigs(topicsNamed(topics, image), image)
    if (deleted.length > 0) for (const listener of this.#listeners) listener.onTopicsDeleted(deleted)
  }

  #applySnapshot(image: MetadataImage, isNew: boolean): void {
    for (const [name, hosted] of this.#hosted) {
      if (image.topics.byId(hosted.topicId) === undefined) this.#remove(name, hosted)
    }
    for (const topic of image.topics.all()) {
      for (const partition of topic.partitions) this.#applyPartition(topic, partition, image, isNew)
    }
  }

  #applyPartition(topic: TopicImage, partitionImage: PartitionImage, image: MetadataImage, isNew: boolean): void {
    const name = partitionName(topic.name, partitionImage.partition)
    const existing = this.#hosted.get(name)
    if (!partitionImage.replicas.includes(this.#options.localId)) {
      if (existing !== undefined) this.#remove(name, existing)
      return
    }
    if (existing !== undefined && existing.topicId === topic.topicId) {
      existing.image = partitionImage
      if (existing.partition !== undefined) this.#changeRole(existing.partition, partitionImage)
      return
    }
    if (existing !== undefined) this.#remove(name, existing)
    this.#open(name, topic, partitionImage, image, isNew)
  }

  /** `before`: the deletion of the log that it has an empty one in place of. */
  #open(
    name: string,
    topic: TopicImage,
    partitionImage: PartitionImage,
    image: MetadataImage,
    isNew: boolean,
    before?: Promise<void>,
  ): Hosted {
    const opening = deferred<void>()
    before?.catch(() => undefined) // seen when its turn comes
    const hosted: Hosted = {
      topicId: topic.topicId,
      config: this.#options.topicConfig(topic.name, image),
      image: partitionImage,
      partition: undefined,
      isNew,
      wasEmptied: before !== undefined,
      askedIsr: undefined,
      failure: undefined,
      opened: opening.promise,
    }
    this.#hosted.set(name, hosted)
    void this.#background.add(() => this.#openLog(name, topic.name, hosted, before)).then(opening.resolve)
    return hosted
  }

  async #openLog(name: string, topic: string, hosted: Hosted, before?: Promise<void>): Promise<void> {
    const { logs, logger, localId } = this.#options
    const { topicId, config, image, isNew } = hosted
    try {
      await before
      if (this.#hosted.get(name) !== hosted) return // deleted or moved away before its turn came
      const directoryId = directoryOf(image, localId)
      const log = await logs.getOrCreate({ topic, topicId, partition: image.partition, config, isNew, directoryId })
      this.#onOpened(name, hosted, log)
    } catch (error) {
      hosted.failure = error as Error
      logger.error({ partition: name, error: messageOf(error) }, 'partition log cannot be opened')
    }
  }

  #onOpened(name: string, hosted: Hosted, log: PartitionLog): void {
    if (this.#hosted.get(name) !== hosted) return // deleted or moved away while it opened
    hosted.partition = new Partition({
      topic: log.topic,
      partition: log.partition,
      localId: this.#options.localId,
      platform: this.#options.platform,
      log,
      wasEmptied: hosted.wasEmptied,
      askedIsr: hosted.askedIsr,
      minInSyncReplicas: () => hosted.config.minInSyncReplicas,
      mayJoinIsr: (replica, brokerEpoch) => this.#mayJoinIsr(replica, brokerEpoch),
      onIsrWanted: (partition, wanted) => this.#askForIsr(name, partition, wanted),
      onFault: (error) => this.#options.logger.error({ partition: name, error }, 'request failed in a partition'),
    })
    this.#setThrottles(hosted.partition, hosted.config)
    this.#changeRole(hosted.partition, hosted.image)
  }

  #setThrottles(partition: Partition, { leaderThrottledReplicas, followerThrottledReplicas }: TopicConfig): void {
    const { localId } = this.#options
    partition.isThrottledAsLeader = isThrottledReplica(leaderThrottledReplicas, partition.partition, localId)
    partition.isThrottledAsFollower = isThrottledReplica(followerThrottledReplicas, partition.partition, localId)
  }

  #changeRole(partition: Partition, image: PartitionImage): void {
    const wasLeader = partition.isLeader
    const previousEpoch = partition.leaderEpoch
    partition.applyImage(image)
    if (!this.#isStopped) this.#fetchers.follow(partition, image)
    if (partition.isLeader && image.replicas.length > 1) this.#watchLag()
    if (wasLeader && previousEpoch !== partition.leaderEpoch) this.#tellResigned(partition, previousEpoch)
    if (partition.isLeader && (!wasLeader || previousEpoch !== partition.leaderEpoch)) {
      for (const listener of this.#listeners) listener.onLeader(partition)
    }
  }

  #tellResigned(partition: Partition, leaderEpoch: LeaderEpoch): void {
    this.#isrChanges.forget(partition.log.topicId, partition.partition, leaderEpoch)
    for (const listener of this.#listeners) listener.onResigned(partition.topic, partition.partition, leaderEpoch)
  }

  // ---- in-sync replicas ----

  #mayJoinIsr(replica: BrokerId, brokerEpoch: BrokerEpoch | undefined): boolean {
    const broker = this.#image?.cluster.broker(replica)
    if (broker === undefined || broker.fenced || broker.inControlledShutdown) return false
    return brokerEpoch === undefined || brokerEpoch === broker.brokerEpoch
  }

  #askForIsr(name: string, partition: Partition, wanted: WantedIsr): void {
    const { localId, brokerEpoch } = this.#options
    const hosted = this.#hosted.get(name)
    if (hosted?.partition !== partition) return
    hosted.askedIsr = wanted
    const epochOf = (replica: BrokerId) => (replica === localId ? brokerEpoch() : partition.brokerEpochOf(replica))
    const request = {
      topicId: hosted.topicId,
      partition: partition.partition,
      leaderEpoch: partition.leaderEpoch,
      partitionEpoch: wanted.partitionEpoch,
      isr: wanted.isr.map((brokerId) => ({ brokerId, brokerEpoch: epochOf(brokerId) ?? null })),
    }
    this.#options.logger.info({ partition: name, ...wanted }, 'isr wanted')
    this.#isrChanges.request(request, (answer) => this.#onIsrAnswer(name, wanted, answer))
  }

  /** Also of what was asked for before the partition's log was opened anew. */
  #onIsrAnswer(name: string, wanted: WantedIsr, answer: IsrAnswer): void {
    const hosted = this.#hosted.get(name)
    if (hosted?.askedIsr !== wanted) return
    // What is accepted, or overtaken, comes with the metadata: until then a log that is opened anew counts with it.
    if (!answer.ok && answer.reason === 'refused') hosted.askedIsr = undefined
    hosted.partition?.onIsrAnswer(wanted, answer)
  }

  /** Looks at the followers' lag twice within the time that they may have. */
  #watchLag(): void {
    if (this.#lagTimer !== undefined || this.#isStopped) return
    const { platform, maxLagMs } = this.#options
    const look = (): void => {
      for (const { partition } of this.#hosted.values()) partition?.shrinkIsr(maxLagMs)
      this.#lagTimer = platform.timers.set(maxLagMs / 2, look)
    }
    this.#lagTimer = platform.timers.set(maxLagMs / 2, look)
  }

  #deleteTopic(topic: TopicImage): void {
    for (const { partition } of topic.partitions) {
      const name = partitionName(topic.name, partition)
      const hosted = this.#hosted.get(name)
      if (hosted?.topicId === topic.topicId) this.#remove(name, hosted)
    }
  }

  #remove(name: string, hosted: Hosted): void {
    this.#hosted.delete(name)
    const { partition } = hosted
    if (partition?.isLeader) this.#tellResigned(partition, partition.leaderEpoch)
    if (partition !== undefined) this.#fetchers.unfollow(partition)
    void this.#background.add(() => this.#removeLog(name, hosted))
  }

  /** What waited there is answered, and the log deleted, also one that could not be opened. Nobody finds the partition any more. */
  async #removeLog(name: string, hosted: Hosted): Promise<void> {
    hosted.partition?.remove()
    await hosted.opened
    // A topic of the same name that was made meanwhile replaces the log itself.
    if (this.#hosted.has(name)) return
    const separator = name.lastIndexOf('-')
    await this.#deleteLog(name.slice(0, separator), Number(name.slice(separator + 1)))
  }

  /** It serves nothing any more, and who waits for it is answered. */
  #leave(name: string, { partition }: Hosted): void {
    this.#hosted.delete(name)
    if (partition?.isLeader) this.#tellResigned(partition, partition.leaderEpoch)
    if (partition !== undefined) this.#fetchers.unfollow(partition)
    partition?.remove()
  }

  #updateConfigs(topics: Iterable<TopicImage>, image: MetadataImage): void {
    const configs = new Map<string, TopicConfig>()
    for (const topic of topics) {
      const config = this.#options.topicConfig(topic.name, image)
      configs.set(topic.name, config)
      for (const { partition } of topic.partitions) {
        const hosted = this.#hosted.get(partitionName(topic.name, partition))
        if (hosted === undefined) continue
        hosted.config = config
        if (hosted.partition !== undefined) this.#setThrottles(hosted.partition, config)
      }
    }
    this.#options.logs.updateTopicConfigs(configs)
  }

  /** Opens anew what could not be opened, or failed, now that its directory works again. Acknowledged records are all there. */
  reopenFailed(image: MetadataImage): void {
    for (const [name, hosted] of [...this.#hosted]) {
      if (hosted.failure === undefined && !hosted.partition?.hasFailed) continue
      const topic = image.topics.byId(hosted.topicId)
      if (hosted.partition !== undefined) this.#fetchers.unfollow(hosted.partition)
      hosted.partition?.remove()
      // Whether the controller has made it so by now isn't known: the high watermark counts it until that is.
      if (topic !== undefined) this.#open(name, topic, hosted.image, image, hosted.isNew).askedIsr = hosted.askedIsr
    }
  }

  /**
   * Gives every partition of the topics an empty log in place of its own, in the same leader epoch: its first record gets offset 0 again. Who
   * waits for one is answered as if it had moved. Resolves when all are open; rejects when one can't be emptied, which is out of use then.
   */
  async empty(topics: Iterable<TopicImage>, image: MetadataImage): Promise<void> {
    const emptied: Hosted[] = []
    for (const topic of topics) {
      for (const { partition } of topic.partitions) {
        const name = partitionName(topic.name, partition)
        const hosted = this.#hosted.get(name)
        if (hosted === undefined) continue
        this.#leave(name, hosted)
        const deleted = hosted.opened.then(() => this.#options.logs.delete(topic.name, partition))
        // One that could not be opened may have a log where none can be deleted.
        const isNew = hosted.isNew || hosted.partition !== undefined
        emptied.push(this.#open(name, topic, hosted.image, image, isNew, deleted))
      }
    }
    await Promise.all(emptied.map(({ opened }) => opened))
    for (const { failure } of emptied) if (failure !== undefined) throw failure
  }

  /**
   * Deletes the logs, damaged ones and unfinished copies of partitions that this broker doesn't hold: of topics that were deleted, or that moved to other brokers,
   * while it, or the log directory, was away, or just before it ended. None before the first image. Never rejects.
   */
  async deleteStrays(): Promise<void> {
    if (this.#image === undefined) return
    for (const { topic, partition } of [...this.#options.logs.partitions()]) {
      // One that comes back from now on gets its log after the deletion: both are done in turn.
      if (this.#hosted.has(partitionName(topic, partition))) continue
      this.#options.logger.info({ topic, partition }, 'log of a partition found that is not here')
      await this.#deleteLog(topic, partition)
    }
  }

  async #deleteLog(topic: string, partition: number): Promise<void> {
    try {
      await this.#options.logs.delete(topic, partition)
    } catch (error) {
      const name = partitionName(topic, partition)
      this.#options.logger.warn({ partition: name, error: messageOf(error) }, 'partition log cannot be deleted')
    }
  }

  /** Resolves when every partition of the image that this broker holds is open, or has failed to open. */
  async whenOpened(): Promise<void> {
    for (const hosted of [...this.#hosted.values()]) await hosted.opened
  }

  /** The open partition, whatever its role; waits while its log opens. */
  #find(ref: PartitionRef): Partition | ReplicaRefused | Promise<Partition | ReplicaRefused> {
    const hosted = this.#hosted.get(partitionName(ref.topic, ref.partition))
    if (hosted === undefined) return { ok: false, reason: this.#whyNotHosted(ref) }
    if (ref.topicId !== undefined && ref.topicId !== hosted.topicId) {
      return { ok: false, reason: 'inconsistent-topic-id' }
    }
    if (hosted.partition !== undefined) return hosted.partition
    if (hosted.failure !== undefined) return { ok: false, reason: 'storage-error', message: hosted.failure.message }
    return hosted.opened.then(() => this.#find(ref))
  }

  /** A partition of another broker is no reason for a client to think that its topic is gone. */
  #whyNotHosted({ topic, partition }: PartitionRef): 'not-leader-or-follower' | 'unknown-topic-or-partition' {
    const isKnown = this.#image?.topics.byName(topic)?.partitions[partition] !== undefined
    return isKnown ? 'not-leader-or-follower' : 'unknown-topic-or-partition'
  }

  /** A partition that this broker leads in `leaderEpoch`; undefined otherwise, also while its log opens. */
  led(topic: string, partition: number, leaderEpoch: LeaderEpoch): Partition | undefined {
    const open = this.#hosted.get(partitionName(topic, partition))?.partition
    return open?.isLeader && open.leaderEpoch === leaderEpoch ? open : undefined
  }

  append(request: AppendRequest): Promise<AppendOutcome> {
    const found = this.#find(request)
    if (found instanceof Promise) return found.then((partition) => appendTo(partition, request))
    return appendTo(found, request)
  }

  async fetch(request: FetchRequest): Promise<FetchAnswer> {
    const startedMs = this.#options.platform.clock.monotonic()
    for (;;) {
      const attempt = await this.#readWithin(request)
      const waitedMs = this.#options.platform.clock.monotonic() - startedMs
      const leftMs = Math.min(request.maxWaitMs - waitedMs, attempt.throttledMs || Number.POSITIVE_INFINITY)
      const isEnough = attempt.mustAnswer || attempt.sizeBytes >= Math.min(request.minBytes, attempt.limitBytes)
      if (isEnough || waitedMs >= request.maxWaitMs || request.signal?.aborted) {
        this.#options.quotas.leader.record(attempt.throttledBytes)
        return attempt.answer
      }
      attempt.answer.release()
      await new Promise<void>((resolve) => {
        const missingBytes = Math.min(request.minBytes, attempt.limitBytes) - attempt.sizeBytes
        new DelayedFetch(this.#options.platform, attempt.watched, missingBytes, leftMs, request.signal, resolve)
      })
    }
  }

  async #readWithin(request: FetchRequest): Promise<FetchAttempt> {
    const loan = request.lend?.(request.maxBytes)
    try {
      return await this.#readAll(request, loan?.bytes ?? request.maxBytes)
    } finally {
      loan?.giveBack()
    }
  }

  /**
   * Reads what every partition has now, in the order asked, within the limits. What a read that goes to the disk may bring counts as
   * brought, so that the next ones can begin meanwhile.
   */
  async #readAll(request: FetchRequest, limitBytes: number): Promise<FetchAttempt> {
    const fetched: FetchedPartition[] = new Array(request.partitions.length)
    const watched = new Map<Partition, WatchedPartition>()
    const { leader: quota } = this.#options.quotas
    let throttledMs = 0
    let throttledBytes = 0
    const reads: ReadResult[] = []
    const underWay: Promise<void>[] = []
    let sizeBytes = 0
    let leftBytes = limitBytes
    let minOneBatch = true
    let mustAnswer = request.partitions.length === 0
    const refuse = (index: number, refused: ReplicaRefused): void => {
      mustAnswer = true
      fetched[index] = refusedFetch(refused)
    }
    const settle = (index: number, partition: Partition, read: ReadResult | ReplicaRefused): void => {
      if ('reason' in read) {
        refuse(index, read)
        return
      }
      reads.push(read)
      sizeBytes += read.sizeBytes
      if (request.follower !== undefined && partition.isThrottledAsLeader) throttledBytes += read.sizeBytes
      fetched[index] = { ...fetchedFrom(partition), chunks: read.chunks, sizeBytes: read.sizeBytes }
    }
    const count = request.partitions.length
    /** A follower gets what is throttled last, so that it takes nothing from the rest of an answer. */
    const throttledIndexes: number[] = []
    for (let visited = 0; visited < count + throttledIndexes.length; visited++) {
      const index = visited < count ? visited : throttledIndexes[visited - count]!
      const asked = request.partitions[index]!
      if (visited % partitionsPerTurn === partitionsPerTurn - 1) await nextTurn(this.#options.platform.timers)
      const found = this.#find(asked)
      const partition = found instanceof Promise ? await found : found
      const isForLast =
        request.follower !== undefined && partition instanceof Partition && partition.isThrottledAsLeader
      if (isForLast && visited < count) {
        throttledIndexes.push(index)
        continue
      }
      const refused = partition instanceof Partition ? this.#refusalOf(partition, asked, request) : partition
      if (refused !== undefined || !(partition instanceof Partition)) {
        refuse(index, refused as ReplicaRefused)
        continue
      }
      const divergingEpoch = divergingEpochOf(partition, asked)
      if (divergingEpoch !== undefined) {
        mustAnswer = true
        fetched[index] = { ...fetchedFrom(partition), divergingEpoch, chunks: [], sizeBytes: 0 }
        continue
      }
      const quotaMs = isThrottled(partition, request) ? quota.waitMs : 0
      if (quotaMs > 0) {
        // What the follower has counts all the same; bytes that it may not have yet don't end its wait.
        settle(index, partition, await readPartition(partition, asked, request, 0, false))
        throttledMs = quotaMs
        continue
      }
      if (!watched.has(partition)) {
        const limit = request.follower === undefined ? 'committed' : 'appended'
        watched.set(partition, {
          partition,
          limit,
          readableBytesAtRead: partition.readableBytes(limit),
          leaderEpochAtRead: partition.leaderEpoch,
          maxBytes: asked.maxBytes,
        })
      }
      const ownLimitBytes = Math.min(asked.maxBytes, leftBytes)
      const read = readPartition(partition, asked, request, ownLimitBytes, minOneBatch)
      if (read instanceof Promise) {
        leftBytes -= Math.max(0, ownLimitBytes)
        minOneBatch = false // it goes to the disk because there is something to read
        underWay.push(read.then((done) => settle(index, partition, done)))
        if (underWay.length === maxReadsUnderWay) await Promise.all(underWay.splice(0))
      } else {
        settle(index, partition, read)
        if ('reason' in read || read.sizeBytes === 0) continue
        leftBytes -= read.sizeBytes
        minOneBatch = false
      }
    }
    await Promise.all(underWay)
    return {
      sizeBytes,
      throttledBytes,
      throttledMs,
      limitBytes,
      mustAnswer,
      watched: [...watched.values()],
      answer: {
        partitions: fetched,
        release() {
          for (const read of reads.splice(0)) read.release()
        },
      },
    }
  }

  #refusalOf(
    partition: Partition,
    { currentLeaderEpoch }: FetchPartition,
    { follower, anyReplica }: FetchRequest,
  ): ReplicaRefused | undefined {
    if (anyReplica === true) return partition.checkReplica(currentLeaderEpoch)
    const refused = partition.checkLeader(currentLeaderEpoch)
    if (refused !== undefined || follower === undefined) return refused
    // Of a run that has ended, of a broker that has no replica, or of this one.
    const { replica, brokerEpoch } = follower
    const registered = this.#image?.cluster.broker(replica)?.brokerEpoch ?? -1
    const isStale = brokerEpoch !== -1 && brokerEpoch < registered
    return isStale || !partition.mayFollow(replica) ? { ok: false, reason: 'not-leader-or-follower' } : undefined
  }

  async listOffset(request: ListOffsetRequest): Promise<ListOffsetOutcome> {
    const partition = await this.#find(request)
    if (!(partition instanceof Partition)) return partition
    const refused = partition.checkLeader(request.currentLeaderEpoch)
    if (refused !== undefined) return refused
    const { log } = partition
    const endOffset = request.byFollower === true ? log.logEndOffset : consumersEnd(partition, request.isolation)
    try {
      switch (request.target) {
        case 'latest':
          return { ok: true, offset: endOffset, timestampMs: -1, leaderEpoch: partition.leaderEpoch }
        case 'earliest':
          return {
            ok: true,
            offset: log.logStartOffset,
            timestampMs: -1,
            leaderEpoch: log.epochForOffset(log.logStartOffset),
          }
        case 'max-timestamp':
          return foundOffset(await log.offsetOfMaxTimestamp(endOffset))
        default:
          return foundOffset(await log.offsetForTimestamp(request.target.timestampMs, endOffset))
      }
    } catch (error) {
      return partition.refusalOf(error)
    }
  }

  async deleteRecords(request: DeleteRecordsRequest): Promise<DeleteRecordsOutcome> {
    const partition = await this.#find(request)
    if (!(partition instanceof Partition)) return partition
    const cleanupPolicy = this.#hosted.get(partitionName(request.topic, request.partition))?.config.cleanupPolicy
    if (cleanupPolicy?.compact === true && !cleanupPolicy.delete) {
      return { ok: false, reason: 'policy-violation', message: 'The topic is compacted, and records are not deleted' }
    }
    const { timers } = this.#options.platform
    return await new Promise((resolve) => {
      const overdue = new AbortController()
      const timer = timers.set(request.timeoutMs, () => {
        overdue.abort()
        resolve({ ok: false, reason: 'request-timed-out' })
      })
      const isAlive = (replica: BrokerId) => this.#image?.cluster.broker(replica)?.fenced === false
      void partition.deleteRecords(request.beforeOffset, isAlive, overdue.signal).then((outcome) => {
        timer.cancel()
        resolve(outcome)
      })
    })
  }

  async endOffsetForEpoch(
    ref: PartitionRef,
    currentLeaderEpoch: LeaderEpoch | -1,
    leaderEpoch: LeaderEpoch,
  ): Promise<EndOffsetOutcome> {
    const partition = await this.#find(ref)
    if (!(partition instanceof Partition)) return partition
    const refused = partition.checkLeader(currentLeaderEpoch)
    return refused ?? { ok: true, ...partition.log.endOffsetForEpoch(leaderEpoch) }
  }

  async activeProducers(ref: PartitionRef): Promise<ActiveProducersOutcome> {
    const partition = await this.#find(ref)
    return partition instanceof Partition ? { ok: true, producers: partition.log.activeProducers() } : partition
  }
}

/** Partitions of one fetch that are read before others get a turn of the event loop. */
const partitionsPerTurn = 500

/** Those that are there: the configs of a deleted topic changed too. */
function topicsNamed(names: Iterable<string>, image: MetadataImage): TopicImage[] {
  return [...names].flatMap((name) => image.topics.byName(name) ?? [])
}

interface FetchAttempt {
  readonly answer: FetchAnswer
  readonly sizeBytes: number
  /** Of them, those of throttled replicas. */
  readonly throttledBytes: number
  /** Until what was left out, for the quota, can be read; 0 when nothing was. */
  readonly throttledMs: number
  /** What it could have brought at most. */
  readonly limitBytes: number
  /** An error, or nothing asked: no use to wait. */
  readonly mustAnswer: boolean
  readonly watched: readonly WatchedPartition[]
}

/** The follower's replica is one that the quota is for: members of the ISR never wait, or they would not stay in it. */
function isThrottled(partition: Partition, { follower }: FetchRequest): boolean {
  return follower !== undefined && partition.isThrottledAsLeader && !partition.isInSync(follower.replica)
}

function appendTo(partition: Partition | ReplicaRefused, request: AppendRequest): Promise<AppendOutcome> {
  return partition instanceof Partition ? partition.append(request) : Promise.resolve(partition)
}

function readPartition(
  partition: Partition,
  asked: FetchPartition,
  request: FetchRequest,
  limitBytes: number,
  minOneBatch: boolean,
): ReadResult | ReplicaRefused | Promise<ReadResult | ReplicaRefused> {
  const { log } = partition
  const { follower } = request
  const endOffset = follower === undefined ? consumersEnd(partition, request.isolation) : log.logEndOffset
  if (isEpochUnknown(partition, asked)) return { ok: false, reason: 'offset-out-of-range' }
  if (asked.fetchOffset < log.logStartOffset || asked.fetchOffset > log.logEndOffset) {
    return { ok: false, reason: 'offset-out-of-range' }
  }
  if (follower !== undefined) {
    const { fetchOffset, logStartOffset = 0 } = asked
    partition.onFollowerFetch({ ...follower, fetchOffset, logStartOffset })
  }
  if (asked.fetchOffset >= endOffset || (limitBytes <= 0 && !minOneBatch)) return emptyRead
  try {
    const read = log.read({
      fetchOffset: asked.fetchOffset,
      endOffset,
      maxBytes: Math.max(0, limitBytes),
      minOneBatch,
    })
    return read instanceof Promise
      ? read.then(readOutcome, (error: unknown) => partition.refusalOf(error))
      : readOutcome(read)
  } catch (error) {
    return partition.refusalOf(error)
  }
}

function consumersEnd(partition: Partition, isolation: FetchRequest['isolation']): Offset {
  return isolation === 'read-committed' ? partition.lastStableOffset : partition.highWatermark
}

function readOutcome(read: ReadResult | OffsetOutOfRange): ReadResult | ReplicaRefused {
  return 'outOfRange' in read ? { ok: false, reason: 'offset-out-of-range' } : read
}

function fetchedFrom(partition: Partition): Omit<FetchedPartition, 'chunks' | 'sizeBytes'> {
  const { highWatermark, lastStableOffset, log } = partition
  return { outcome: { ok: true }, highWatermark, lastStableOffset, logStartOffset: log.logStartOffset }
}

/** Where this log parts from the reader's; undefined when it doesn't, or the reader doesn't ask. */
function divergingEpochOf(
  { log, wasEmptied }: Partition,
  { fetchOffset, lastFetchedEpoch = -1 as LeaderEpoch }: FetchPartition,
): FetchedPartition['divergingEpoch'] {
  if (lastFetchedEpoch < 0) return undefined
  // Out of range: all clients know what to do then, while some take a diverging epoch for an answer without records.
  if (wasEmptied && fetchOffset > log.logEndOffset) return undefined
  const { leaderEpoch: epoch, endOffset } = log.endOffsetForEpoch(lastFetchedEpoch as LeaderEpoch)
  if (epoch < 0) return undefined
  return epoch < lastFetchedEpoch || endOffset < fetchOffset ? { epoch, endOffset } : undefined
}

/** An epoch that this log has never seen: it lost what the reader knows. */
function isEpochUnknown({ log }: Partition, { lastFetchedEpoch = -1 as LeaderEpoch }: FetchPartition): boolean {
  return lastFetchedEpoch >= 0 && log.endOffsetForEpoch(lastFetchedEpoch as LeaderEpoch).leaderEpoch < 0
}

const emptyRead: ReadResult = { chunks: [], sizeBytes: 0, release() {} }

function refusedFetch(outcome: ReplicaRefused): FetchedPartition {
  return { outcome, highWatermark: -1, lastStableOffset: -1, logStartOffset: -1, chunks: [], sizeBytes: 0 }
}

function foundOffset(
  found: { timestamp: number; offset: Offset; leaderEpoch: LeaderEpoch } | undefined,
): ListOffsetOutcome {
  if (found === undefined) return { ok: true, offset: -1, timestampMs: -1, leaderEpoch: -1 as LeaderEpoch }
  return { ok: true, offset: found.offset, timestampMs: found.timestamp, leaderEpoch: found.leaderEpoch }
}
