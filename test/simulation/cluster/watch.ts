import type { BrokerId } from '../../../src/base/index.ts'
import type { PartitionLog } from '../../../src/log/index.ts'
import {
  type MetadataImage,
  type PartitionImage,
  snapshotRecords,
  type TopicImage,
} from '../../../src/metadata/index.ts'
import type { NodeParts } from '../../../src/node/index.ts'
import { BatchView, openRecordBytes, readRecords } from '../../../src/protocol/index.ts'
import { getOrMake, PropertyViolation } from '../checkers/checker.ts'
import { nodeIdOf, nodeName, nodeNames } from './world.ts'

/** Events between two looks at all replicas. */
const eventsPerLook = 16
const readBytes = 1 << 20

interface Watched {
  readonly node: string
  readonly nodeId: BrokerId
  readonly parts: NodeParts
  image: MetadataImage | undefined
}

/** What is known of one partition, over all nodes and times. */
interface Known {
  /** Who led in each leader epoch. */
  readonly leaders: Map<number, string>
  /** The highest high watermark that any leader had. */
  committed: number
}

/**
 * Looks into all nodes after each event, as nobody in the cluster can:
 *
 * - one leader in a Raft term and in a partition's leader epoch;
 * - images of one index are equal;
 * - a new leader has all that is committed, and so has everybody in the ISR or eligible to lead, whatever leader may be left over;
 * - the ISR that the controller knows is within the largest that the leader counts with.
 */
export class ClusterWatch {
  readonly #watched = new Map<string, Watched>()
  readonly #leaderOfTerm = new Map<number, number>()
  readonly #images = new Map<number, string>()
  readonly #known = new Map<string, Known>()
  readonly #isVolatile: boolean
  /** Below these offsets records were deleted, and said to be. */
  readonly #deleted = new Map<string, number>()
  /** Nodes that began with an empty disk, with the broker epoch of the run before. */
  readonly #wiped = new Map<string, number | undefined>()
  #newest: MetadataImage | undefined
  #events = 0

  /** `isVolatile`: see `ClusterScenario`. */
  constructor(isVolatile: boolean) {
    this.#isVolatile = isVolatile
  }

  /** A node's parts are made, before it starts. */
  onAssembled(node: string, parts: NodeParts): void {
    this.#watched.set(node, { node, nodeId: nodeIdOf(node) as BrokerId, parts, image: undefined })
  }

  /** Its process ended. */
  onEnded(node: string): void {
    this.#watched.delete(node)
  }

  /** Its disk is empty, and until it is registered again nobody but its machine knows. */
  onWiped(node: string): void {
    this.#wiped.set(node, this.#brokerEpochOf(node))
  }

  /** Whether the cluster knows that the disk is another one. */
  knowsOfWipe(node: string): boolean {
    const before = this.#wiped.get(node)
    return before === undefined || before !== this.#brokerEpochOf(node)
  }

  #brokerEpochOf(node: string): number | undefined {
    return this.#newest?.cluster.broker(nodeIdOf(node) as BrokerId)?.brokerEpoch
  }

  /** Records were deleted, which was acknowledged. */
  onDeleted(topicId: string, partition: number, lowWatermark: number): void {
    const key = `${topicId}/${partition}`
    this.#deleted.set(key, Math.max(this.#deleted.get(key) ?? 0, lowWatermark))
  }

  /** Whether the cluster loses nothing with the disk of a node: whatever it has is at another one, in sync. */
  isSpare(node: string): boolean {
    if (this.#newest === undefined || this.#watched.size < nodeNames.length) return false
    const nodeId = nodeIdOf(node) as BrokerId
    for (const { partition } of placesOf(this.#newest)) {
      const { isr, replicas } = partition
      if (replicas.includes(nodeId) && isr.every((member) => member === nodeId)) return false
    }
    return true
  }

  /** `only`: the one node in which something may have changed; undefined when that can't be said. Throws `PropertyViolation`. */
  afterEvent(only: string | undefined): void {
    let isLook = ++this.#events % eventsPerLook === 0
    for (const watched of this.#watched.values()) {
      if (only !== undefined && watched.node !== only && !isLook) continue
      const { image } = watched.parts.coordination
      if (image !== watched.image) {
        watched.image = image
        this.#onImage(watched, image)
        isLook = true
      }
      this.#lookAtTerm(watched)
      if (isLook) this.#lookAtLeaderships(watched, image)
    }
    if (isLook) this.#lookAtReplicas()
  }

  /** Every node has the same metadata, is unfenced, and every ISR is full. */
  get isWhole(): boolean {
    return this.whyNotWhole() === undefined
  }

  whyNotWhole(): string | undefined {
    const all = [...this.#watched.values()]
    if (all.length < nodeNames.length) return `${nodeNames.length - all.length} brokers are down`
    const indexes = all.map(({ parts }) => parts.coordination.image.index)
    if (new Set(indexes).size > 1) {
      const quorums = all.map(({ node, parts }) => `${node} ${JSON.stringify(parts.coordination.state)}`)
      return `the nodes have come to entries ${indexes}: ${quorums.join(', ')}`
    }
    const { image } = all[0]!.parts.coordination
    const brokers = [...image.cluster.brokers()]
    const active = brokers.filter(({ fenced, inControlledShutdown }) => !fenced && !inControlledShutdown)
    if (active.length < nodeNames.length) return `${active.length} brokers are active`
    for (const { topic, partition, key } of placesOf(image)) {
      const { leader, isr, replicas, addingReplicas, removingReplicas } = partition
      const isMoving = addingReplicas.length > 0 || removingReplicas.length > 0
      if (leader < 0 || isr.length < replicas.length || isMoving) {
        return `${topic.name}-${partition.partition}: leader ${leader}, ISR ${isr} of ${replicas}, ELR ${partition.elr}, epochs ${partition.leaderEpoch} and ${partition.partitionEpoch}, adding ${addingReplicas}, removing ${removingReplicas}`
      }
      if (this.#committedBehind(topic, partition, key))
        return `${topic.name}-${partition.partition}: not all is committed`
      const misplaced = this.#misplaced(topic, partition)
      if (misplaced !== undefined) return misplaced
    }
    return undefined
  }

  /** Logs begin where the leader's does, or, by their own retention, later; who is no replica any more has none. */
  #misplaced(topic: TopicImage, { partition, leader, replicas }: PartitionImage): string | undefined {
    const name = `${topic.name}-${partition}`
    const logOf = (nodeId: number) => this.#watched.get(nodeName(nodeId))?.parts.logs.get(topic.name, partition)
    const start = logOf(leader)?.logStartOffset ?? 0
    for (const { node, nodeId, parts } of this.#watched.values()) {
      const log = parts.logs.get(topic.name, partition)
      const isReplica = replicas.includes(nodeId as BrokerId)
      if (isReplica !== (log !== undefined)) return `${name} is ${isReplica ? 'not' : 'still'} at ${node}`
      if (log === undefined) continue
      if (log.topicId !== topic.topicId) return `${node} has ${name} of the topic ${log.topicId}`
      if (log.logStartOffset < start) return `${name} begins at ${start}, and at ${node} at ${log.logStartOffset}`
    }
    return undefined
  }

  /**
   * All replicas of all partitions are equal in what is committed, from where the last of them begins; of compacted ones, which
   * each replica compacts by itself, in the last record of each key. For a cluster that is whole.
   */
  async compareLogs(): Promise<void> {
    for (const { topic, partition: image, key } of this.#newest === undefined ? [] : placesOf(this.#newest)) {
      const name = `${topic.name}-${image.partition}`
      const { committed } = this.#knownOf(key)
      const replicas = image.replicas.map((nodeId) => {
        const node = nodeName(nodeId)
        const log = this.#watched.get(node)?.parts.logs.get(topic.name, image.partition)
        if (log === undefined) fail('replicas are equal', `${node} has no log of ${name}`)
        return { node, log }
      })
      const isCompacted = this.#newest?.configs.of('topic', topic.name).get('cleanup.policy') === 'compact'
      const start = Math.max(...replicas.map(({ log }) => log.logStartOffset))
      let first: { readonly node: string; readonly content: Buffer } | undefined
      for (const { node, log } of replicas) {
        const whole = await contentOf(log, start, committed)
        const content = isCompacted ? lastOfEachKey(whole) : whole
        first ??= { node, content }
        if (content.equals(first.content)) continue
        const at = content.findIndex((byte, i) => byte !== first?.content[i])
        fail('replicas are equal', `${name} differs between ${first.node} and ${node} at byte ${at}`)
      }
    }
  }

  #committedBehind(topic: TopicImage, { partition, replicas }: PartitionImage, key: string): boolean {
    const known = this.#known.get(key)?.committed ?? 0
    for (const nodeId of replicas) {
      const log = this.#watched.get(nodeName(nodeId))?.parts.logs.get(topic.name, partition)
      if (log === undefined || countedEnd(log) < known || log.logEndOffset > known) return true
    }
    return false
  }

  #onImage(watched: Watched, image: MetadataImage): void {
    if (image.index === 0) return
    const text = JSON.stringify([...snapshotRecords(image)])
    const known = getOrMake(this.#images, image.index, () => text)
    if (known !== text) {
      fail('images are equal', `${watched.node} at entry ${image.index} has ${text}, another node ${known}`)
    }
    if (this.#newest === undefined || image.index > this.#newest.index) this.#newest = image
    this.#lookAtLeaderships(watched, image)
  }

  #lookAtTerm({ node, parts }: Watched): void {
    const { controllerId, controllerEpoch: term } = parts.coordination.state
    if (controllerId === null) return
    const leader = getOrMake(this.#leaderOfTerm, term, () => controllerId as number)
    if (leader !== controllerId) {
      fail('a term has one leader', `In term ${term} ${leader} leads, and for ${node} ${controllerId}`)
    }
  }

  #lookAtLeaderships({ node, nodeId, parts }: Watched, image: MetadataImage): void {
    for (const { topic, partition, key } of placesOf(image)) {
      if (partition.leader !== nodeId) continue
      const led = parts.replicas.led(topic.name, partition.partition, partition.leaderEpoch)
      if (led?.log.topicId !== topic.topicId) continue
      const known = this.#knownOf(key)
      const leader = known.leaders.get(partition.leaderEpoch)
      if (leader === undefined) {
        known.leaders.set(partition.leaderEpoch, node)
        // Each epoch begins after all that earlier ones committed. A later epoch may have been seen before it.
        const isNewest = Math.max(...known.leaders.keys()) === partition.leaderEpoch
        if (isNewest && led.log.logEndOffset < known.committed) {
          fail(
            'leaders have all that is committed',
            `${node} leads ${nameOf(topic, partition)} in epoch ${partition.leaderEpoch} with ${led.log.logEndOffset} records, and ${known.committed} are committed`,
          )
        }
      } else if (leader !== node) {
        fail(
          'a leader epoch has one leader',
          `${leader} and ${node} led ${nameOf(topic, partition)} in epoch ${partition.leaderEpoch}`,
        )
      }
      known.committed = Math.max(known.committed, led.highWatermark)
      const newest = this.#newest?.topics.byId(topic.topicId)?.partitions[partition.partition]
      if (newest === undefined || newest.leaderEpoch !== partition.leaderEpoch) continue
      const deleted = this.#deleted.get(key) ?? 0
      if (led.log.logStartOffset < deleted) {
        const message = `${nameOf(topic, partition)} was deleted up to offset ${deleted}, and begins at ${led.log.logStartOffset} at its leader, ${node}`
        fail('deleted records stay away', message)
      }
      const { maximalIsr } = led
      if (!newest.isr.every((member) => maximalIsr.includes(member))) {
        const message = `${nameOf(topic, partition)}: ISR ${newest.isr}, and ${node} counts with ${maximalIsr}`
        fail('the leader counts the whole ISR', message)
      }
    }
  }

  /** Whoever may come to lead has all that is committed. */
  #lookAtReplicas(): void {
    if (this.#newest === undefined) return
    for (const { topic, partition, key } of placesOf(this.#newest)) {
      const { committed } = this.#knownOf(key)
      if (committed === 0) continue // which every log has
      for (const { node, nodeId, parts } of this.#watched.values()) {
        const isCandidate = partition.isr.includes(nodeId) || partition.elr.includes(nodeId)
        if (!isCandidate) continue
        const log = parts.logs.get(topic.name, partition.partition)
        if (log?.topicId !== topic.topicId || !log.isOnline) continue
        // A run that lost what it did not sync is not in the ISR; that the run before it was, the controller knows at its registration.
        const registered = this.#brokerEpochOf(node)
        const lacks = this.#isVolatile || this.#wiped.has(node)
        if (lacks && registered !== parts.coordination.brokerEpoch) continue
        const end = countedEnd(log)
        if (end >= committed) continue
        fail(
          'candidates have all that is committed',
          `${node} has ${end} records of ${topic.name}-${partition.partition} (ISR ${partition.isr}, ELR ${partition.elr}, leader ${partition.leader} in epoch ${partition.leaderEpoch}), and ${committed} are committed`,
        )
      }
    }
  }

  #knownOf(key: string): Known {
    return getOrMake(this.#known, key, () => ({ leaders: new Map(), committed: 0 }))
  }
}

/** A partition; `key` is the one of the watch's maps. */
interface Place {
  readonly topic: TopicImage
  readonly partition: PartitionImage
  readonly key: string
}

/** Of images, which never change. */
const places = new WeakMap<MetadataImage, readonly Place[]>()

function placesOf(image: MetadataImage): readonly Place[] {
  const known = places.get(image)
  if (known !== undefined) return known
  const made: Place[] = []
  for (const topic of image.topics.all()) {
    for (const partition of topic.partitions) {
      made.push({ topic, partition, key: `${topic.topicId}/${partition.partition}` })
    }
  }
  places.set(image, made)
  return made
}

function nameOf(topic: TopicImage, { partition }: PartitionImage): string {
  return `${topic.name}-${partition}`
}

/** Up to where this replica acknowledges; exclusive. */
function countedEnd(log: PartitionLog): number {
  return log.acksWaitForFlush ? log.flushedOffset : log.logEndOffset
}

/** The batches with all records from `start` up to `end`, exclusive. */
async function contentOf(log: PartitionLog, start: number, end: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for (let offset = start; offset < end; ) {
    const read = await log.read({ fetchOffset: offset, endOffset: end, maxBytes: readBytes, minOneBatch: true })
    if ('outOfRange' in read) fail('replicas are equal', `offset ${offset} can not be read`)
    const bytes = Buffer.concat(read.chunks)
    read.release()
    if (bytes.length === 0) break
    chunks.push(bytes)
    offset = endOffsetOf(bytes)
  }
  return Buffer.concat(chunks)
}

/** After the last batch. */
function endOffsetOf(bytes: Buffer): number {
  let end = 0
  for (let at = 0; at < bytes.length; at += 12 + bytes.readInt32BE(at + 8)) {
    end = Number(bytes.readBigInt64BE(at)) + bytes.readInt32BE(at + 23) + 1
  }
  return end
}

/** Keys with their last offset and value, as text; those that were deleted are left out, with or without their tombstone. */
function lastOfEachKey(bytes: Buffer): Buffer {
  const last = new Map<string, string>()
  const view = new BatchView(bytes)
  for (let at = 0; at < bytes.length; at += view.sizeBytes) {
    view.moveTo(bytes, at)
    for (const { offset, key, value } of readRecords(view, openRecordBytes(view, readBytes))) {
      const name = key?.toString('hex') ?? ''
      if (value === null) last.delete(name)
      else last.set(name, `${offset} ${value.toString('hex')}`)
    }
  }
  return Buffer.from(JSON.stringify([...last].sort(([a], [b]) => (a < b ? -1 : 1))))
}

function fail(property: string, message: string): never {
  throw new PropertyViolation(property, message)
}
