import { join } from 'node:path'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { BrokerProcess } from './broker-process.ts'
import { until } from './condition.ts'
import { freePorts } from './free-ports.ts'
import { connect } from './kafka-connection.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Ports of one node on this machine. */
export interface NodePorts {
  readonly client: number
  readonly controller: number
}

/** `controller.quorum.voters` of nodes 1, 2, 3, ... with these ports. */
export function votersOf(ports: readonly NodePorts[]): string {
  return ports.map(({ controller }, index) => `${index + 1}@127.0.0.1:${controller}`).join(',')
}

/** Ports for so many nodes; see `freePorts`. */
export async function portsOfNodes(nodeCount: number): Promise<NodePorts[]> {
  const ports = await freePorts(2 * nodeCount)
  return Array.from({ length: nodeCount }, (_, index) => ({
    client: ports[2 * index]!,
    controller: ports[2 * index + 1]!,
  }))
}

/** What a broker says of one partition. */
export interface PartitionView {
  /** -1: none. */
  readonly leader: number
  readonly isr: readonly number[]
}

export interface ClusterOptions {
  /** 3 when left out. */
  readonly nodeCount?: number
  /** So many nodes, the first ones, are controllers only, and the others brokers only; undefined: each is both. */
  readonly controllerCount?: number
  /** In place of `controller.quorum.voters`: where these nodes are is in `controller.quorum.bootstrap.servers`. */
  readonly bootstrapIds?: readonly number[]
  readonly config?: Readonly<Record<string, string | number>>
  /** See `BrokerProcessOptions`. */
  readonly nodeOptions?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A cluster of `rookery start` processes; their ids are 1, 2, 3, ... */
export class ClusterProcesses implements AsyncDisposable {
  readonly ports: readonly NodePorts[]
  readonly ids: readonly number[]
  readonly brokerIds: readonly number[]
  readonly folder: string
  readonly #controllerCount: number | undefined
  readonly #bootstrapIds: readonly number[] | undefined
  readonly #config: Readonly<Record<string, string | number>>
  readonly #nodes = new Map<number, BrokerProcess>()
  readonly #processOptions: Pick<ClusterOptions, 'nodeOptions' | 'env'>
  readonly #dispose: () => PromiseLike<void>

  /** Folders and ports; nothing runs yet. */
  static async prepare(options: ClusterOptions = {}): Promise<ClusterProcesses> {
    const folder = await temporaryFolder()
    const ports = await portsOfNodes(options.nodeCount ?? 3)
    return new ClusterProcesses(folder.path, ports, options, () => folder[Symbol.asyncDispose]())
  }

  /** All nodes, serving. */
  static async start(options: ClusterOptions = {}): Promise<ClusterProcesses> {
    const cluster = await ClusterProcesses.prepare(options)
    try {
      for (const id of cluster.ids) cluster.launch(id)
      await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
      return cluster
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(
    folder: string,
    ports: readonly NodePorts[],
    { config = {}, controllerCount, bootstrapIds, nodeOptions = [], env = {} }: ClusterOptions,
    dispose: () => PromiseLike<void>,
  ) {
    this.folder = folder
    this.ports = ports
    this.ids = ports.map((_, index) => index + 1)
    this.#controllerCount = controllerCount
    this.#bootstrapIds = bootstrapIds
    this.brokerIds = this.ids.slice(controllerCount ?? 0)
    this.#config = config
    this.#processOptions = { nodeOptions, env }
    this.#dispose = dispose
  }

  get bootstrapServers(): string {
    return this.brokerIds.map((id) => this.address(id)).join(',')
  }

  /** Where clients connect to this node, whether it runs or not. */
  address(id: number): string {
    return `127.0.0.1:${this.ports[id - 1]!.client}`
  }

  /** Starts the process of a node, with its folder as it is. */
  launch(id: number, config: Readonly<Record<string, string | number>> = {}): BrokerProcess {
    const process = new BrokerProcess({
      folder: join(this.folder, `node-${id}`),
      listeners: this.#listeners(id),
      config: { ...this.#ownConfig(id), ...this.#config, ...config },
      ...this.#processOptions,
    })
    this.#nodes.set(id, process)
    return process
  }

  /** A second process with the settings of a node, but for its folder and the ports on which it listens. The caller ends it. */
  launchBeside(id: number, { client, controller }: NodePorts): BrokerProcess {
    return new BrokerProcess({
      folder: join(this.folder, `beside-${id}`),
      listeners: `PLAINTEXT://127.0.0.1:${client},CONTROLLER://127.0.0.1:${controller}`,
      config: { ...this.#ownConfig(id), ...this.#config },
    })
  }

  node(id: number): BrokerProcess {
    const process = this.#nodes.get(id)
    if (process === undefined) throw new Error(`Node ${id} was not started`)
    return process
  }

  connect(id: number, timeoutMs?: number): Promise<KafkaClient> {
    return connect(this.address(id), timeoutMs)
  }

  /** Runs `use` with a connection to the node, and closes it. */
  async with<T>(id: number, use: (client: KafkaClient) => Promise<T>): Promise<T> {
    const client = await this.connect(id)
    try {
      return await use(client)
    } finally {
      client.close()
    }
  }

  /** Partitions of a topic as node `id` sees them. */
  async partitions(id: number, topic: string): Promise<PartitionView[]> {
    const client = await this.connect(id)
    try {
      const { topics } = await client.request(apis.Metadata, 12, { topics: [{ name: topic }] })
      const [found] = topics
      if (found === undefined || found.errorCode !== ErrorCode.NONE) {
        throw new Error(`No metadata of ${topic}: error ${found?.errorCode}`)
      }
      return [...found.partitions]
        .sort((a, b) => a.partitionIndex - b.partitionIndex)
        .map(({ leaderId, isrNodes }) => ({ leader: leaderId, isr: [...isrNodes].sort((a, b) => a - b) }))
    } finally {
      client.close()
    }
  }

  /** The controller as node `id` sees it; -1 when there is none. */
  async controller(id: number): Promise<number> {
    return (await this.leadership(id)).leaderId
  }

  /** Who leads the quorum, and in which term, as it told node `id` now; -1 where nobody does. */
  async leadership(id: number): Promise<{ readonly leaderId: number; readonly term: number }> {
    return await this.with(id, async (client) => {
      const { errorCode, topics } = await client.request(apis.DescribeQuorum, 0, {
        topics: [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }],
      })
      const { leaderId, leaderEpoch } = topics[0]?.partitions[0] ?? { leaderId: -1, leaderEpoch: -1 }
      return errorCode === ErrorCode.NONE ? { leaderId, term: leaderEpoch } : { leaderId: -1, term: -1 }
    })
  }

  /** Waits until every partition of the topics has all brokers, or those given, in sync and a leader, on each of them. */
  async untilInSync(topics: readonly string[], ids = this.brokerIds): Promise<void> {
    const seen = new Map<string, readonly PartitionView[]>()
    const isInSync = async (id: number, topic: string): Promise<boolean> => {
      const partitions = await this.partitions(id, topic).catch(() => [])
      seen.set(`${topic} on node ${id}`, partitions)
      return partitions.length > 0 && partitions.every(({ leader, isr }) => leader > 0 && isr.length === ids.length)
    }
    const areAll = async () => {
      for (const id of ids) for (const topic of topics) if (!(await isInSync(id, topic))) return false
      return true
    }
    await until(areAll, 'all replicas in sync').catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${JSON.stringify([...seen])}`)
    })
  }

  #rolesOf(id: number): readonly string[] {
    if (this.#controllerCount === undefined) return ['broker', 'controller']
    return id <= this.#controllerCount ? ['controller'] : ['broker']
  }

  #listeners(id: number): string {
    const { client, controller } = this.ports[id - 1]!
    const roles = this.#rolesOf(id)
    return [
      ...(roles.includes('broker') ? [`PLAINTEXT://127.0.0.1:${client}`] : []),
      ...(roles.includes('controller') ? [`CONTROLLER://127.0.0.1:${controller}`] : []),
    ].join(',')
  }

  /** What Kafka's own files of several nodes say. */
  #ownConfig(id: number): Record<string, string | number> {
    const places = this.#bootstrapIds?.map((each) => `127.0.0.1:${this.ports[each - 1]!.controller}`).join(',')
    return {
      'process.roles': this.#rolesOf(id).join(','),
      'node.id': id,
      ...(places === undefined
        ? { 'controller.quorum.voters': votersOf(this.ports.slice(0, this.#controllerCount)) }
        : { 'controller.quorum.bootstrap.servers': places }),
      'controller.listener.names': 'CONTROLLER',
    }
  }

  /** Nothing of it runs on when this resolves, and its folders are gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#nodes.values()].map((node) => node.kill()))
    await this.#dispose()
  }
}
