import { zeroUuid } from '../../src/base/index.ts'
import {
  BatchView,
  batchPrefixBytes,
  CorruptBatchError,
  checkBatch,
  codecById,
  openRecordBytes,
  readRecords,
} from '../../src/protocol/index.ts'
import type { Exchange } from './recorder.ts'

/**
 * Makes the exchanges with two brokers comparable: what each broker chooses for itself (ids, addresses, the time) becomes
 * a symbol, numbered in order of first appearance, so that `topic-2` in one place is the same topic as in another. What
 * has no order of its own (entries of a config, all topics) is sorted. Everything else stays, byte for byte.
 */
export function normalised(exchanges: readonly Exchange[], options: NormaliseOptions): Exchange[] {
  const normaliser = new Normaliser(options)
  return exchanges.map((exchange) => ({
    ...exchange,
    request: normaliser.value('', exchange.request, true),
    answer: ordered(exchange, normaliser.value('', selected(exchange, exchange.answer, options))),
  }))
}

export interface NormaliseOptions {
  /** Only what begins with this is compared where an answer lists everything a broker has. */
  readonly prefix: string
  readonly startedMs: number
  /** Keys of the APIs that are compared. */
  readonly servedKeys: ReadonlySet<number>
}

const uuidText = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=-)[A-Za-z0-9_-]{22}$/g
const texts = new Set(['errorMessage', 'batchIndexErrorMessage', 'documentation'])

class Normaliser {
  readonly #symbols = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  /** Folders that the broker told so far: a request may name one. */
  readonly #folders = new Set<string>()
  readonly #options: NormaliseOptions

  constructor(options: NormaliseOptions) {
    this.#options = options
  }

  value(key: string, value: unknown, isRequest = false): unknown {
    if (value === null || value === undefined) return value
    if (Array.isArray(value)) return value.map((each) => this.value(key, each, isRequest))
    if (Buffer.isBuffer(value))
      return key === 'records' && !isRequest ? this.#batches(value) : `0x${value.toString('hex')}`
    if (typeof value === 'object') {
      return Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, this.value(name, inner, isRequest)]),
      )
    }
    if (typeof value === 'string') return this.#text(key, value)
    if (typeof value === 'number') return this.#number(key, value)
    return typeof value === 'bigint' ? this.#number(key, Number(value)) : value
  }

  #text(key: string, text: string): string {
    if (texts.has(key)) return text === '' || text === 'NONE' ? text : '<text>'
    if (key === 'logDir') this.#folders.add(text)
    if (key === 'logDir' || (key === 'path' && this.#folders.has(text))) return '<folder>'
    if (key === 'host') return '<host>'
    if (key === 'clusterId') return '<cluster>'
    if (key === 'topicId' || key === 'topicIds') return text === zeroUuid ? 'no topic' : this.#symbol('topic', text)
    return text.replace(uuidText, (id) => this.#symbol('id', id))
  }

  #number(key: string, value: number): unknown {
    if (key === 'port') return '<port>'
    if (key === 'totalBytes' || key === 'usableBytes') return value > 0 ? '<bytes>' : value
    if (key === 'producerId' && value >= 0) return this.#symbol('producer', String(value))
    if (key === 'sessionId' && value > 0) return this.#symbol('session', String(value))
    if (key === 'finalizedFeaturesEpoch') return '<epoch>'
    // How often a leader was chosen is a matter of each; the first epoch is 0 for both.
    if (/^(leaderEpoch|currentLeaderEpoch)$/.test(key) && value > 0) return '<later epoch>'
    const { startedMs } = this.#options
    if (value >= startedMs - 1000 && value <= Date.now() + 1000) return '<now>'
    return value
  }

  #symbol(kind: string, text: string): string {
    const key = `${kind} ${text}`
    let symbol = this.#symbols.get(key)
    if (symbol === undefined) {
      const count = (this.#counts.get(kind) ?? 0) + 1
      this.#counts.set(kind, count)
      symbol = `<${kind}-${count}>`
      this.#symbols.set(key, symbol)
    }
    return symbol
  }

  #batches(bytes: Buffer): unknown {
    const batches: unknown[] = []
    const view = new BatchView(bytes)
    let position = 0
    for (; position + batchPrefixBytes <= bytes.length; position += view.sizeBytes) {
      view.moveTo(bytes, position)
      const check = checkBatch(bytes, position, bytes.length)
      if (check !== 'ok') {
        batches.push({ check, hex: bytes.subarray(position, position + 200).toString('hex') })
        return batches
      }
      batches.push(this.#batch(view))
    }
    if (position < bytes.length) batches.push({ trailing: bytes.length - position })
    return batches
  }

  #batch(view: BatchView): unknown {
    const records = recordsOf(view)
    const { baseOffset, leaderEpoch, lastOffsetDelta, attributes, producerEpoch, baseSequence, sizeBytes } = view
    const header = { baseOffset, leaderEpoch, lastOffsetDelta, attributes, producerEpoch, baseSequence, sizeBytes }
    const { baseTimestamp, maxTimestamp, producerId } = view
    return {
      ...header,
      codec: codecById(view.codecId),
      // The broker's own time is under the checksum.
      crc: view.hasLogAppendTime ? '<crc>' : view.crc,
      ...(this.value('', { baseTimestamp, maxTimestamp, producerId }) as object),
      records: records.length > 20 ? records.length : (this.value('', records) as unknown),
    }
  }
}

/** The records, or why they can't be read. */
function recordsOf(view: BatchView): readonly unknown[] {
  try {
    return [...readRecords(view, openRecordBytes(view, 64 * 1024 * 1024))]
  } catch (error) {
    if (error instanceof CorruptBatchError) return ['unreadable', view.recordBytes]
    throw error
  }
}

type Listed = readonly Record<string, unknown>[]

/** Leaves out of an answer what the scenario didn't make. */
function selected(exchange: Exchange, answer: unknown, { prefix, servedKeys }: NormaliseOptions): unknown {
  if (answer === null || typeof answer !== 'object') return answer
  const body = answer as Record<string, unknown>
  const mine = (list: unknown, key: string) => (list as Listed).filter((each) => String(each[key]).startsWith(prefix))
  if (exchange.api === 'ListGroups') return { ...body, groups: mine(body.groups, 'groupId') }
  if (exchange.api === 'Metadata' && asksForAllTopics(exchange)) return { ...body, topics: mine(body.topics, 'name') }
  if (exchange.api === 'ApiVersions' && 'apiKeys' in body) {
    return { ...body, apiKeys: (body.apiKeys as Listed).filter(({ apiKey }) => servedKeys.has(apiKey as number)) }
  }
  return answer
}

function asksForAllTopics({ request, version }: Exchange): boolean {
  const { topics } = request as { topics: readonly unknown[] | null }
  return topics === null || (version === 0 && topics.length === 0)
}

/** Names of lists whose order says nothing, by API. */
const unordered: Readonly<Record<string, readonly string[]>> = {
  Metadata: ['topics', 'partitions'],
  ListGroups: ['groups'],
  AlterReplicaLogDirs: ['results', 'partitions'],
  CreatePartitions: ['results'],
  DeleteGroups: ['results'],
  OffsetDelete: ['topics', 'partitions'],
  DeleteRecords: ['topics', 'partitions'],
  AlterConfigs: ['responses'],
  IncrementalAlterConfigs: ['responses'],
  CreateTopics: ['topics'],
  DeleteTopics: ['responses'],
  Produce: ['responses', 'partitionResponses'],
  Fetch: ['responses', 'partitions'],
  ApiVersions: ['apiKeys', 'supportedFeatures', 'finalizedFeatures'],
  OffsetFetch: ['topics', 'partitions'],
  DescribeGroups: ['groups', 'members'],
  OffsetCommit: ['topics', 'partitions'],
  JoinGroup: ['members'],
}

/** What an answer says of one topic in two places is put together. */
function merged(list: readonly unknown[]): unknown[] {
  const byTopic = new Map<string, { partitions: unknown[] }>()
  for (const each of list as { topic: string; topicId: string; partitions: unknown[] }[]) {
    const key = `${each.topic} ${each.topicId}`
    const known = byTopic.get(key)
    if (known === undefined) byTopic.set(key, { ...each })
    else known.partitions = [...known.partitions, ...each.partitions]
  }
  return [...byTopic.values()].filter(({ partitions }) => partitions.length > 0)
}

function ordered({ api }: Exchange, answer: unknown): unknown {
  const names = unordered[api] ?? []
  const walk = (name: string, value: unknown): unknown => {
    if (Array.isArray(value)) {
      const inner = (api === 'Fetch' && name === 'responses' ? merged(value) : value).map((each) => walk('', each))
      if (name === 'configs') return Object.fromEntries(inner.map((each) => [(each as { name: string }).name, each]))
      return names.includes(name) ? inner.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)) : inner
    }
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, walk(key, inner)]))
  }
  return walk('', answer)
}

const sortFields = [
  'name',
  'topic',
  'topicName',
  'partitionIndex',
  'groupId',
  'apiKey',
  'memberId',
  'topicId',
  'index',
] as const

function sortKey(value: unknown): string {
  const fields = value as Record<string, unknown>
  return sortFields.map((name) => String(fields[name] ?? '').padStart(6, '0')).join(' ')
}
