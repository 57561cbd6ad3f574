import type { Platform } from '../../platform/index.ts'
import { apis, type MetadataResponse } from '../../protocol/index.ts'
import { UsageError } from '../exit.ts'
import { BrokerConnection } from './connection.ts'
import {
  ClusterUnreachableError,
  connectionFaultText,
  expectNoError,
  RequestRefusedError,
  UnknownTopicError,
} from './errors.ts'
import { isConnectionFault, Patience } from './patience.ts'

export interface ClusterOptions {
  readonly platform: Pick<Platform, 'network' | 'timers' | 'clock' | 'random'>
  /** `host:port,host:port` */
  readonly bootstrapServers: string
  /** For each request, and for all tries of one call together. */
  readonly timeoutMs: number
  /** What fails for the moment is tried again and again; each reason is told once until that is over. */
  readonly onWaiting?: (reason: string) => void
}

export interface TopicMetadata {
  readonly name: string
  readonly isInternal: boolean
  /** In the order of their numbers. */
  readonly partitions: readonly PartitionMetadata[]
}

export interface PartitionMetadata {
  readonly partition: number
  /** -1: none at the moment. */
  readonly leaderId: number
  readonly replicas: readonly number[]
  readonly isr: readonly number[]
  /** Replicas that are on no broker that is up. */
  readonly offlineReplicas: readonly number[]
}

/**
 * A cluster as a client sees it: who leads what, and a connection to each broker that is needed. What a broker refuses only for
 * the moment is tried again until `timeoutMs` are over, with fresh metadata.
 */
export class Cluster {
  readonly platform: ClusterOptions['platform']
  readonly timeoutMs: number
  readonly #addresses: readonly Address[]
  readonly #connections = new Map<string, Promise<BrokerConnection>>()
  /** By node id, as the last metadata told. */
  readonly #brokers = new Map<number, Address>()
  readonly #topics = new Map<string, TopicMetadata>()
  readonly #onWaiting: ((reason: string) => void) | undefined
  readonly #told = new Set<string>()
  #waits = true
  #isClosed = false

  /** Throws `ClusterUnreachableError` when no broker answers. */
  static async connect(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(options)
    await cluster.any()
    return cluster
  }

  private constructor(options: ClusterOptions) {
    this.platform = options.platform
    this.timeoutMs = options.timeoutMs
    this.#addresses = parseBootstrapServers(options.bootstrapServers)
    this.#onWaiting = options.onWaiting
  }

  /** A connection to any broker. */
  async any(): Promise<BrokerConnection> {
    const faults: string[] = []
    for (const address of [...this.#addresses, ...this.#brokers.values()]) {
      try {
        return await this.#connection(address)
      } catch (error) {
        if (!isConnectionFault(error)) throw error
        faults.push(connectionFaultText(error))
      }
    }
    throw new ClusterUnreachableError([...new Set(faults)].join('; '), { retriable: true })
  }

  /** The one that takes changes of topics; any broker of a cluster that hides its controller, and passes them on. */
  async controller(): Promise<BrokerConnection> {
    const { controllerId } = await this.refresh([])
    if (!this.#brokers.has(controllerId)) return await this.any()
    try {
      return await this.broker(controllerId)
    } catch (error) {
      // It went a moment ago, and the others don't know yet.
      if (!isConnectionFault(error)) throw error
      return await this.any()
    }
  }

  /** Every broker's address, by node id, as the last metadata told. */
  get addresses(): ReadonlyMap<number, Address> {
    return this.#brokers
  }

  /** Every broker that the cluster knows. */
  async brokers(): Promise<readonly BrokerConnection[]> {
    await this.refresh([])
    return await Promise.all([...this.#brokers.values()].map((address) => this.#connection(address)))
  }

  /** Of all topics, sorted by name, those of Kafka's own included. */
  async allTopics(): Promise<readonly TopicMetadata[]> {
    await this.refresh(null)
    return [...this.#topics.values()].sort((left, right) => (left.name < right.name ? -1 : 1))
  }

  /** Throws `RequestRefusedError` when there is no such topic. `create`: the broker may create it then. */
  async topic(name: string, options: { readonly create?: boolean } = {}): Promise<TopicMetadata> {
    return this.#topics.get(name) ?? (await this.retrying(() => this.#fetchTopic(name, options.create ?? false)))
  }

  /** The error for a topic that isn't there, with the one that is most like it. */
  async unknownTopic(name: string): Promise<UnknownTopicError> {
    const { nearestOf } = await import('../../config/index.ts')
    const nearest = nearestOf(
      name,
      (await this.allTopics()).map((topic) => topic.name),
    )
    return new UnknownTopicError(name, nearest)
  }

  /** The connection to the leader of a partition. */
  async leaderOf(topic: string, partition: number): Promise<BrokerConnection> {
    return await this.#connection(this.#addressOf(await this.leaderIdOf(topic, partition)))
  }

  async leaderIdOf(topic: string, partition: number): Promise<number> {
    const { partitions } = await this.topic(topic)
    const found = partitions.find((each) => each.partition === partition)
    if (found === undefined) throw new RequestRefusedError(`Partition ${topic}-${partition}`, unknownTopicOrPartition)
    if (found.leaderId < 0) throw new RequestRefusedError(`Partition ${topic}-${partition}`, leaderNotAvailable)
    return found.leaderId
  }

  async broker(nodeId: number): Promise<BrokerConnection> {
    return await this.#connection(this.#addressOf(nodeId))
  }

  /** The broker that coordinates a group. */
  async coordinatorOf(groupId: string): Promise<BrokerConnection> {
    return await this.retrying(async () => {
      const connection = await this.any()
      const answer = await connection.call(apis.FindCoordinator, { key: groupId })
      expectNoError(`Coordinator of group ${groupId}`, answer.errorCode, answer.errorMessage)
      return await this.#connection({ host: answer.host, port: answer.port })
    })
  }

  /** Asks for metadata again: of these topics, or of all for null. */
  async refresh(names: readonly string[] | null): Promise<MetadataResponse> {
    const connection = await this.any()
    const topics = names === null ? null : names.map((name) => ({ name }))
    const metadata = await connection.call(apis.Metadata, { topics, allowAutoTopicCreation: false })
    if (names === null) this.#topics.clear() // of those that were deleted nothing is told
    this.#learn(metadata)
    return metadata
  }

  /** Runs `attempt` until it no longer fails for a passing reason, or the time is up: then with its last failure. */
  async retrying<T>(attempt: () => Promise<T>): Promise<T> {
    const patience = this.patience()
    for (;;) {
      try {
        const result = await attempt()
        patience.reset()
        return result
      } catch (error) {
        await patience.wait(error)
        this.forgetTopics()
      }
    }
  }

  /** For one thing that is tried again. `topicsWereThere`: one that isn't there any more may be made anew. */
  patience({ topicsWereThere = false } = {}): Patience {
    return new Patience({
      clock: this.platform.clock,
      timeoutMs: this.timeoutMs,
      told: this.#told,
      onWaiting: this.#onWaiting,
      waits: () => this.#waits,
      topicsWereThere,
    })
  }

  /** Who leads what is asked again. */
  forgetTopics(): void {
    this.#topics.clear()
  }

  /** From now on brokers that can't be reached are a failure at once: whoever called wants to end. */
  stopWaiting(): void {
    this.#waits = false
  }

  /** Nothing is tried again, and no connection made, by what may still be under way: it would keep the command from ending. */
  close(): void {
    this.#isClosed = true
    this.stopWaiting()
    for (const connection of this.#connections.values()) {
      connection.then(
        (open) => open.close(),
        () => undefined, // it never opened
      )
    }
    this.#connections.clear()
  }

  async #fetchTopic(name: string, create: boolean): Promise<TopicMetadata> {
    const connection = await this.any()
    const request = { topics: [{ name }], allowAutoTopicCreation: create }
    const metadata = await connection.call(apis.Metadata, request)
    this.#learn(metadata)
    const answer = metadata.topics.find((each) => each.name === name)
    // A topic that isn't there is told so at once; only one that was just created may take a moment to show.
    const missing = answer?.errorCode === unknownTopicOrPartition && !create
    if (missing) throw await this.unknownTopic(name)
    expectNoError(`Topic ${name}`, answer?.errorCode ?? unknownTopicOrPartition)
    return this.#topics.get(name)!
  }

  #learn(metadata: MetadataResponse): void {
    this.#brokers.clear()
    for (const { nodeId, host, port } of metadata.brokers) this.#brokers.set(nodeId, { host, port })
    for (const { name, errorCode, isInternal, partitions } of metadata.topics) {
      if (name === null || errorCode !== 0) continue
      const known = partitions.map((each) => ({
        partition: each.partitionIndex,
        leaderId: each.leaderId,
        replicas: each.replicaNodes,
        isr: each.isrNodes,
        offlineReplicas: each.offlineReplicas,
      }))
      known.sort((left, right) => left.partition - right.partition)
      this.#topics.set(name, { name, isInternal, partitions: known })
    }
  }

  #addressOf(nodeId: number): Address {
    const address = this.#brokers.get(nodeId)
    if (address === undefined) throw new RequestRefusedError(`Broker ${nodeId}`, leaderNotAvailable)
    return address
  }

  /** The one connection to a broker, however many ask for it at a time: one that nobody knows of is never closed. */
  async #connection(address: Address): Promise<BrokerConnection> {
    const key = `${address.host}:${address.port}`
    for (;;) {
      const known = this.#connections.get(key)
      if (known === undefined) break
      const connection = await known.catch(() => undefined)
      if (connection?.isOpen === true) return connection
      if (this.#connections.get(key) === known) this.#connections.delete(key)
    }
    if (this.#isClosed) throw new ClusterUnreachableError('The command has ended', { retriable: false })
    const connecting = BrokerConnection.connect({ ...address, platform: this.platform, timeoutMs: this.timeoutMs })
    this.#connections.set(key, connecting)
    return await connecting
  }
}

export interface Address {
  readonly host: string
  readonly port: number
}

const unknownTopicOrPartition = 3
const leaderNotAvailable = 5

/** Throws `UsageError` for a text that names no address. */
export function parseBootstrapServers(text: string): readonly Address[] {
  return text.split(',').map((part) => {
    const match = /^\s*(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:[\]/]+))(?::(\d{1,5}))?\s*$/.exec(part)
    const host = match?.[1] ?? match?.[2]
    const port = Number(match?.[3] ?? 9092)
    if (host === undefined || port < 1 || port > 65_535) {
      throw new UsageError(`--bootstrap-server ${part}: allowed is host:port, such as localhost:9092`)
    }
    return { host, port }
  })
}
