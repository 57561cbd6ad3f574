import {
  apis,
  BatchView,
  batchPrefixBytes,
  CorruptBatchError,
  checkBatch,
  type KafkaRecord,
  openRecordBytes,
  readRecords,
} from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import type { BrokerConnection } from './connection.ts'
import { expectNoError } from './errors.ts'
import { earliest, groupByLeader, groupByTopic, listOffsets, type Place, placeName } from './offsets.ts'
import type { Patience } from './patience.ts'

export interface FetchedRecord extends KafkaRecord {
  readonly topic: string
  readonly partition: number
}

export interface FetcherHandlers {
  /**
   * One or more records of one partition, in order. Resolves with how many of them were taken: the rest is read again, unless
   * the fetcher was stopped. The next are asked for afterwards.
   */
  onRecords(records: readonly FetchedRecord[]): Promise<number>
  /** The offset that was to be read is gone, or never was; reading goes on at `resumeOffset`. */
  onOutOfRange(place: Place, fetchOffset: number, resumeOffset: number): void
}

interface Position extends Place {
  /** The next to be read. */
  nextOffset: number
  /** Reading ends here, exclusive. */
  readonly endOffset: number
}

const fetchMaxBytes = 8 * 1024 * 1024
const partitionMaxBytes = 1024 * 1024
/** What a batch may unpack to. */
const maxUnpackedBytes = 256 * 1024 * 1024
const maxWaitMs = 500

/** Reads partitions, each leader's in a loop of its own, until each is at its end or `stop` is called. */
export class Fetcher {
  readonly #cluster: Cluster
  readonly #handlers: FetcherHandlers
  readonly #positions: readonly Position[]
  #isStopped = false

  /** `endOffset`: exclusive; Infinity reads until `stop`. */
  constructor(
    cluster: Cluster,
    starts: readonly (Place & { readonly nextOffset: number; readonly endOffset: number })[],
    handlers: FetcherHandlers,
  ) {
    this.#cluster = cluster
    this.#handlers = handlers
    this.#positions = starts.map((start) => ({ ...start }))
  }

  /** Of each partition the offset after the last record that was taken. */
  get positions(): readonly (Place & { readonly nextOffset: number })[] {
    return this.#positions
  }

  /**
   * Resolves when there is nothing left to read. Throws `RequestRefusedError`, and `UnknownTopicError` for a topic that was deleted and
   * isn't made anew soon.
   */
  async run(): Promise<void> {
    const patience = this.#cluster.patience({ topicsWereThere: true })
    while (!this.#isStopped) {
      const left = this.#positions.filter((position) => position.nextOffset < position.endOffset)
      if (left.length === 0) return
      try {
        await this.#readFrom(await groupByLeader(this.#cluster, left), patience)
      } catch (error) {
        if (!this.#isStopped) await this.#waitAfter(error, patience)
      }
    }
  }

  /** No record is handed over any more once `run` has resolved. */
  stop(): void {
    this.#isStopped = true
  }

  /** Until one leader's partitions are read, or it fails: the leaders may then be others. */
  async #readFrom(byLeader: ReadonlyMap<number, readonly Position[]>, patience: Patience): Promise<void> {
    let settled = false
    const loops = [...byLeader].map(async ([leaderId, led]) => {
      let hasAnswered = false
      try {
        while (!settled && !this.#isStopped && led.some((each) => each.nextOffset < each.endOffset)) {
          await this.#fetchOnce(await this.#cluster.broker(leaderId), led)
          hasAnswered = true
        }
      } catch (error) {
        // What other leaders answer is no reason to wait longer for this one.
        if (hasAnswered) patience.reset()
        throw error
      } finally {
        if (led.some((each) => each.nextOffset < each.endOffset)) settled = true
      }
    })
    const outcomes = await Promise.allSettled(loops)
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  async #waitAfter(error: unknown, patience: Patience): Promise<void> {
    try {
      await patience.wait(error)
      this.#cluster.forgetTopics()
    } catch (final) {
      if (!this.#isStopped) throw final
    }
  }

  async #fetchOnce(connection: BrokerConnection, led: readonly Position[]): Promise<void> {
    const wanted = led.filter((position) => position.nextOffset < position.endOffset)
    const byPlace = new Map(wanted.map((position) => [placeName(position), position]))
    const topics = groupByTopic(wanted).map(([topic, partitions]) => ({
      topic,
      partitions: partitions.map((partition) => ({
        partition,
        fetchOffset: byPlace.get(placeName({ topic, partition }))!.nextOffset,
        partitionMaxBytes,
      })),
    }))
    const request = { maxWaitMs, minBytes: 1, maxBytes: fetchMaxBytes, topics, forgottenTopicsData: [] }
    const answer = await connection.call(apis.Fetch, request)
    expectNoError('Fetch', answer.errorCode)
    for (const topic of answer.responses) {
      for (const { partitionIndex: partition, errorCode, records } of topic.partitions) {
        if (this.#isStopped) return
        const position = byPlace.get(placeName({ topic: topic.topic, partition }))
        if (position === undefined) continue
        if (errorCode === offsetOutOfRange) await this.#resume(position)
        else {
          expectNoError(`Fetch of ${placeName(position)}`, errorCode)
          if (records !== null && records.length > 0) await this.#handOver(position, records)
        }
      }
    }
  }

  async #handOver(position: Position, bytes: Buffer): Promise<void> {
    const { records, nextOffset } = recordsOf(bytes, position)
    const fresh = records.filter(({ offset }) => offset >= position.nextOffset && offset < position.endOffset)
    const taken = fresh.length === 0 ? 0 : await this.#handlers.onRecords(fresh)
    if (taken < fresh.length) position.nextOffset = fresh[taken]!.offset
    else position.nextOffset = Math.max(position.nextOffset, Math.min(nextOffset, position.endOffset))
  }

  async #resume(position: Position): Promise<void> {
    const places = [position]
    const firstOffset = (await listOffsets(this.#cluster, places, earliest)).get(placeName(position)) ?? 0
    this.#handlers.onOutOfRange(position, position.nextOffset, firstOffset)
    position.nextOffset = firstOffset
  }
}

const offsetOutOfRange = 1

/** The records of fetched bytes, without the markers of transactions. The last batch may be cut short: it comes again. */
export function recordsOf(bytes: Buffer, place: Place): { records: readonly FetchedRecord[]; nextOffset: number } {
  const records: FetchedRecord[] = []
  let nextOffset = 0
  let position = 0
  while (bytes.length - position >= batchPrefixBytes) {
    const check = checkBatch(bytes, position, bytes.length)
    if (check === 'truncated') break
    if (check !== 'ok') throw new CorruptBatchError(`A batch of ${placeName(place)} is damaged (${check})`)
    const batch = new BatchView(bytes, position)
    if (!batch.isControl) {
      for (const record of readRecords(batch, openRecordBytes(batch, maxUnpackedBytes))) {
        records.push({ ...record, topic: place.topic, partition: place.partition })
      }
    }
    nextOffset = batch.lastOffset + 1
    position += batch.sizeBytes
  }
  return { records, nextOffset }
}
