import {
  type BrokerEpoch,
  type BrokerId,
  type LeaderEpoch,
  messageOf,
  partitionName,
  type Uuid,
} from '../base/index.ts'
import { StorageError } from '../log/index.ts'
import { KafkaClient } from '../network/index.ts'
import type { Platform, Timer } from '../platform/index.ts'
import { apis, CorruptBatchError, ErrorCode, type FetchResponse } from '../protocol/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { FetchSessionClient, type PartitionFetch } from './fetch-session-client.ts'
import type { Partition } from './partition.ts'
import type { ReplicationQuota } from './replication-quota.ts'

export interface FetcherSettings {
  /** `replica.fetch.wait.max.ms`. */
  readonly maxWaitMs: number
  /** `replica.fetch.min.bytes`. */
  readonly minBytes: number
  /** `replica.fetch.max.bytes`, of one partition. */
  readonly maxPartitionBytes: number
  /** `replica.fetch.response.max.bytes`. */
  readonly maxBytes: number
  /** `replica.fetch.backoff.ms`: the longest wait after a failure. */
  readonly backoffMs: number
  /** `replica.socket.timeout.ms`. */
  readonly requestTimeoutMs: number
}

export interface ReplicaFetcherOptions {
  readonly platform: Platform
  readonly logger: Logger
  readonly localId: BrokerId
  readonly leaderId: BrokerId
  /** Of this broker's run; undefined until it is registered. */
  readonly brokerEpoch: () => BrokerEpoch | undefined
  /** Where the leader is now; undefined when nobody knows. */
  readonly endpoint: () => { readonly host: string; readonly port: number } | undefined
  readonly settings: FetcherSettings
  /** Of what all fetchers of this broker bring of throttled replicas. */
  readonly quota: ReplicationQuota
}

/** A partition that is fetched, in the leader epoch in which it began to be. */
interface Followed {
  readonly topicId: Uuid
  readonly partition: Partition
  readonly leaderEpoch: LeaderEpoch
  /** Not fetched before this time, of the monotonic clock: the leader refused it, or this replica is being cut. */
  delayedUntilMs: number
  /** How often in a row the leader refused it. */
  refusals: number
  /** Its last fetch brought all that was committed: it is never throttled then, or it would fall behind again. */
  isCaughtUp: boolean
}

type PartitionAnswer = FetchResponse['responses'][number]['partitions'][number]

const fetchVersion = 17
const listOffsetsVersion = 7
/** The first wait after a failure; doubled up to the setting. */
const firstBackoffMs = 25
/** The first wait after a leader refused a partition; doubled up to a quarter of the setting. */
const firstRefusedMs = 5
/** A new partition may cut a long poll short, but not more often than this. */
const interruptMs = 10

/**
 * Copies from one leader broker what this broker follows there: one request at a time over one connection, for all partitions. What
 * a request brought is appended, and synced where acknowledgements wait for that, before the next one is sent: its fetch
 * offsets are the acknowledgement, the only one there is.
 *
 * A partition's answer is of use only in the leader epoch in which it was asked for; the partition itself checks. A fault of
 * one partition (its log, a bad batch, another leader) delays that one and no other.
 */
export class ReplicaFetcher {
  readonly #options: ReplicaFetcherOptions
  readonly #followed = new Map<string, Followed>()
  readonly #session = new FetchSessionClient()
  #client: KafkaClient | undefined
  #failures = 0
  #isRunning = false
  #isStopped = false
  /** One came since it was last looked for what is due. */
  #hasNew = false
  /** Ends the pause of now. */
  #wake: (() => void) | undefined
  /** A long poll is under way. */
  #isPolling = false
  #interrupt: Timer | undefined

  constructor(options: ReplicaFetcherOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#followed.size === 0
  }

  follow(topicId: Uuid, partition: Partition, leaderEpoch: LeaderEpoch): void {
    const followed = { topicId, partition, leaderEpoch, delayedUntilMs: 0, refusals: 0, isCaughtUp: false }
    this.#followed.set(nameOf(partition), followed)
    this.#hasNew = true
    this.#wake?.()
    this.#interruptPoll()
    if (!this.#isRunning) void this.#run()
  }

  /** True when it was followed here. */
  unfollow(partition: Partition): boolean {
    return this.#followed.delete(nameOf(partition))
  }

  stop(): void {
    this.#isStopped = true
    this.#followed.clear()
    this.#interrupt?.cancel()
    this.#disconnect()
    this.#wake?.()
  }

  /** The leader's process has ended or moved: whatever is under way leads to nothing. */
  reconnect(): void {
    this.#disconnect()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    try {
      while (!this.#isStopped && this.#followed.size > 0) {
        const due = await this.#prepare()
        if (due.length === 0) await this.#pause(this.#nextDelayMs())
        else if (!(await this.#fetchOnce(due))) await this.#pause(this.#backoffMs())
      }
    } finally {
      this.#isRunning = false
    }
    if (!this.#isStopped && this.#followed.size > 0)
      void this.#run() // one came while it ended
    else this.#disconnect()
  }

  /** Those that may be fetched now, with everything that they hold on disk. */
  async #prepare(): Promise<readonly Followed[]> {
    this.#hasNew = false
    const nowMs = this.#options.platform.clock.monotonic()
    const { isExceeded } = this.#options.quota
    const due = [...this.#followed.values()].filter(
      (followed) => followed.delayedUntilMs <= nowMs && !(isExceeded && isThrottled(followed)),
    )
    const unsynced = due.filter(
      ({ partition: { log } }) => log.acksWaitForFlush && log.flushedOffset < log.logEndOffset,
    )
    if (unsynced.length === 0) return due
    const failed = new Set<Followed>()
    await Promise.all(
      unsynced.map(async (followed) => {
        try {
          await followed.partition.log.flush() // throws at once where the log is offline
        } catch (error) {
          failed.add(followed)
          this.#onPartitionFault(followed, error)
        }
      }),
    )
    return due.filter((followed) => !failed.has(followed) && this.#isFollowed(followed))
  }

  /** False: nothing came of it, and the next attempt should wait. */
  async #fetchOnce(due: readonly Followed[]): Promise<boolean> {
    const client = await this.#connect()
    if (client === undefined) return false
    if (this.#hasNew) return true // a whole image may have come since: a long poll of what was there before would hold all that up
    const { localId, brokerEpoch, settings } = this.#options
    const maxWaitMs = this.#maxWaitMs(due)
    const request = this.#session.next(due.map((followed) => this.#fetchOf(followed)))
    let response: FetchResponse
    this.#isPolling = true
    try {
      response = await client.request(
        apis.Fetch,
        fetchVersion,
        {
          replicaState: { replicaId: localId, replicaEpoch: brokerEpoch() ?? -1 },
          maxWaitMs,
          minBytes: settings.minBytes,
          maxBytes: settings.maxBytes,
          isolationLevel: 0,
          sessionId: request.sessionId,
          sessionEpoch: request.sessionEpoch,
          topics: byTopic(request.partitions).map(([topicId, fetches]) => ({
            topicId,
            partitions: fetches.map(toWire),
          })),
          forgottenTopicsData: byTopic(request.forgotten).map(([topicId, each]) => ({
            topicId,
            partitions: each.map(({ partition }) => partition),
          })),
          rackId: '',
        },
        { timeoutMs: maxWaitMs + settings.requestTimeoutMs },
      )
    } catch (error) {
      return this.#onRequestFault(client, error)
    } finally {
      this.#isPolling = false
      this.#interrupt?.cancel()
      this.#interrupt = undefined
    }
    this.#failures = 0
    if (!this.#session.onAnswer(response.errorCode, response.sessionId)) return true
    await this.#onAnswers(response, new Map(due.map((followed) => [keyOf(followed), followed])))
    return true
  }

  /** A long poll ends when those that it leaves out may be fetched: they were delayed, or wait for the quota. */
  #maxWaitMs(due: readonly Followed[]): number {
    const { maxWaitMs } = this.#options.settings
    return due.length === this.#followed.size ? maxWaitMs : Math.min(maxWaitMs, Math.ceil(this.#nextDelayMs(due)))
  }

  #fetchOf({ topicId, partition, leaderEpoch }: Followed): PartitionFetch {
    const { log } = partition
    return {
      topicId,
      partition: partition.partition,
      currentLeaderEpoch: leaderEpoch,
      fetchOffset: log.logEndOffset,
      lastFetchedEpoch: log.latestEpoch,
      logStartOffset: log.logStartOffset,
      maxBytes: this.#options.settings.maxPartitionBytes,
    }
  }

  async #onAnswers(response: FetchResponse, due: ReadonlyMap<string, Followed>): Promise<void> {
    const slow: Promise<void>[] = []
    for (const { topicId, partitions } of response.responses) {
      for (const answer of partitions) {
        const followed = due.get(`${answer.partitionIndex}/${topicId}`)
        if (followed === undefined || !this.#isFollowed(followed)) continue
        const work = this.#onAnswer(followed, answer)
        if (work !== undefined) slow.push(work.catch((error: unknown) => this.#onPartitionFault(followed, error)))
      }
    }
    await Promise.all(slow)
  }

  /** Appends at once; what takes longer is the promise. */
  #onAnswer(followed: Followed, answer: PartitionAnswer): Promise<void> | undefined {
    const { partition, leaderEpoch } = followed
    const { errorCode, divergingEpoch, records, highWatermark, logStartOffset } = answer
    if (errorCode !== ErrorCode.NONE) return this.#onRefused(followed, errorCode)
    followed.refusals = 0
    if (divergingEpoch.epoch >= 0) {
      const { epoch, endOffset } = divergingEpoch
      this.#logOf(followed).info({ epoch, endOffset }, 'log differs from the leader and is cut')
      const end = { epoch: epoch as LeaderEpoch, endOffset }
      return this.#cut(followed, () => partition.truncateToLeader(leaderEpoch, end))
    }
    // Of those that are caught up too, as in Kafka: the limit is for all that is listed.
    if (partition.isThrottledAsFollower) this.#options.quota.record(records?.length ?? 0)
    if (partition.startsWithin(records)) return partition.appendFirst(leaderEpoch, records, highWatermark)
    try {
      if (!partition.appendFetched(leaderEpoch, records, highWatermark)) return undefined
      followed.isCaughtUp = highWatermark <= partition.log.logEndOffset
    } catch (error) {
      this.#onPartitionFault(followed, error)
      return undefined
    }
    return logStartOffset > partition.log.logStartOffset
      ? partition.followLogStart(leaderEpoch, logStartOffset)
      : undefined
  }

  #onRefused(followed: Followed, errorCode: number): Promise<void> | undefined {
    if (errorCode === ErrorCode.OFFSET_OUT_OF_RANGE) return this.#startAnew(followed)
    // Leadership moves, or this broker's metadata or the leader's is behind, mostly by very little: the metadata will tell.
    this.#delay(followed, firstRefusedMs * 2 ** followed.refusals++)
    this.#logOf(followed).debug({ errorCode }, 'leader refused a fetch')
    return undefined
  }

  /** This replica's end is outside the leader's log, which began later, or ends earlier after an unclean election. */
  async #startAnew(followed: Followed): Promise<void> {
    const { partition, leaderEpoch } = followed
    const [startOffset, endOffset] = await Promise.all([
      this.#leaderOffset(followed, earliestTimestamp),
      this.#leaderOffset(followed, latestTimestamp),
    ])
    if (startOffset === undefined || endOffset === undefined) {
      this.#delay(followed)
      return
    }
    this.#logOf(followed).warn(
      { startOffset, endOffset, own: partition.log.logEndOffset },
      'log is outside the leader, starting anew',
    )
    await this.#cut(followed, () => partition.restartAt(leaderEpoch, startOffset, endOffset))
  }

  /** Where nothing was there to cut, the leader would say the same again at once. */
  async #cut(followed: Followed, work: () => Promise<void>): Promise<void> {
    const { log } = followed.partition
    const { logEndOffset, latestEpoch } = log
    await work()
    if (log.logEndOffset === logEndOffset && log.latestEpoch === latestEpoch) this.#delay(followed)
  }

  async #leaderOffset({ topicId, partition, leaderEpoch }: Followed, timestamp: bigint): Promise<number | undefined> {
    const client = this.#client
    if (client === undefined || topicId === undefined) return undefined
    const answer = await client.request(apis.ListOffsets, listOffsetsVersion, {
      replicaId: this.#options.localId,
      isolationLevel: 0,
      topics: [
        {
          name: partition.topic,
          partitions: [{ partitionIndex: partition.partition, currentLeaderEpoch: leaderEpoch, timestamp }],
        },
      ],
    })
    const found = answer.topics[0]?.partitions[0]
    return found?.errorCode === ErrorCode.NONE ? found.offset : undefined
  }

  // ---- the connection ----

  async #connect(): Promise<KafkaClient | undefined> {
    if (this.#client?.isOpen) return this.#client
    const { platform, endpoint, localId, leaderId, settings, logger } = this.#options
    const target = endpoint()
    this.#session.reset()
    if (target === undefined) return undefined
    try {
      const client = await KafkaClient.connect({
        platform,
        ...target,
        clientId: `broker-${localId}-fetcher`,
        timeoutMs: settings.requestTimeoutMs,
      })
      if (this.#isStopped) {
        client.close()
        return undefined
      }
      this.#client = client
      return client
    } catch (error) {
      if (this.#failures === 0) logger.warn({ leaderId, error: messageOf(error) }, 'leader cannot be reached')
      return undefined
    }
  }

  #disconnect(): void {
    this.#client?.close()
    this.#client = undefined
  }

  /** True for a poll that was cut short on purpose. */
  #onRequestFault(client: KafkaClient, error: unknown): boolean {
    this.#session.reset()
    if (this.#isStopped || this.#client !== client) return true
    const { logger, leaderId } = this.#options
    if (this.#failures === 0) logger.warn({ leaderId, error: messageOf(error) }, 'fetch from the leader failed')
    this.#disconnect()
    return false
  }

  /** A new partition should not wait for the end of a poll that does not ask for it. */
  #interruptPoll(): void {
    if (!this.#isPolling || this.#interrupt !== undefined) return
    this.#interrupt = this.#options.platform.timers.set(interruptMs, () => {
      this.#interrupt = undefined
      if (this.#isPolling) this.#disconnect()
    })
  }

  // ---- waiting ----

  #backoffMs(): number {
    const { platform, settings } = this.#options
    const delayMs = Math.min(firstBackoffMs * 2 ** this.#failures++, settings.backoffMs)
    return delayMs * (0.75 + platform.random.float() / 2)
  }

  /** Until the first of those that are not `due` may be fetched. */
  #nextDelayMs(due: readonly Followed[] = []): number {
    const { platform, quota } = this.#options
    const nowMs = platform.clock.monotonic()
    const isDue = new Set(due)
    let nextMs = maxDelayMs
    for (const followed of this.#followed.values()) {
      if (isDue.has(followed)) continue
      const quotaMs = isThrottled(followed) ? quota.waitMs : 0
      nextMs = Math.min(nextMs, Math.max(followed.delayedUntilMs - nowMs, quotaMs))
    }
    return Math.max(1, nextMs)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.platform.timers.set(ms, () => this.#wake?.())
      this.#wake = () => {
        timer.cancel()
        this.#wake = undefined
        resolve()
      }
    })
  }

  // ---- faults of one partition ----

  #isFollowed(followed: Followed): boolean {
    return this.#followed.get(nameOf(followed.partition)) === followed
  }

  /** For `delayMs` at most. */
  #delay(followed: Followed, delayMs = Number.POSITIVE_INFINITY): void {
    const { platform, settings } = this.#options
    followed.delayedUntilMs = platform.clock.monotonic() + Math.min(delayMs, settings.backoffMs / 4)
  }

  #onPartitionFault(followed: Followed, error: unknown): void {
    this.#delay(followed)
    if (error instanceof StorageError) {
      // Its log is offline, which the log has told. By now the partition may have another one.
      if (this.#isFollowed(followed)) this.#followed.delete(nameOf(followed.partition))
      return
    }
    const isDamage = error instanceof CorruptBatchError
    this.#logOf(followed).error(
      { error },
      isDamage ? 'leader sent a damaged batch' : 'replica cannot follow its leader',
    )
  }

  #logOf({ partition }: Followed): Logger {
    return this.#options.logger.child({ partition: nameOf(partition), leaderId: this.#options.leaderId })
  }
}

function isThrottled({ partition, isCaughtUp }: Followed): boolean {
  return partition.isThrottledAsFollower && !isCaughtUp
}

/** A limit may be lifted while a fetcher waits for it. */
const maxDelayMs = 1000
const latestTimestamp = -1n
const earliestTimestamp = -2n

function nameOf({ topic, partition }: Partition): string {
  return partitionName(topic, partition)
}

function keyOf({ topicId, partition }: Followed): string {
  return `${partition.partition}/${topicId}`
}

function toWire({ topicId: _, maxBytes, ...fetch }: PartitionFetch) {
  return { ...fetch, partitionMaxBytes: maxBytes }
}

function byTopic<T extends { readonly topicId: Uuid }>(each: readonly T[]): [Uuid, T[]][] {
  const topics = new Map<Uuid, T[]>()
  for (const item of each) {
    const items = topics.get(item.topicId)
    if (items === undefined) topics.set(item.topicId, [item])
    else items.push(item)
  }
  return [...topics]
}
