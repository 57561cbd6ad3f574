import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, ProducerId, Uuid } from '../base/index.ts'

/** Where clients (and, on the CONTROLLER listener, other nodes) reach a broker. */
export interface Endpoint {
  /** Listener name: 'PLAINTEXT', 'CONTROLLER'. */
  readonly name: string
  readonly host: string
  readonly port: number
  readonly securityProtocol: 'PLAINTEXT' | 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'
}

/** No leader. */
export const noLeader = -1 as BrokerId

/**
 * The feature whose level says which records may be written: Rookery's own numbers, from 1. A log or snapshot of a level
 * past `latest` was written by a newer version and is refused.
 *
 * | level | adds |
 * |---|---|
 * | 1 | brokers, topics, configs, producer ids |
 * | 2 | what several brokers need: reassignments, recovery states, eligible leader replicas, assignments to log directories, features that nodes support |
 */
export const metadataVersion = { feature: 'metadata.version', latest: 2, severalBrokers: 2 } as const

/** Replicas that left the ISR below min.insync.replicas may still be elected, KIP-966. Needs `metadataVersion.severalBrokers`. */
export const eligibleLeaderReplicas = { feature: 'eligible.leader.replicas.version', latest: 1 } as const

/** A feature that a node knows, and which of its levels: both ends included. Level 0 is the feature's absence. */
export interface SupportedFeature {
  readonly name: string
  readonly minLevel: number
  readonly maxLevel: number
}

/** What this version of Rookery supports; part of each node's registration. */
export const supportedFeatures: readonly SupportedFeature[] = [
  { name: metadataVersion.feature, minLevel: 1, maxLevel: metadataVersion.latest },
  { name: eligibleLeaderReplicas.feature, minLevel: 0, maxLevel: eligibleLeaderReplicas.latest },
]

/**
 * 'recovering': the leader was elected though it may lack what was acknowledged, and has not yet said that it settled what
 * its log holds. Until then nobody joins the ISR. KIP-704.
 */
export type LeaderRecoveryState = 'recovered' | 'recovering'

/**
 * What changes metadata, and the only thing that does. Names and meaning follow Kafka's metadata records. Fields are only
 * ever added; a record that an older node doesn't know is gated by a feature level.
 */
export type MetadataRecord =
  /**
   * Sets a feature's level, 1 to 32767; 0 removes the feature. The first record of every log and snapshot is
   * `metadata.version`.
   */
  | { readonly type: 'FeatureLevel'; readonly name: string; readonly level: number }
  /** Names the cluster, once: in the first entry of its log, and in every snapshot. */
  | { readonly type: 'ClusterId'; readonly clusterId: string }
  /**
   * A broker's new run, or new endpoints of the same run. `brokerEpoch` is the index of the log entry that first held this
   * run's registration.
   */
  | {
      readonly type: 'RegisterBroker'
      readonly brokerId: BrokerId
      readonly incarnationId: Uuid
      readonly brokerEpoch: BrokerEpoch
      readonly endpoints: readonly Endpoint[]
      readonly rack: string | null
      /** Ids of its log directories, as in their meta.properties. */
      readonly logDirs: readonly Uuid[]
      readonly fenced: boolean
      /** None when absent: the run is of a version that only knew metadata.version 1. */
      readonly features?: readonly SupportedFeature[]
    }
  /** A node of the quorum says what it supports and where it is reached; a newer run replaces it. */
  | {
      readonly type: 'RegisterController'
      readonly controllerId: BrokerId
      readonly incarnationId: Uuid
      readonly endpoints: readonly Endpoint[]
      readonly features: readonly SupportedFeature[]
    }
  | { readonly type: 'UnregisterBroker'; readonly brokerId: BrokerId; readonly brokerEpoch: BrokerEpoch }
  /** Fences or unfences a registered broker, or marks it as shutting down; absent fields stay as they are. */
  | {
      readonly type: 'BrokerRegistrationChange'
      readonly brokerId: BrokerId
      readonly brokerEpoch: BrokerEpoch
      readonly fenced?: boolean
      readonly inControlledShutdown?: boolean
      /** Those that work. */
      readonly logDirs?: readonly Uuid[]
    }
  | { readonly type: 'Topic'; readonly name: string; readonly topicId: Uuid }
  /** A new partition; its index is the number of partitions that the topic has before it. What is absent is empty, or 'recovered'. */
  | {
      readonly type: 'Partition'
      readonly topicId: Uuid
      readonly partition: number
      /** In order of preference. */
      readonly replicas: readonly BrokerId[]
      readonly isr: readonly BrokerId[]
      readonly leader: BrokerId
      readonly leaderEpoch: LeaderEpoch
      readonly partitionEpoch: PartitionEpoch
      readonly addingReplicas?: readonly BrokerId[]
      readonly removingReplicas?: readonly BrokerId[]
      readonly elr?: readonly BrokerId[]
      readonly lastKnownElr?: readonly BrokerId[]
      readonly leaderRecoveryState?: LeaderRecoveryState
      readonly directories?: readonly Uuid[]
    }
  /**
   * Only what changes. A present `leader` raises the leader epoch by one, also when it names the leader of before; every
   * PartitionChange raises the partition epoch by one. When `replicas` change and `directories` are absent, those that stay
   * keep their directory.
   */
  | {
      readonly type: 'PartitionChange'
      readonly topicId: Uuid
      readonly partition: number
      readonly replicas?: readonly BrokerId[]
      readonly isr?: readonly BrokerId[]
      readonly leader?: BrokerId
      readonly addingReplicas?: readonly BrokerId[]
      readonly removingReplicas?: readonly BrokerId[]
      readonly elr?: readonly BrokerId[]
      readonly lastKnownElr?: readonly BrokerId[]
      readonly leaderRecoveryState?: LeaderRecoveryState
      readonly directories?: readonly Uuid[]
    }
  /** With its partitions and configs. */
  | { readonly type: 'RemoveTopic'; readonly topicId: Uuid }
  /** One key of one resource; value null removes it. Broker resources are named by id, '' is the cluster's default. */
  | {
      readonly type: 'Config'
      readonly resourceType: 'topic' | 'broker'
      readonly resourceName: string
      readonly key: string
      readonly value: string | null
    }
  /** Every producer id below `nextProducerId` was handed out. */
  | {
      readonly type: 'ProducerIds'
      readonly brokerId: BrokerId
      readonly brokerEpoch: BrokerEpoch
      readonly nextProducerId: ProducerId
    }
  /** Changes nothing. */
  | { readonly type: 'NoOp' }
