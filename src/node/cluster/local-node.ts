import { join } from 'node:path'
import type { ParsedConfig } from '../../config/index.ts'
import { createHaltingPlatform, type HaltingPlatform, type Platform } from '../../platform/index.ts'
import { MemoryStore, openDurableStorage, type RaftStorage } from '../../raft/index.ts'
import type { NodeMessages, RpcNetwork } from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import { raftStorageOnDisk } from '../raft-storage.ts'
import type { RaftStorageRequest, RunningNode } from '../running-node.ts'
import { startNode } from '../start-node.ts'
import { LinkedNetwork, type Links } from './links.ts'
import { SwitchedRpc } from './switched-rpc.ts'

/** What all nodes of a cluster share. */
export interface Surroundings {
  readonly links: Links
  readonly grpc: RpcNetwork
  readonly messages: NodeMessages
  /** Of the CONTROLLER listeners, by `node-1`, ... */
  readonly controllerPorts: Map<string, number>
  /** Ids by the ports where clients connect. */
  readonly idsByPort: Map<number, number>
}

export interface LocalNodeOptions {
  readonly id: number
  readonly roles: readonly ('broker' | 'controller')[]
  /** Of this node alone; its files outlive each of its runs. */
  readonly platform: Platform
  readonly inMemory: boolean
  /** `port`: where it listened before; 0 for any. */
  readonly config: (port: number) => ParsedConfig
  readonly logger: Logger
  readonly surroundings: Surroundings
}

export type NodeState = 'stopped' | 'starting' | 'running' | 'paused'

interface Run {
  readonly halting: HaltingPlatform
  readonly rpc: SwitchedRpc
  readonly node: Promise<RunningNode>
}

/** The name of a node's CONTROLLER listener in the settings of all. */
export function nodeName(id: number): string {
  return `node-${id}`
}

/** One node of a cluster in one process: what a process would be to it, with what happens to processes. */
export class LocalNode {
  readonly id: number
  readonly roles: readonly ('broker' | 'controller')[]
  readonly #options: LocalNodeOptions
  /** In place of Level, where nothing touches a disk. */
  readonly #store = new MemoryStore()
  #run: Run | undefined
  #running: RunningNode | undefined
  #isPaused = false
  #port = 0

  constructor(options: LocalNodeOptions) {
    this.id = options.id
    this.roles = options.roles
    this.#options = options
  }

  get state(): NodeState {
    if (this.#run === undefined) return 'stopped'
    if (this.#isPaused) return 'paused'
    return this.#running === undefined ? 'starting' : 'running'
  }

  /** Where clients connect: the same in each run. 0 before the first, and on a node that is no broker. */
  get port(): number {
    return this.#port
  }

  /** Undefined unless it serves. */
  get running(): RunningNode | undefined {
    return this.#isPaused ? undefined : this.#running
  }

  /** Resolves when it serves. No effect when it does. */
  async start(): Promise<void> {
    this.#run ??= this.#begin()
    const run = this.#run
    try {
      const node = await run.node
      if (this.#run !== run) return
      this.#running = node
      if (this.roles.includes('broker')) {
        this.#port = Number(node.bootstrapServers.slice(node.bootstrapServers.lastIndexOf(':') + 1))
        this.#options.surroundings.idsByPort.set(this.#port, this.id)
      }
      node.ended.catch(() => this.#end(run)) // it can't go on: as a process, it would be gone
    } catch (error) {
      await this.#end(run)
      throw error
    }
  }

  /** As SIGTERM ends a process: it hands over what it leads, and closes its files in order. */
  async stop(): Promise<void> {
    const run = this.#run
    if (run === undefined) return
    this.resume()
    try {
      await (await run.node).stop()
    } finally {
      await this.#end(run)
    }
  }

  /** As SIGKILL ends a process: connections break, nothing is written any more, and what was written stays. */
  async kill(): Promise<void> {
    if (this.#run !== undefined) await this.#end(this.#run)
  }

  pause(): void {
    if (this.#run === undefined) return
    this.#isPaused = true
    this.#run.halting.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#run?.halting.resume()
  }

  #begin(): Run {
    const { id, platform: own, config, logger, surroundings } = this.#options
    const { links, grpc, messages, controllerPorts, idsByPort } = surroundings
    const halting = createHaltingPlatform(own)
    const { platform, turnstile } = halting
    const { timers } = platform
    const wayTo = (port: number) => {
      const peer = idsByPort.get(port)
      return peer === undefined || peer === id ? undefined : links.between(id, peer)
    }
    const rpc = new SwitchedRpc({
      network: grpc,
      timers,
      turnstile,
      wayTo: (host) => links.between(id, Number(host.slice(nodeName(0).length - 1))),
      ports: controllerPorts,
    })
    const node = startNode({
      config: config(this.#port),
      platform: { ...platform, network: new LinkedNetwork({ network: platform.network, timers, wayTo }) },
      logger,
      openRaftStorage: async (request) => halting.wrap(await this.#openRaftStorage(request)),
      loadPeerServices: async () => ({ network: rpc, messages }),
    })
    node.catch(() => undefined) // `start` tells
    return { halting, rpc, node }
  }

  /**
   * On the platform below the one that can be halted, and with syncs of its own: what it began must end, so that it can be
   * closed when the node is killed. The halting is around it.
   */
  async #openRaftStorage({ directory, bootstrap }: RaftStorageRequest): Promise<RaftStorage> {
    const { platform, inMemory } = this.#options
    const scheduleSync = (work: () => Promise<void>) => work()
    if (!inMemory) return await raftStorageOnDisk({ directory, bootstrap, platform, scheduleSync })
    const { files, timers } = platform
    await files.makeDirectory(join(directory, 'log'))
    const store = this.#store
    const openStore = async () => ({
      get: (key: Uint8Array) => store.get(key),
      iterate: (from: Uint8Array, end: Uint8Array) => store.iterate(from, end),
      batch: (operations: Parameters<MemoryStore['batch']>[0]) => store.batch(operations),
      close: async () => undefined, // the next run opens it again
    })
    return await openDurableStorage({ files, timers, directory, bootstrap, scheduleSync, openStore })
  }

  async #end(run: Run): Promise<void> {
    if (this.#run === run) {
      this.#run = undefined
      this.#running = undefined
      this.#isPaused = false
    }
    await Promise.all([run.halting.end(), run.rpc.end()])
  }
}
