import { type BrokerId, deferred, messageOf, type Offset, RookeryError, type Uuid } from '../base/index.ts'
import type { Coordination } from '../coordination/index.ts'
import type { GroupCoordinator, GroupState } from '../group/index.ts'
import { noLeader } from '../metadata/index.ts'
import type { Platform } from '../platform/index.ts'
import {
  BatchView,
  ConsumerProtocolAssignment,
  decodeVersioned,
  type KafkaRecord,
  openRecordBytesOff,
  type RecordHeader,
  readRecords,
} from '../protocol/index.ts'
import type { Partition, ReplicaManager } from '../replication/index.ts'

/** A record that is in a topic and committed: a consumer would see it. */
export class BrokerRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Milliseconds since 1970; -1 when the producer gave none. */
  readonly timestamp: number
  readonly key: Buffer | null
  /** Null is a tombstone. */
  readonly value: Buffer | null
  readonly headers: readonly RecordHeader[]

  constructor(topic: string, partition: number, { offset, timestamp, key, value, headers }: KafkaRecord) {
    this.topic = topic
    this.partition = partition
    this.offset = offset
    this.timestamp = timestamp
    this.key = key
    this.value = value
    this.headers = headers
  }

  /** The key as UTF-8. */
  get keyText(): string | null {
    return this.key?.toString() ?? null
  }

  /** The value as UTF-8. */
  get valueText(): string | null {
    return this.value?.toString() ?? null
  }

  /** The last header of that name as UTF-8; undefined when there is none or it has no value. */
  header(name: string): string | undefined {
    return this.headers.findLast(({ key }) => key === name)?.value?.toString()
  }
}

export interface WaitForRecordsOptions {
  /** Milliseconds of real time; 4000 when left out, which is below the time that a test has with vitest. */
  readonly timeoutMs?: number
  /** Only records of this partition count, and are given. */
  readonly partition?: number
}

export interface WaitForGroupOptions {
  /** Milliseconds of real time; 4000 when left out. */
  readonly timeoutMs?: number
  /** How many members it has to have, exactly. */
  readonly members?: number
}

/** A consumer group. */
export interface ObservedGroup {
  readonly groupId: string
  /** Dead: there is no such group. */
  readonly state: GroupState
  /** 'consumer' for consumers; '' when there is no group, or it has only committed offsets. */
  readonly protocolType: string
  /** The assignor in use; '' unless the group is Stable. */
  readonly protocol: string
  readonly members: readonly ObservedMember[]
}

export interface ObservedMember {
  readonly memberId: string
  readonly groupInstanceId: string | null
  readonly clientId: string
  readonly clientHost: string
  /** What it was given last; empty for a protocol other than that of consumers. */
  readonly assignment: readonly { readonly topic: string; readonly partitions: readonly number[] }[]
}

/** Something was not there in time, is not there, or can't be looked at any more. The message says what was there instead. */
export class ObservationError extends RookeryError {
  readonly code: 'WAIT_TIMED_OUT' | 'UNKNOWN_TOPIC' | 'UNREADABLE' | 'BROKER_ENDED' | 'INVALID_ARGUMENT'

  constructor(code: ObservationError['code'], message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

export interface ObservationOptions {
  readonly coordination: Pick<Coordination, 'image'>
  readonly replicas: Pick<ReplicaManager, 'led' | 'whenOpened'>
  readonly groups: Pick<GroupCoordinator, 'describeGroups' | 'listGroups'>
  readonly platform: Pick<Platform, 'timers' | 'offload'>
}

/** Below vitest's 5 s for a test: the message should come before the end of the test does. */
const defaultTimeoutMs = 4000
/** How long the coordinators of a new internal topic may take until they answer. */
const loadTimeoutMs = 10_000

/**
 * What is in topics and groups, seen from inside: nothing is asked over a connection, and who waits is woken by what happens: a
 * high watermark that moves, a group that changes, metadata.
 */
export class Observation {
  readonly #options: ObservationOptions
  /** Of those who wait: something happened, look again. */
  readonly #wakes = new Set<() => void>()
  #end: Error | undefined

  constructor(options: ObservationOptions) {
    this.#options = options
  }

  /** The metadata or a group changed. */
  readonly onChange = (): void => {
    for (const wake of this.#wakes) wake()
  }

  /** The node ends: whoever waits is told so. */
  end(cause: Error | undefined): void {
    const why = cause === undefined ? '' : `: ${messageOf(cause)}`
    this.#end ??= new ObservationError('BROKER_ENDED', `The broker has ended${why}`, { cause })
    this.onChange()
  }

  /** By partition and offset. Throws `ObservationError` for a topic that isn't there. */
  async records(topic: string): Promise<BrokerRecord[]> {
    if (this.#end !== undefined) throw this.#end
    const reader = new TopicReader(topic, this.#options)
    await reader.readOn()
    if (reader.unreadable !== undefined) throw reader.unreadable
    if (!reader.isThere) throw new ObservationError('UNKNOWN_TOPIC', `There is no topic ${topic}${this.#topicsThere()}`)
    return reader.records(undefined)
  }

  async waitForRecords(
    topic: string,
    count: number,
    { timeoutMs = defaultTimeoutMs, partition }: WaitForRecordsOptions,
  ): Promise<BrokerRecord[]> {
    checkWhole('The number of records', count, 1)
    checkTimeout(timeoutMs)
    if (partition !== undefined) checkWhole('partition', partition, 0)
    const reader = new TopicReader(topic, this.#options)
    const look = async (wake: () => void) => {
      if (partition !== undefined) this.#checkPartition(topic, partition)
      await reader.readOn(wake)
      const records = reader.records(partition)
      return records.length >= count ? records : undefined
    }
    const missing = () => {
      const where = partition === undefined ? '' : ` in partition ${partition}`
      const found = reader.isThere ? reader.summary() : `there is no such topic${this.#topicsThere()}`
      return `Topic ${topic} did not have ${plural(count, 'record')}${where} within ${timeoutMs} ms: ${found}`
    }
    try {
      return await this.#until(timeoutMs, look, missing)
    } finally {
      reader.close()
    }
  }

  async waitForGroup(
    groupId: string,
    state: GroupState,
    { timeoutMs = defaultTimeoutMs, members }: WaitForGroupOptions,
  ): Promise<ObservedGroup> {
    checkTimeout(timeoutMs)
    if (!groupStates.has(state)) {
      const allowed = [...groupStates].join(', ')
      throw new ObservationError('INVALID_ARGUMENT', `${state} is no state of a group: allowed are ${allowed}`)
    }
    if (members !== undefined) checkWhole('members', members, 0)
    let last: ObservedGroup | undefined
    const look = async () => {
      last = await this.#group(groupId)
      const isWanted = last?.state === state && (members === undefined || last.members.length === members)
      return isWanted ? last : undefined
    }
    const missing = async () => {
      const wanted = members === undefined ? state : `${state} with ${plural(members, 'member')}`
      const found = last === undefined ? 'its coordinator is being loaded' : await this.#groupSummary(last)
      return `Group ${groupId} was not ${wanted} within ${timeoutMs} ms: ${found}`
    }
    return await this.#until(timeoutMs, look, missing)
  }

  /** The broker that leads the partition; undefined when there is none, or no such partition. */
  leaderOf(topic: string, partition: number): BrokerId | undefined {
    const leader = this.#options.coordination.image.topics.byName(topic)?.partitions[partition]?.leader
    return leader === noLeader ? undefined : leader
  }

  /**
   * The broker that leads the partition, as soon as one does of which `isThere` holds: one whose end nobody has noticed yet doesn't
   * count. Throws `ObservationError`.
   */
  async waitForLeader(
    topic: string,
    partition: number,
    { timeoutMs = defaultTimeoutMs }: { readonly timeoutMs?: number },
    isThere: (leader: BrokerId) => boolean,
  ): Promise<BrokerId> {
    checkTimeout(timeoutMs)
    checkWhole('partition', partition, 0)
    const look = async () => {
      this.#checkPartition(topic, partition)
      const leader = this.leaderOf(topic, partition)
      return leader !== undefined && isThere(leader) ? leader : undefined
    }
    const missing = () => {
      const isThere = this.#options.coordination.image.topics.byName(topic) !== undefined
      const found = isThere ? 'it has none' : `there is no such topic${this.#topicsThere()}`
      return `Partition ${topic}-${partition} had no leader within ${timeoutMs} ms: ${found}`
    }
    return await this.#until(timeoutMs, look, missing)
  }

  /** Throws `ObservationError` for one that a topic which is there doesn't have: nothing makes it by itself. */
  #checkPartition(topic: string, partition: number): void {
    const count = this.#options.coordination.image.topics.byName(topic)?.partitions.length
    if (count === undefined || partition < count) return
    const has = count === 1 ? 'partition 0 alone' : `partitions 0 to ${count - 1}`
    throw new ObservationError('INVALID_ARGUMENT', `Topic ${topic} has no partition ${partition}: it has ${has}`)
  }

  /** Of the node's metadata: the greater, the newer. */
  get metadataIndex(): number {
    return this.#options.coordination.image.index
  }

  /**
   * Resolves when every partition has a leader, and all of its replicas in sync, in metadata with an index of at least `since`.
   * Throws `ObservationError`.
   */
  async waitForInSync({
    timeoutMs = defaultTimeoutMs,
    since = 0,
  }: {
    readonly timeoutMs?: number
    readonly since?: number
  }): Promise<void> {
    checkTimeout(timeoutMs)
    const outOfSync = () =>
      [...this.#options.coordination.image.topics.all()].flatMap(({ name, partitions }) =>
        partitions
          .filter(({ leader, isr, replicas }) => leader === noLeader || isr.length < replicas.length)
          .map(({ partition, isr, replicas }) => `${name}-${partition} has ${isr.length} of ${replicas.length}`),
      )
    const isCurrent = () => this.metadataIndex >= since
    const missing = () => {
      const found = isCurrent() ? shortened(outOfSync()) : 'a node has old metadata'
      return `Replicas were not in sync within ${timeoutMs} ms: ${found}`
    }
    await this.#until(timeoutMs, async () => (isCurrent() && outOfSync().length === 0 ? true : undefined), missing)
  }

  /** Resolves when the coordinators of all groups answer. */
  async whenGroupsLoaded(): Promise<void> {
    const look = async () => ((await this.#options.groups.listGroups({ states: [], types: [] })).ok ? true : undefined)
    await this.#until(loadTimeoutMs, look, () => 'Coordinators of groups could not be loaded')
  }

  /** Looks, and again after each change, until something is found. Throws `ObservationError` when the time is up. */
  async #until<T>(
    timeoutMs: number,
    look: (wake: () => void) => Promise<T | undefined>,
    missing: () => string | Promise<string>,
  ): Promise<T> {
    let change = deferred<void>()
    let isOver = false
    const wake = () => change.resolve()
    const timer = this.#options.platform.timers.set(timeoutMs, () => {
      isOver = true
      wake()
    })
    this.#wakes.add(wake)
    try {
      for (;;) {
        change = deferred<void>() // before the look: what happens meanwhile counts
        const isLast = isOver
        if (this.#end !== undefined) throw this.#end
        const found = await look(wake)
        if (found !== undefined) return found
        if (isLast) throw new ObservationError('WAIT_TIMED_OUT', await missing())
        if (isOver) continue
        await change.promise
      }
    } finally {
      timer.cancel()
      this.#wakes.delete(wake)
    }
  }

  /** Undefined: its coordinator can't answer yet. */
  async #group(groupId: string): Promise<ObservedGroup | undefined> {
    const [described] = await this.#options.groups.describeGroups([groupId])
    if (described === undefined) return undefined
    if (!described.ok) {
      // Without the internal topic nobody coordinates anything, and there is no group.
      const isDead = described.reason === 'group-id-not-found' || described.reason === 'not-coordinator'
      return isDead ? { groupId, state: 'Dead', protocolType: '', protocol: '', members: [] } : undefined
    }
    const { state, protocolType, protocolName: protocol, members } = described
    return {
      groupId,
      state,
      protocolType,
      protocol,
      members: members.map(({ memberId, groupInstanceId, clientId, clientHost, assignment }) => ({
        memberId,
        groupInstanceId,
        clientId,
        clientHost,
        assignment: protocolType === 'consumer' ? assignedPartitions(assignment) : [],
      })),
    }
  }

  async #groupSummary({ state, members }: ObservedGroup): Promise<string> {
    if (state !== 'Dead') {
      const names = members.map(({ memberId }) => memberId).join(', ')
      return `it is ${state} with ${plural(members.length, 'member')}${names === '' ? '' : `: ${names}`}`
    }
    const listed = await this.#options.groups.listGroups({ states: [], types: [] })
    const others = listed.ok ? shortened(listed.groups.map((group) => group.groupId)) : ''
    return others === '' ? 'there are no groups' : `there is no such group, but ${others}`
  }

  #topicsThere(): string {
    const names = [...this.#options.coordination.image.topics.all()].map(({ name }) => name)
    const own = shortened(names.filter((name) => !name.startsWith('__')))
    return own === '' ? '' : `; topics are ${own}`
  }
}

/** Bytes asked of a log at once. */
const readBytes = 1 << 20
/** What one batch may unpack to. */
const maxUnpackedBytes = 256 << 20

interface ReadPartition {
  readonly partition: number
  /** What was read. A topic that was emptied has others. */
  readonly source: Partition
  readonly records: BrokerRecord[]
  nextOffset: Offset
}

/** Reads a topic's partitions on, each from where it was. Begins anew when the topic was made anew or emptied. */
class TopicReader {
  readonly #topic: string
  readonly #options: ObservationOptions
  readonly #partitions = new Map<number, ReadPartition>()
  readonly #watched = new Map<Partition, { onChanged(): void }>()
  #topicId: Uuid | undefined
  /** Why a partition that is there could not be read at last. */
  unreadable: ObservationError | undefined

  constructor(topic: string, options: ObservationOptions) {
    this.#topic = topic
    this.#options = options
  }

  /** The topic was there when it was last read. */
  get isThere(): boolean {
    return this.#topicId !== undefined
  }

  records(partition: number | undefined): BrokerRecord[] {
    const parts = [...this.#partitions.values()].sort((left, right) => left.partition - right.partition)
    return parts.flatMap((each) => (partition === undefined || each.partition === partition ? each.records : []))
  }

  /** What was found, for people. */
  summary(): string {
    if (this.unreadable !== undefined) return this.unreadable.message
    const parts = [...this.#partitions.values()].sort((left, right) => left.partition - right.partition)
    const counts = parts.map(({ partition, records }) => {
      const [first] = records
      const range = first === undefined ? '' : `, offsets ${first.offset} to ${records.at(-1)!.offset}`
      return `partition ${partition} has ${records.length}${range}`
    })
    return shortened(counts, '; ')
  }

  /** Up to the high watermarks of now; `wake` is called when one of them moves, until `close`. */
  async readOn(wake?: () => void): Promise<void> {
    const { coordination, replicas } = this.#options
    await replicas.whenOpened()
    const topic = coordination.image.topics.byName(this.#topic)
    if (topic?.topicId !== this.#topicId) {
      this.close()
      this.#partitions.clear()
      this.#topicId = topic?.topicId
    }
    this.unreadable = undefined
    for (const { partition, leaderEpoch } of topic?.partitions ?? []) {
      const led = replicas.led(this.#topic, partition, leaderEpoch)
      if (led === undefined) {
        this.#cannotRead(partition, undefined)
        continue
      }
      if (wake !== undefined) this.#watch(led, wake)
      try {
        await this.#readPartition(led)
      } catch (error) {
        // A topic that was deleted meanwhile is looked at again by who waits: the metadata changed.
        this.#cannotRead(partition, error)
      }
    }
  }

  close(): void {
    for (const [partition, watcher] of this.#watched) partition.unwatch('committed', watcher)
    this.#watched.clear()
  }

  #cannotRead(partition: number, cause: unknown): void {
    const reason = cause === undefined ? 'this broker does not lead it' : messageOf(cause)
    const message = `Partition ${partition} of ${this.#topic} cannot be read: ${reason}`
    this.unreadable = new ObservationError('UNREADABLE', message, { cause })
  }

  #watch(partition: Partition, wake: () => void): void {
    if (this.#watched.has(partition)) return
    const watcher = { onChanged: wake }
    partition.watch('committed', watcher)
    this.#watched.set(partition, watcher)
  }

  async #readPartition(source: Partition): Promise<void> {
    const { log, partition, highWatermark: endOffset } = source
    let read = this.#partitions.get(partition)
    if (read?.source !== source) {
      read = { partition, source, records: [], nextOffset: log.logStartOffset }
      this.#partitions.set(partition, read)
    }
    while (read.nextOffset < endOffset) {
      const { nextOffset: fetchOffset } = read
      const result = await log.read({ fetchOffset, endOffset, maxBytes: readBytes, minOneBatch: true })
      if ('outOfRange' in result) {
        if (result.logStartOffset <= fetchOffset) return
        read.nextOffset = result.logStartOffset // what was deleted meanwhile can't be read
        continue
      }
      const chunks = result.chunks.map((chunk) => Buffer.from(chunk))
      result.release()
      if (chunks.length === 0) return
      for (const chunk of chunks) await this.#readChunk(read, chunk)
    }
  }

  async #readChunk(read: ReadPartition, chunk: Buffer): Promise<void> {
    const batch = new BatchView(chunk)
    for (let position = 0; position < chunk.length; position += batch.sizeBytes) {
      batch.moveTo(chunk, position)
      if (!batch.isControl) {
        const recordBytes = await openRecordBytesOff(batch, maxUnpackedBytes, this.#options.platform.offload)
        for (const record of readRecords(batch, recordBytes)) {
          if (record.offset >= read.nextOffset) read.records.push(new BrokerRecord(this.#topic, read.partition, record))
        }
      }
      read.nextOffset = batch.lastOffset + 1
    }
  }
}

const groupStates: ReadonlySet<string> = new Set<GroupState>([
  'Empty',
  'PreparingRebalance',
  'CompletingRebalance',
  'Stable',
  'Dead',
])

/** Nothing where a member's bytes are not what consumers mean by them. */
function assignedPartitions(assignment: Buffer): ObservedMember['assignment'] {
  if (assignment.length === 0) return []
  try {
    return decodeVersioned(ConsumerProtocolAssignment, assignment).assignedPartitions
  } catch {
    return []
  }
}

function checkWhole(what: string, value: number, min: number): void {
  if (Number.isSafeInteger(value) && value >= min) return
  throw new ObservationError('INVALID_ARGUMENT', `${what}: ${value}: allowed is ${min} or more`)
}

function checkTimeout(timeoutMs: number): void {
  if (Number.isFinite(timeoutMs) && timeoutMs >= 0) return
  throw new ObservationError('INVALID_ARGUMENT', `timeoutMs: ${timeoutMs}: allowed is 0 or more`)
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Names that a message lists. */
const maxListed = 20

function shortened(texts: readonly string[], separator = ', '): string {
  const left = texts.length - maxListed
  return texts.slice(0, maxListed).join(separator) + (left > 0 ? `${separator}and ${left} more` : '')
}
