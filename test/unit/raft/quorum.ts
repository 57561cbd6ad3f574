import type { Uuid } from '../../../src/base/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import {
  type Entry,
  type Leadership,
  type Membership,
  type NodeId,
  openDurableStorage,
  type RaftConfig,
  RaftNode,
  type RaftStorage,
  type RaftTransport,
  type Snapshot,
} from '../../../src/raft/index.ts'
import { RaftTransportHub } from '../../support/memory-raft-transport.ts'
import { openSimulatedStore } from '../../support/simulated-kv.ts'

export const logger = { info: () => undefined, error: () => undefined }

/** One node's process: what it told its listeners. */
export interface StartOptions {
  keptEntries?: number
  transport?: RaftTransport
  /** Without voters: a node that follows. */
  bootstrap?: Membership
  directoryId?: Uuid
  config?: Partial<RaftConfig>
  /** Has a transport, though it is the only voter. */
  isReachable?: boolean
}

export function directoryOf(id: number): Uuid {
  return `disk-${id}` as Uuid
}

export interface Running {
  readonly id: NodeId
  readonly node: RaftNode
  readonly storage: RaftStorage
  readonly committed: Entry[]
  /** The state machine: the texts so far, as snapshots of it restored them. */
  state: string[]
  readonly leaderships: Leadership[]
  readonly snapshots: Snapshot[]
  readonly faults: unknown[]
}

/** Nodes 1 to `count`, each on a host of its own. */
export class Quorum {
  readonly simulation: Simulation
  readonly hub = new RaftTransportHub()
  readonly membership: Membership
  readonly running = new Map<number, Running>()

  constructor(count: number, seed = 1) {
    this.simulation = createSimulation({ seed })
    this.membership = {
      voters: Array.from({ length: count }, (_, i) => ({ id: (i + 1) as NodeId, directoryId: directoryOf(i + 1) })),
    }
  }

  host(id: number): SimulatedHost {
    return this.simulation.host(`n${id}`)
  }

  async start(id: number, options: StartOptions = {}): Promise<Running> {
    return await this.simulation.run(this.#start(id as NodeId, options))
  }

  async #start(id: NodeId, options: StartOptions): Promise<Running> {
    const { platform } = this.host(id)
    const { files, timers } = platform
    const directory = '/data/raft'
    const storage = await openDurableStorage({
      files,
      timers,
      directory,
      bootstrap: options.bootstrap ?? this.membership,
      scheduleSync: (work) => work(),
      openStore: (path) => openSimulatedStore(files, path),
    })
    const isAlone =
      this.membership.voters.length === 1 && options.isReachable !== true && options.bootstrap === undefined
    const transport = options.transport ?? (isAlone ? undefined : this.hub.transportOf(id))
    const { keptEntries = 1000, directoryId = directoryOf(id), config = {} } = options
    const contacts = options.bootstrap === undefined ? [] : this.membership.voters.map((voter) => voter.id)
    const node = new RaftNode({
      id,
      directoryId,
      storage,
      transport,
      platform,
      logger,
      keptEntries,
      contacts,
      config,
    })
    const running: Running = { id, node, storage, committed: [], state: [], leaderships: [], snapshots: [], faults: [] }
    node.onCommitted((entries) => {
      running.committed.push(...entries)
      running.state.push(...textsOf(entries))
    })
    node.onLeadership((leadership) => running.leaderships.push(leadership))
    node.onSnapshot((snapshot) => {
      running.snapshots.push(snapshot)
      running.state = Buffer.from(snapshot.data).toString().split(' ').filter(Boolean)
    })
    node.onFault((error) => running.faults.push(error))
    this.running.set(id, running)
    await node.start()
    return running
  }

  async startAll(): Promise<void> {
    for (const { id } of this.membership.voters) await this.start(id)
  }

  /** Power loss. */
  crash(id: number): void {
    this.hub.remove(id as NodeId)
    this.host(id).crash()
    this.running.delete(id)
  }

  async restart(id: number, options: StartOptions = {}): Promise<Running> {
    this.host(id).restart()
    return await this.start(id, options)
  }

  /** The one that was told that it leads, once there is one. */
  async leader(): Promise<Running> {
    const find = () => [...this.running.values()].filter(({ leaderships }) => leaderships.at(-1)?.isLeader === true)
    await this.simulation.runUntil(() => find().length === 1)
    return find()[0]!
  }

  async propose(on: Running, text: string) {
    return await this.simulation.run(on.node.propose(Buffer.from(text)))
  }

  async stopAll(): Promise<void> {
    for (const { node } of this.running.values()) await this.simulation.run(node.stop())
  }
}

export function textsOf(entries: readonly Entry[]): string[] {
  return entries.filter(({ type }) => type === 'data').map(({ data }) => Buffer.from(data).toString())
}
