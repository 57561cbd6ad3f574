import type { BrokerEpoch, BrokerId, LeaderEpoch } from '../base/index.ts'
import { type MetadataDelta, type MetadataImage, noLeader, type PartitionImage } from '../metadata/index.ts'
import type { Platform } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { Partition } from './partition.ts'
import { type FetcherSettings, ReplicaFetcher } from './replica-fetcher.ts'
import type { ReplicationQuota } from './replication-quota.ts'

export interface FetchersOptions {
  readonly platform: Platform
  readonly logger: Logger
  readonly localId: BrokerId
  /** Of this broker's run; undefined until it is registered. */
  readonly brokerEpoch: () => BrokerEpoch | undefined
  /** The listener over which brokers replicate. */
  readonly listenerName: string
  readonly settings: FetcherSettings
  /** Of what all fetchers bring of throttled replicas. */
  readonly quota: ReplicationQuota
}

/** One fetcher for each broker that leads something of which a follower is here. */
export class Fetchers {
  readonly #options: FetchersOptions
  readonly #byLeader = new Map<BrokerId, ReplicaFetcher>()
  /** Whom each partition follows, in which epoch. */
  readonly #followed = new Map<Partition, { readonly leader: BrokerId; readonly leaderEpoch: LeaderEpoch }>()
  #image: MetadataImage | undefined

  constructor(options: FetchersOptions) {
    this.#options = options
  }

  /** Before the partitions of the same change: a leader that was started again is reached anew. */
  applyBrokers(delta: MetadataDelta, image: MetadataImage): void {
    this.#image = image
    for (const brokerId of delta.changedBrokers) {
      const before = delta.base.cluster.broker(brokerId)
      if (before?.brokerEpoch !== image.cluster.broker(brokerId)?.brokerEpoch) this.#byLeader.get(brokerId)?.reconnect()
    }
  }

  /** Follows whom `image` says, if that is another broker. */
  follow(partition: Partition, image: PartitionImage): void {
    const { leader, leaderEpoch } = image
    const before = this.#followed.get(partition)
    if (before?.leader === leader && before.leaderEpoch === leaderEpoch) return
    this.unfollow(partition)
    if (leader === noLeader || leader === this.#options.localId) return
    this.#followed.set(partition, { leader, leaderEpoch })
    this.#fetcherOf(leader).follow(partition.log.topicId, partition, leaderEpoch)
  }

  unfollow(partition: Partition): void {
    const before = this.#followed.get(partition)
    if (before === undefined) return
    this.#followed.delete(partition)
    const fetcher = this.#byLeader.get(before.leader)
    fetcher?.unfollow(partition)
    if (!fetcher?.isIdle) return
    fetcher.stop()
    this.#byLeader.delete(before.leader)
  }

  stop(): void {
    for (const fetcher of this.#byLeader.values()) fetcher.stop()
    this.#byLeader.clear()
    this.#followed.clear()
  }

  #fetcherOf(leaderId: BrokerId): ReplicaFetcher {
    const existing = this.#byLeader.get(leaderId)
    if (existing !== undefined) return existing
    const { platform, logger, localId, brokerEpoch, settings, quota, listenerName } = this.#options
    const endpoint = () => {
      const endpoints = this.#image?.cluster.broker(leaderId)?.endpoints ?? []
      return endpoints.find(({ name }) => name === listenerName)
    }
    const fetcher = new ReplicaFetcher({ platform, logger, localId, leaderId, brokerEpoch, endpoint, settings, quota })
    this.#byLeader.set(leaderId, fetcher)
    return fetcher
  }
}
