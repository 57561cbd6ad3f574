import type { BrokerId, Uuid } from '../../../src/base/index.ts'
import type { BrokerRegistration } from '../../../src/controller/index.ts'
import {
  type Coordination,
  createRaftCoordination,
  LocalQuorum,
  type LocalQuorumOptions,
  type RaftCoordinationOptions,
} from '../../../src/coordination/index.ts'
import { supportedFeatures } from '../../../src/metadata/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import {
  type KeyValueOperation,
  type KeyValueStore,
  MemoryStore,
  type NodeId,
  RaftNode,
  RaftStorage,
} from '../../../src/raft/index.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { anyConfig, settings } from '../controller/support.ts'

export const localId = 1 as BrokerId
const raftId = 1 as NodeId

/** A disk that outlives the nodes on it. A crash loses the batches that were not done; a write takes time. */
export class TestDisk {
  readonly #platform: () => Platform
  readonly #values = new MemoryStore()
  #generation = 0
  /** Rejects the next batch. */
  failNext = false
  batchCount = 0

  /** `platform` of whoever writes at the time. */
  constructor(platform: () => Platform) {
    this.#platform = platform
  }

  /** Whatever was opened before reaches the disk no more. */
  crash(): void {
    this.#generation++
  }

  open(): KeyValueStore {
    const generation = ++this.#generation
    const values = this.#values
    return {
      get: (key) => values.get(key),
      iterate: (from, end) => values.iterate(from, end),
      close: async () => {},
      batch: async (operations) => {
        await this.#write(operations, generation)
      },
    }
  }

  async #write(operations: readonly KeyValueOperation[], generation: number): Promise<void> {
    const { timers, random } = this.#platform()
    if (this.failNext) throw new Error('EIO: injected')
    const copies = operations.map((operation) =>
      operation.type === 'put' ? { ...operation, value: Buffer.from(operation.value) } : operation,
    )
    await new Promise<void>((resolve) => timers.set(random.int(5), resolve))
    if (generation !== this.#generation) return await new Promise<never>(() => {})
    this.batchCount++
    this.#values.apply(copies)
  }
}

export interface TestNode {
  readonly coordination: Coordination
  readonly raft: RaftNode
  readonly storage: RaftStorage
}

/** A node that is the whole quorum, on `disk`; not started. */
export async function nodeOn(
  disk: TestDisk,
  platform: Platform,
  options: Partial<LocalQuorumOptions & RaftCoordinationOptions> = {},
): Promise<TestNode> {
  const bootstrap = { voters: [{ id: raftId, directoryId: platform.random.uuid() }] }
  const store = disk.open()
  const storage = await RaftStorage.open({ store, quorumState: undefined, timers: platform.timers, bootstrap })
  const raft = new RaftNode({
    id: raftId,
    directoryId: storage.log.snapshot.membership.voters[0]!.directoryId, // of the first start
    storage,
    transport: undefined,
    platform,
    logger: silentLogger,
    keptEntries: 0,
  })
  const both = {
    platform,
    logger: silentLogger,
    brokerId: localId,
    heartbeatIntervalMs: 2000,
    sessionTimeoutMs: 9000,
    ...options,
  }
  const quorum = new LocalQuorum({
    raft,
    clusterId: 'test-cluster',
    controller: settings,
    configRules: anyConfig,
    maxBytesBetweenSnapshots: 20 << 20,
    maxSnapshotIntervalMs: 0,
    ...both,
  })
  const coordination = createRaftCoordination({ quorum, ...both })
  return { coordination, raft, storage }
}

/** A new run of the node's broker. */
export function newRun(platform: Platform, incarnationId: Uuid = platform.random.uuid()): BrokerRegistration {
  const endpoint = { name: 'PLAINTEXT', host: 'localhost', port: 9092, securityProtocol: 'PLAINTEXT' } as const
  return {
    brokerId: localId,
    incarnationId,
    clusterId: 'test-cluster',
    endpoints: [endpoint],
    rack: null,
    logDirs: [],
    features: supportedFeatures,
    previousBrokerEpoch: null,
  }
}

export function newTopic(name: string, partitionCount = 1) {
  return { name, partitionCount, replicationFactor: 1, configs: new Map<string, string>() }
}
