import type { BrokerId } from '../../../src/base/index.ts'
import type { PartitionLog } from '../../../src/log/index.ts'
import {
  type MetadataImage,
  type PartitionImage,
  snapshotRecords,
  type TopicImage,
} from '../../../src/metadata/index.ts'
import type { NodeParts } from '../../../src/node/index.ts'
import { getOrMake, PropertyViolation } from '../checkers/checker.ts'
import { nodeIdOf, nodeNames } from './world.ts'

/** Events between two looks at all replicas. */
const eventsPerLook = 16
const readBytes = 1 << 20

interface Watched {
  readonly node: string
  readonly nodeId: number
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
  #newest: MetadataImage | undefined
  #events = 0

  /** `isVolatile`: see `ClusterScenario`. */
  constructor(isVolatile: boolean) {
    this.#isVolatile = isVolatile
  }

  /** A node's parts are made, before it starts. */
  onAssembled(node: string, parts: NodeParts): void {
    this.#watched.set(node, { node, nodeId: nodeIdOf(node), parts, image: undefined })
  }

  /** Its process ended. */
  onEnded(node: string): void {
    this.#watched.delete(node)
  }

  /** Throws `PropertyViolation`. */
  afterEvent(): void {
    let isLook = ++this.#events % eventsPerLook === 0
    for (const watched of this.#watched.values()) {
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
    if (all.length < nodeNames.length) return `${nodeNames.length - all.length} nodes are down`
    const indexes = all.map(({ parts }) => parts.coordination.image.index)
    if (new Set(indexes).size > 1) {
      const quorums = all.map(({ node, parts }) => `${node} ${JSON.stringify(parts.coordination.quorum())}`)
      return `the nodes have come to entries ${indexes}: ${quorums.join(', ')}`
    }
    const { image } = all[0]!.parts.coordination
    const brokers = [...image.cluster.brokers()]
    const active = brokers.filter(({ fenced, inControlledShutdown }) => !fenced && !inControlledShutdown)
    if (active.length < nodeNames.length) return `${active.length} brokers are active`
    for (const [topic, partition] of partitionsOf(image)) {
      const { leader, isr, replicas } = partition
      if (leader < 0 || isr.length < replicas.length) {
        return `${topic.name}-${partition.partition}: leader ${leader}, ISR ${isr} of ${replicas}, ELR ${partition.elr}, epochs ${partition.leaderEpoch} and ${partition.partitionEpoch}`
      }
      if (this.#committedBehind(topic, partition)) return `${topic.name}-${partition.partition}: not all is committed`
    }
    return undefined
  }

  /** All replicas of all partitions are equal in what is committed. For a cluster that is whole. */
  async compareLogs(): Promise<void> {
    for (const [topic, image] of this.#newest === undefined ? [] : partitionsOf(this.#newest)) {
      const name = `${topic.name}-${image.partition}`
      const { committed } = this.#knownOf(topic, image)
      let first: { readonly node: string; readonly content: Buffer } | undefined
      for (const { node, parts } of this.#watched.values()) {
        const log = parts.logs.get(topic.name, image.partition)
        if (log === undefined) fail('replicas are equal', `${node} has no log of ${name}`)
        const content = await contentOf(log, committed)
        first ??= { node, content }
        if (content.equals(first.content)) continue
        const at = content.findIndex((byte, i) => byte !== first?.content[i])
        fail('replicas are equal', `${name} differs between ${first.node} and ${node} at byte ${at}`)
      }
    }
  }

  #committedBehind(topic: TopicImage, { partition }: PartitionImage): boolean {
    const known = this.#known.get(keyOf(topic, partition))?.committed ?? 0
    for (const { parts } of this.#watched.values()) {
      const log = parts.logs.get(topic.name, partition)
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
    const quorum = parts.coordination.quorum()
    if (quorum === undefined || quorum.leaderId === null) return
    const leader = getOrMake(this.#leaderOfTerm, quorum.term, () => quorum.leaderId as number)
    if (leader !== quorum.leaderId) {
      fail('a term has one leader', `In term ${quorum.term} ${leader} leads, and for ${node} ${quorum.leaderId}`)
    }
  }

  #lookAtLeaderships({ node, nodeId, parts }: Watched, image: MetadataImage): void {
    for (const [topic, partition] of partitionsOf(image)) {
      if (partition.leader !== nodeId) continue
      const led = parts.replicas.led(topic.name, partition.partition, partition.leaderEpoch)
      if (led === undefined) continue
      const name = `${topic.name}-${partition.partition}`
      const known = this.#knownOf(topic, partition)
      const leader = known.leaders.get(partition.leaderEpoch)
      if (leader === undefined) {
        known.leaders.set(partition.leaderEpoch, node)
        // Each epoch begins after all that earlier ones committed. A later epoch may have been seen before it.
        const isNewest = Math.max(...known.leaders.keys()) === partition.leaderEpoch
        if (isNewest && led.log.logEndOffset < known.committed) {
          fail(
            'leaders have all that is committed',
            `${node} leads ${name} in epoch ${partition.leaderEpoch} with ${led.log.logEndOffset} records, and ${known.committed} are committed`,
          )
        }
      } else if (leader !== node) {
        fail('a leader epoch has one leader', `${leader} and ${node} led ${name} in epoch ${partition.leaderEpoch}`)
      }
      known.committed = Math.max(known.committed, led.highWatermark)
      const newest = this.#newest?.topics.byName(topic.name)?.partitions[partition.partition]
      if (newest === undefined || newest.leaderEpoch !== partition.leaderEpoch) continue
      const missing = newest.isr.filter((member) => !led.maximalIsr.includes(member))
      if (missing.length > 0) {
        fail('the leader counts the whole ISR', `${name}: ISR ${newest.isr}, and ${node} counts with ${led.maximalIsr}`)
      }
    }
  }

  /** Whoever may come to lead has all that is committed. */
  #lookAtReplicas(): void {
    if (this.#newest === undefined) return
    for (const [topic, partition] of partitionsOf(this.#newest)) {
      const { committed } = this.#knownOf(topic, partition)
      for (const { node, nodeId, parts } of this.#watched.values()) {
        const isCandidate = partition.isr.some((id) => id === nodeId) || partition.elr.some((id) => id === nodeId)
        if (!isCandidate) continue
        const log = parts.logs.get(topic.name, partition.partition)
        if (log === undefined || !log.isOnline) continue
        // A run that lost what it did not sync is not in the ISR; that the run before it was, the controller knows at its registration.
        const registered = this.#newest.cluster.broker(nodeId as BrokerId)?.brokerEpoch
        if (this.#isVolatile && registered !== parts.coordination.brokerEpoch) continue
        const end = countedEnd(log)
        if (end >= committed) continue
        fail(
          'candidates have all that is committed',
          `${node} has ${end} records of ${topic.name}-${partition.partition} (ISR ${partition.isr}, ELR ${partition.elr}, leader ${partition.leader} in epoch ${partition.leaderEpoch}), and ${committed} are committed`,
        )
      }
    }
  }

  #knownOf(topic: TopicImage, { partition }: PartitionImage): Known {
    return getOrMake(this.#known, keyOf(topic, partition), () => ({ leaders: new Map(), committed: 0 }))
  }
}

function* partitionsOf(image: MetadataImage): Generator<readonly [TopicImage, PartitionImage]> {
  for (const topic of image.topics.all()) for (const partition of topic.partitions) yield [topic, partition]
}

function keyOf({ topicId }: TopicImage, partition: number): string {
  return `${topicId}/${partition}`
}

/** Up to where this replica acknowledges; exclusive. */
function countedEnd(log: PartitionLog): number {
  return log.acksWaitForFlush ? log.flushedOffset : log.logEndOffset
}

/** All records below `end`. */
async function contentOf(log: PartitionLog, end: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for (let offset = log.logStartOffset; offset < end; ) {
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

function fail(property: string, message: string): never {
  throw new PropertyViolation(property, message)
}
