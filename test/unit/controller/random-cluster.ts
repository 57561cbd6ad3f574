import fc from 'fast-check'
import { type BrokerId, type Uuid, zeroUuid } from '../../../src/base/index.ts'
import {
  alterConfigs,
  alterPartition,
  alterPartitionReassignments,
  assignReplicasToDirs,
  balanceLeaders,
  type ControllerSettings,
  clusterStart,
  createTopics,
  electLeaders,
  electUncleanLeaders,
  fenceBroker,
  growInternalTopics,
  handleHeartbeat,
  registerBroker,
  unregisterBroker,
} from '../../../src/controller/index.ts'
import {
  directoryOf,
  emptyImage,
  type MetadataImage,
  type MetadataRecord,
  noLeader,
  type PartitionImage,
  supportedFeatures,
  type TopicImage,
} from '../../../src/metadata/index.ts'
import { brokerId, registration, step, uuid } from '../metadata/support.ts'
import { anyConfig, settings } from './support.ts'

/** Raw material of one thing that happens. */
export interface Draw {
  readonly kind: number
  readonly a: number
  readonly b: number
  readonly flag: boolean
}

export const draws = fc.array(fc.record({ kind: fc.nat(23), a: fc.nat(60), b: fc.nat(60), flag: fc.boolean() }), {
  minLength: 20,
  maxLength: 150,
})

const brokerCount = 5
const topicName = (number: number) => `topic-${number % 3}`

/** What happened: the image before and after, and who was said to have lost its logs. */
export interface Happening {
  readonly what: string
  readonly before: MetadataImage
  readonly after: MetadataImage
  readonly records: readonly MetadataRecord[]
  readonly lost: BrokerId | undefined
  /** A log directory of which nobody has anything any more. */
  readonly lostDirectory: Uuid | undefined
  /** The same decision, on another image; undefined where it can't be asked twice. */
  readonly decideAgain: ((image: MetadataImage) => readonly MetadataRecord[]) | undefined
}

/** A cluster of brokers that come, go, lose their logs, or a directory of two, and are reassigned, as a list of draws says. */
export class RandomCluster {
  image: MetadataImage
  readonly settings: ControllerSettings
  /** `log.dirs` of each broker. */
  readonly #directories = new Map<BrokerId, readonly Uuid[]>()
  #uuids = 10_000

  constructor(options: { readonly minInSyncReplicas: number; readonly keepsElr: boolean }) {
    this.settings = {
      ...settings,
      defaultMinInSyncReplicas: options.minInSyncReplicas,
      growingTopics: new Map([['topic-0', 3]]),
    }
    const records = clusterStart(emptyImage, 'a-cluster', this.settings)
    this.image = step(emptyImage, records).image
    if (!options.keepsElr) {
      this.image = step(this.image, [
        { type: 'FeatureLevel', name: 'eligible.leader.replicas.version', level: 0 },
      ]).image
    }
    for (let id = 0; id < brokerCount; id++) this.happen({ kind: 0, a: id, b: 0, flag: true })
    for (let id = 0; id < brokerCount; id++) this.happen({ kind: 2, a: id, b: 0, flag: true })
    for (let number = 0; number < 3; number++) this.happen({ kind: 6, a: number, b: number, flag: true })
  }

  happen(draw: Draw): Happening {
    const { what, decide, lost, lostDirectory } = this.#event(draw)
    const before = this.image
    const records = decide(before)
    const after = step(before, records).image
    this.image = after
    return {
      what,
      before,
      after,
      records,
      lost,
      lostDirectory,
      decideAgain: what.startsWith('controller') ? decide : undefined,
    }
  }

  /** Whether the broker's replica is in a directory that it still has, as far as the metadata knows. */
  hasDirectory(partition: PartitionImage, id: BrokerId): boolean {
    const directory = directoryOf(partition, id)
    return directory === zeroUuid || this.#directoriesOf(id).includes(directory)
  }

  #directoriesOf(id: BrokerId): readonly Uuid[] {
    return this.#directories.get(id) ?? [uuid(2000 + id), uuid(3000 + id)]
  }

  #event({ kind, a, b, flag }: Draw): {
    what: string
    decide: (image: MetadataImage) => readonly MetadataRecord[]
    lost?: BrokerId
    lostDirectory?: Uuid
  } {
    const { image, settings } = this
    const id = brokerId(a % brokerCount)
    const broker = image.cluster.broker(id)
    const beat = { brokerId: id, brokerEpoch: broker?.brokerEpoch ?? (0 as never), appliedIndex: 1_000_000 }
    const heartbeat =
      (fields: { wantFence?: boolean; wantShutdown?: boolean; offlineLogDirs?: Uuid[] }) => (head: MetadataImage) =>
        handleHeartbeat(
          head,
          { ...beat, wantFence: false, wantShutdown: false, ...fields },
          { settings, othersKnowOfShutdown: flag },
        ).records
    const registers = (isClean: boolean) => {
      const { endpoints, rack } = registration(id)
      const incarnationId = uuid(this.#uuids++)
      const previousBrokerEpoch = isClean ? (broker?.brokerEpoch ?? null) : null
      const run = { brokerId: id, incarnationId, clusterId: 'a-cluster', endpoints, rack }
      const logDirs = this.#directoriesOf(id)
      const request = { ...run, logDirs, features: supportedFeatures, previousBrokerEpoch }
      const nextIndex = image.index + 1
      return (head: MetadataImage) =>
        registerBroker(head, request, { settings, nextIndex, registeredRunIsAlive: false }).records
    }
    switch (kind % 24) {
      case 0:
      case 1:
        // A new run of the broker, after an orderly end (flag) or a crash.
        return { what: 'registers', decide: registers(flag), ...(flag ? {} : { lost: id }) }
      case 2:
      case 3:
        return { what: 'controller hears', decide: heartbeat({}) }
      case 4:
        return { what: 'controller fences', decide: (head) => fenceBroker(head, id, settings) }
      case 5:
        return flag
          ? { what: 'controller lets go', decide: heartbeat({ wantShutdown: true }) }
          : { what: 'controller fences as asked', decide: heartbeat({ wantFence: true }) }
      case 6: {
        const topic = { name: topicName(a), partitionCount: 1 + (b % 3), replicationFactor: 1 + (b % 4) }
        const context = { settings, configRules: anyConfig, validateOnly: false, placementStart: b }
        const topicIds = [uuid(this.#uuids++)]
        return {
          what: 'creates',
          decide: (head) => createTopics(head, [{ ...topic, configs: new Map() }], { ...context, topicIds }).records,
        }
      }
      case 7:
        if (b % 8 !== 0) return { what: 'nothing', decide: () => [] }
        return {
          what: 'controller unregisters',
          decide: (head) => unregisterBroker(head, id, settings).records,
          lost: id,
        }
      case 8:
      case 9:
      case 10:
      case 11:
      case 12:
        return this.#isrChange(a, b, flag)
      case 13: {
        const electionType = flag ? 'preferred' : 'unclean'
        if (!flag && b % 4 !== 0) return { what: 'nothing', decide: () => [] }
        return {
          what: `elects ${electionType}`,
          decide: (head) => electLeaders(head, { electionType, partitions: null }, settings).records,
        }
      }
      case 14:
        return {
          what: 'balances',
          decide: (head) => balanceLeaders(head, { maxImbalancePercentage: b }, settings).records,
        }
      case 15:
      case 16: {
        const replicas = flag ? shuffled(b).slice(0, 1 + (a % 4)) : null
        const requests = [{ topic: topicName(a), partition: b % 3, replicas }]
        return {
          what: 'reassigns',
          decide: (head) =>
            alterPartitionReassignments(head, { requests, allowReplicationFactorChange: true }, settings).records,
        }
      }
      case 17: {
        const resource = flag
          ? ({ resourceType: 'topic', resourceName: topicName(a) } as const)
          : ({ resourceType: 'broker', resourceName: '' } as const)
        const changes = new Map([['min.insync.replicas', `${1 + (b % 3)}`]])
        const context = { settings, configRules: anyConfig, validateOnly: false }
        return {
          what: 'sets min.insync.replicas',
          decide: (head) => alterConfigs(head, [{ ...resource, changes }], context).records,
        }
      }
      case 18:
        return { what: 'controller elects unclean', decide: (head) => electUncleanLeaders(head, settings) }
      case 20: {
        // A new run after an orderly end, with one of the directories replaced by a new one.
        const [lostDirectory, kept] = this.#directoriesOf(id)
        this.#directories.set(id, [kept!, uuid(this.#uuids++)])
        return { what: 'registers without a directory', decide: registers(true), lostDirectory: lostDirectory! }
      }
      case 21:
      case 22:
        return this.#placement(id, b)
      case 23:
        return {
          what: 'controller hears of a failure',
          decide: heartbeat({ offlineLogDirs: [this.#directoriesOf(id)[a % 2]!] }),
        }
      default:
        return { what: 'controller grows', decide: (head) => growInternalTopics(head, settings) }
    }
  }

  /** A broker says where its replicas are: those of which nobody knows, those that were made anew, and some that moved. */
  #placement(brokerId: BrokerId, b: number) {
    const { image, settings } = this
    const broker = image.cluster.broker(brokerId)
    const assignments = allPartitions(image).flatMap(({ topic, partition }, i) => {
      const before = directoryOf(partition, brokerId)
      const isOffline = this.#directoriesOf(brokerId).includes(before) && !broker?.logDirs.includes(before)
      const directory = broker?.logDirs[(i + b) % broker.logDirs.length]
      if (directory === undefined || isOffline || !partition.replicas.includes(brokerId)) return []
      return [{ topicId: topic.topicId, partition: partition.partition, directory }]
    })
    const request = { brokerId, brokerEpoch: broker?.brokerEpoch ?? (0 as never), assignments }
    return {
      what: 'says where replicas are',
      decide: (head: MetadataImage) => assignReplicasToDirs(head, request, settings).records,
    }
  }

  /** The leader of some partition says who is in sync: whoever lives, or nonsense. */
  #isrChange(a: number, b: number, flag: boolean) {
    const { image, settings } = this
    const topic = image.topics.byName(topicName(a))
    const partition = topic?.partitions[b % (topic.partitions.length || 1)]
    const leader = partition === undefined ? undefined : image.cluster.broker(partition.leader)
    if (topic === undefined || partition === undefined || leader === undefined) {
      return { what: 'nothing', decide: () => [] }
    }
    const wanted = partition.replicas.filter((id) => id === leader.brokerId || flag || (a + id) % 2 === 0)
    const isr = wanted.map((id) => ({ brokerId: id, brokerEpoch: image.cluster.broker(id)?.brokerEpoch ?? null }))
    const live = isr.filter(({ brokerId: id }) => image.cluster.broker(id)?.fenced === false)
    const change = {
      topicId: topic.topicId,
      partition: partition.partition,
      leaderEpoch: partition.leaderEpoch,
      partitionEpoch: partition.partitionEpoch,
      isr: b % 3 === 0 ? isr : live,
      leaderRecoveryState: 'recovered',
    } as const
    const { brokerId, brokerEpoch } = leader
    const request = { brokerId, brokerEpoch, changes: [change] }
    return { what: 'alters', decide: (head: MetadataImage) => alterPartition(head, request, settings).records }
  }
}

export function allPartitions(image: MetadataImage): { topic: TopicImage; partition: PartitionImage; key: string }[] {
  return [...image.topics.all()].flatMap((topic) =>
    topic.partitions.map((partition) => ({ topic, partition, key: `${topic.topicId}-${partition.partition}` })),
  )
}

/** As the leaders see it: below it nothing more is committed. */
export function minInSyncReplicas(image: MetadataImage, { name }: TopicImage, partition: PartitionImage): number {
  const key = 'min.insync.replicas'
  const text = image.configs.of('topic', name).get(key) ?? image.configs.of('broker', '').get(key) ?? '1'
  return Math.min(Number(text), partition.replicas.length)
}

/** Who has all records of each partition that were acknowledged to a producer with acks=all. */
export class AcknowledgedRecords {
  readonly #holders = new Map<string, Set<BrokerId>>()

  holders(key: string): ReadonlySet<BrokerId> {
    return this.#holders.get(key) ?? new Set()
  }

  /** `commits`: whether the leaders go on to write after it. */
  follow({ what, before, after, lost, lostDirectory }: Happening, commits: boolean): void {
    for (const { topic, partition, key } of allPartitions(after)) {
      const was = before.topics.byId(topic.topicId)?.partitions[partition.partition]
      const holders = this.#holders.get(key) ?? new Set((was ?? partition).isr)
      this.#holders.set(key, holders)
      if (lost !== undefined) holders.delete(lost)
      for (const id of partition.replicas) {
        if (lostDirectory !== undefined && directoryOf(partition, id) === lostDirectory) holders.delete(id)
      }
      // A loss that the controller accepts: what the leader has is all there is.
      const acceptsLoss = partition.leaderRecoveryState === 'recovering' && partition.leader !== noLeader
      if (acceptsLoss && (was?.leader !== partition.leader || was.leaderRecoveryState === 'recovered')) {
        this.#holders.set(key, new Set([partition.leader]))
      }
      // Whoever joins the ISR at the word of a leader has caught up with it.
      if (was !== undefined && what === 'alters')
        for (const id of partition.isr) if (!was.isr.includes(id)) this.#holders.get(key)?.add(id)
      const mayCommit =
        partition.leader !== noLeader && partition.isr.length >= minInSyncReplicas(after, topic, partition)
      if (commits && mayCommit) this.#holders.set(key, new Set(partition.isr))
    }
  }
}

function shuffled(seed: number): BrokerId[] {
  const ids = [...Array(brokerCount).keys()].map(brokerId)
  return ids.map((_, i) => ids[(i * (1 + (seed % 4)) + seed) % brokerCount] as BrokerId)
}
