import { join } from 'node:path'
import { KafkaClient } from '../src/network/index.ts'
import { createRealPlatform } from '../src/platform/index.ts'
import {
  type Api,
  type ApiMessage,
  apis,
  ErrorCode,
  type MessageInput,
  type MessageType,
} from '../src/protocol/index.ts'
import { freePorts } from '../test/support/free-ports.ts'
import type { BrokerMessage, BrokerSettings, Usage } from './broker.ts'
import { cpuSeconds, statusBytes } from './machine.ts'
import { forkBroker, type StartBroker } from './processes.ts'

/** Three nodes, each broker and voter, that a benchmark stops and starts: Rookery's, or a peer's beside it. */
export interface ClusterUnderTest {
  readonly name: string
  /** Where clients connect to the nodes 1, 2, 3, by id - 1. */
  readonly ports: readonly number[]
  /** The process of a node that doesn't run, with the folder as it is; resolves when it answers. */
  start(id: number): Promise<void>
  signal(id: number, signal: NodeJS.Signals): void
  /** Resolves when its process has ended. */
  ended(id: number): Promise<void>
  /** Processes that run, as /proc knows them. */
  pid(id: number): number
  /** Ends all that runs, at once. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts three nodes with empty folders; resolves when they serve. */
export type StartCluster = (directory: string) => Promise<ClusterUnderTest>

export const nodeIds: readonly number[] = [1, 2, 3]

/** Monotonic, and the same in all processes of the machine. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Waits until `isTrue`, which may fail meanwhile. */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 60_000,
  everyMs = 20,
): Promise<void> {
  const deadlineMs = clockMs() + timeoutMs
  let fault: unknown
  for (;;) {
    try {
      if (await isTrue()) return
    } catch (error) {
      fault = error
    }
    if (clockMs() > deadlineMs) throw new Error(`Waited ${timeoutMs / 1000} s for ${what}`, { cause: fault })
    await sleep(everyMs)
  }
}

/** What `promise` gives; rejects when that takes longer. What is under way goes on. */
export async function within<T>(promise: Promise<T>, timeoutMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${timeoutMs / 1000} s for ${what}`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, tooLate])
  } finally {
    clearTimeout(timer)
  }
}

export interface RookeryClusterOptions {
  readonly overrides?: Readonly<Record<string, string | number>>
  /** Where each node leaves a CPU profile when it ends in order. */
  readonly profileDirectory?: string | undefined
  /** See `BrokerSettings`. */
  readonly inline?: boolean
  /** More for each node. */
  readonly settings?: (id: number, directory: string) => Partial<BrokerSettings>
}

/** `id` is the node that tells. */
type MomentListener = (moment: Extract<BrokerMessage, { readonly type: 'moment' }>, id: number) => void

/** What of a Rookery cluster is seen from inside. */
export interface RookeryCluster extends ClusterUnderTest {
  /** Until the function that is returned is called. */
  onMoment(listener: MomentListener): () => void
  begin(): Promise<void>
  /** By id - 1. */
  end(): Promise<Usage[]>
}

export function startRookeryCluster(
  options: RookeryClusterOptions = {},
): (directory: string) => Promise<RookeryCluster> {
  return async (directory) => {
    const cluster = new RookeryProcesses(directory, options, await freePorts(2 * nodeIds.length))
    try {
      await Promise.all(nodeIds.map((id) => cluster.start(id)))
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
    return cluster
  }
}

/** For all nodes to stop and to write their profiles. */
const profileTimeoutMs = 20_000

class RookeryProcesses implements RookeryCluster {
  readonly name = 'Rookery'
  readonly ports: readonly number[]
  readonly #directory: string
  readonly #options: RookeryClusterOptions
  readonly #controllerPorts: readonly number[]
  readonly #nodes = new Map<number, ReturnType<typeof forkBroker>>()
  readonly #listeners = new Set<MomentListener>()

  constructor(directory: string, options: RookeryClusterOptions, ports: readonly number[]) {
    this.#directory = directory
    this.#options = options
    this.ports = ports.slice(0, nodeIds.length)
    this.#controllerPorts = ports.slice(nodeIds.length)
  }

  async start(id: number): Promise<void> {
    const directory = join(this.#directory, `node-${id}`)
    const { overrides, settings, profileDirectory, inline = false } = this.#options
    const listeners = `PLAINTEXT://127.0.0.1:${this.ports[id - 1]},CONTROLLER://127.0.0.1:${this.#controllerPorts[id - 1]}`
    const node = forkBroker(
      {
        overrides: {
          'process.roles': 'broker,controller',
          'node.id': id,
          'controller.quorum.voters': this.#controllerPorts.map((port, i) => `${i + 1}@127.0.0.1:${port}`).join(','),
          'controller.listener.names': 'CONTROLLER',
          listeners,
          'log.dirs': directory,
          ...overrides,
        },
        inline,
        logFile: join(this.#directory, `node-${id}.log`),
        ...settings?.(id, this.#directory),
      },
      profileDirectory === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profileDirectory],
    )
    this.#nodes.set(id, node)
    node.child.on('message', (message: BrokerMessage) => {
      if (message.type === 'moment') for (const listener of this.#listeners) listener(message, id)
    })
    await node.serving
  }

  signal(id: number, signal: NodeJS.Signals): void {
    this.#node(id).child.kill(signal)
  }

  ended(id: number): Promise<void> {
    return this.#node(id).ended
  }

  pid(id: number): number {
    return this.#node(id).child.pid ?? 0
  }

  onMoment(listener: MomentListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async begin(): Promise<void> {
    await Promise.all(nodeIds.map((id) => this.#node(id).begin()))
  }

  async end(): Promise<Usage[]> {
    return await Promise.all(nodeIds.map((id) => this.#node(id).end()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = Promise.all([...this.#nodes.values()].map((node) => node.ended))
    if (this.#options.profileDirectory !== undefined) {
      for (const { child } of this.#nodes.values()) child.kill('SIGTERM') // a profile is written by a process that ends itself
      await Promise.race([ended, sleep(profileTimeoutMs)])
    }
    for (const { child } of this.#nodes.values()) child.kill('SIGKILL')
    await ended
  }

  #node(id: number): ReturnType<typeof forkBroker> {
    const node = this.#nodes.get(id)
    if (node === undefined) throw new Error(`Node ${id} was not started`)
    return node
  }
}

/** A cluster that load is put on: its usage is that of all three nodes, and the latest event loop's. */
export function asBroker(start: StartCluster): StartBroker {
  return async (directory) => {
    const cluster = await start(directory)
    const cpu = async () => sum(await Promise.all(nodeIds.map((id) => cpuSeconds(cluster.pid(id)))))
    let cpuBefore = 0
    return {
      name: cluster.name,
      port: cluster.ports[0]!,
      async begin() {
        if (isRookery(cluster)) await cluster.begin()
        cpuBefore = await cpu()
      },
      async end() {
        const cpuUsed = (await cpu()) - cpuBefore
        const usages = isRookery(cluster) ? await cluster.end() : []
        const latest = (delays: readonly (number | undefined)[]) =>
          delays.length === 0 ? undefined : Math.max(...delays.map((delay) => delay ?? 0))
        const bytes = async (name: string) =>
          sum(await Promise.all(nodeIds.map((id) => statusBytes(cluster.pid(id), name))))
        return {
          cpuSeconds: cpuUsed,
          loopDelayP99Ms: latest(usages.map((usage) => usage.loopDelayP99Ms)),
          loopDelayMaxMs: latest(usages.map((usage) => usage.loopDelayMaxMs)),
          rssBytes: await bytes('VmRSS'),
          peakRssBytes: await bytes('VmHWM'),
        }
      },
      stop: () => Promise.resolve(cluster[Symbol.asyncDispose]()),
    }
  }
}

export function isRookery(cluster: ClusterUnderTest): cluster is RookeryCluster {
  return 'onMoment' in cluster
}

function codesOf({
  partitionResult,
}: {
  readonly partitionResult: readonly { readonly errorCode: number }[]
}): number[] {
  return partitionResult.map(({ errorCode }) => errorCode)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

const platform = createRealPlatform()
const requestTimeoutMs = 30_000
/** For 10,000 partitions of a peer whose node has to look through all its logs first. */
const inSyncTimeoutMs = 300_000

/** What one node says of a partition. */
export interface PartitionSeen {
  /** -1: none. */
  readonly leader: number
  readonly leaderEpoch: number
  readonly isr: readonly number[]
}

/**
 * Requests to single nodes, with versions that any broker of the last years serves. A connection is kept for each node until
 * something goes wrong with it.
 */
export class ClusterClient {
  readonly #ports: readonly number[]
  readonly #timeoutMs: number
  readonly #connections = new Map<number, Promise<KafkaClient>>()

  constructor(ports: readonly number[], timeoutMs = requestTimeoutMs) {
    this.#ports = ports
    this.#timeoutMs = timeoutMs
  }

  /** Rejects after `timeoutMs`, and what else is under way to that node with it. */
  async request<Request extends ApiMessage, Response extends ApiMessage>(
    id: number,
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
  ): Promise<MessageType<Response>> {
    const connecting = this.#connections.get(id) ?? this.#connect(id)
    try {
      return await (await connecting).request(api, version, body)
    } catch (error) {
      this.drop(id, connecting)
      throw error
    }
  }

  drop(id: number, connecting = this.#connections.get(id)): void {
    if (this.#connections.get(id) === connecting) this.#connections.delete(id)
    connecting?.then(
      (connection) => connection.close(),
      () => undefined,
    )
  }

  close(): void {
    for (const id of [...this.#connections.keys()]) this.drop(id)
  }

  /** -1: the node knows of none, or can't say. */
  async controller(id: number): Promise<number> {
    const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }]
    const answer = await this.request(id, apis.DescribeQuorum, 0, { topics })
    const partition = answer.topics[0]?.partitions[0]
    return answer.errorCode === ErrorCode.NONE && partition?.errorCode === ErrorCode.NONE ? partition.leaderId : -1
  }

  /** Asks all nodes until one of them knows. */
  async whichController(): Promise<number> {
    let found = -1
    await until(async () => {
      const answers = await Promise.all(nodeIds.map((id) => this.controller(id).catch(() => -1)))
      found = Math.max(...answers)
      return found > 0
    }, 'a controller')
    return found
  }

  /** Empty while the node doesn't know the topic. In the order of the partitions. */
  async partitions(id: number, topic: string): Promise<PartitionSeen[]> {
    const body = { topics: [{ name: topic }], allowAutoTopicCreation: false }
    const { topics } = await this.request(id, apis.Metadata, 8, body)
    const [found] = topics
    if (found === undefined || found.errorCode !== ErrorCode.NONE) return []
    return [...found.partitions]
      .sort((a, b) => a.partitionIndex - b.partitionIndex)
      .map(({ leaderId, leaderEpoch, isrNodes }) => ({ leader: leaderId, leaderEpoch, isr: isrNodes }))
  }

  /** `replicas`: of each partition, the preferred leader first. */
  async createTopic(
    name: string,
    replicas: readonly (readonly number[])[],
    configs: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const topic = {
      name,
      numPartitions: -1,
      replicationFactor: -1,
      assignments: replicas.map((brokerIds, partitionIndex) => ({ partitionIndex, brokerIds })),
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
    }
    const controller = await this.whichController()
    const body = { topics: [topic], timeoutMs: requestTimeoutMs }
    const { topics } = await this.request(controller, apis.CreateTopics, 5, body)
    const [created] = topics
    if (created?.errorCode !== ErrorCode.NONE) {
      throw new Error(`Topic ${name} was not created: error ${created?.errorCode} ${created?.errorMessage ?? ''}`)
    }
  }

  /** Waits until all nodes know every partition with a leader, `leader` where that is given, and three replicas in sync. */
  async untilInSync(topic: string, count: number, leader?: number): Promise<void> {
    const isRight = (seen: PartitionSeen) =>
      (leader === undefined ? seen.leader > 0 : seen.leader === leader) && seen.isr.length === nodeIds.length
    await until(
      async () => {
        for (const id of nodeIds) {
          const seen = await this.partitions(id, topic)
          if (seen.length !== count || !seen.every(isRight)) return false
        }
        return true
      },
      `${topic} in sync`,
      inSyncTimeoutMs,
      count > 100 ? 250 : 20,
    )
  }

  /** Each partition's first replica leads it again, if it is in sync; resolves before all nodes know it. */
  async electPreferred(topic: string, count: number): Promise<void> {
    const partitions = Array.from({ length: count }, (_, partition) => partition)
    const body = { electionType: 0, topicPartitions: [{ topic, partitions }], timeoutMs: requestTimeoutMs }
    const answer = await this.request(await this.whichController(), apis.ElectLeaders, 2, body)
    const codes = [answer.errorCode, ...answer.replicaElectionResults.flatMap(codesOf)]
    const wrong = codes.find((code) => code !== ErrorCode.NONE && code !== ErrorCode.ELECTION_NOT_NEEDED)
    if (wrong !== undefined) throw new Error(`Leaders of ${topic} were not elected: error ${wrong}`)
  }

  #connect(id: number): Promise<KafkaClient> {
    const connecting = KafkaClient.connect({
      platform,
      host: '127.0.0.1',
      port: this.#ports[id - 1]!,
      clientId: 'bench',
      timeoutMs: this.#timeoutMs,
    })
    connecting.catch(() => undefined)
    this.#connections.set(id, connecting)
    return connecting
  }
}
