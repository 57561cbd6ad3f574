import { ConfigError, type ParsedConfig, parseConfig, type SettingValue } from '../../config/index.ts'
import type { CreateTopicRequest } from '../../coordination/index.ts'
import { createMemoryFiles, createRealPlatform, type Platform } from '../../platform/index.ts'
import { loadGrpcNetwork, loadNodeMessages } from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { RunningNode } from '../running-node.ts'
import { createDeclaredTopics } from '../topic-declarations.ts'
import { Links } from './links.ts'
import { LocalNode, nodeName, type Surroundings } from './local-node.ts'

export interface LocalClusterOptions {
  /** Their ids are 1, 2, ... */
  readonly brokerCount: number
  /** Nodes that are controllers only, with the ids after those; 0: each broker is a controller too. */
  readonly controllerCount: number
  readonly config: Readonly<Record<string, SettingValue>>
  readonly topics: readonly CreateTopicRequest[]
  readonly storage: 'memory' | 'temporary'
  readonly logger: (nodeId: number, platform: Platform) => Logger
}

/** Any port: names stand for CONTROLLER listeners, and each gets a free one. */
const placeholderPort = 9093
const defaultReplicationFactor = 3

/** The settings of node `id`. Throws `ConfigError`. */
export function clusterNodeConfig(
  options: Pick<LocalClusterOptions, 'brokerCount' | 'controllerCount' | 'config'>,
  id: number,
  logDir: string,
  port: number,
): ParsedConfig {
  const { brokerCount, config } = options
  const voters = nodeIds(options).filter((each) => rolesOf(options, each).includes('controller'))
  const roles = rolesOf(options, id)
  const listeners = [
    ...(roles.includes('broker') ? [`PLAINTEXT://localhost:${port}`] : []),
    ...(roles.includes('controller') ? [`CONTROLLER://${nodeName(id)}:${placeholderPort}`] : []),
  ]
  const parsed = parseConfig({
    overrides: config,
    defaults: {
      'process.roles': roles.join(','),
      'node.id': id,
      'controller.quorum.voters': voters.map((each) => `${each}@${nodeName(each)}:${placeholderPort}`).join(','),
      listeners: listeners.join(','),
      'controller.listener.names': 'CONTROLLER',
      'log.dirs': logDir,
      'default.replication.factor': Math.min(brokerCount, defaultReplicationFactor),
      'group.initial.rebalance.delay.ms': 0,
    },
  })
  if (parsed.controllerTls === undefined) return parsed
  const key = 'listener.security.protocol.map'
  const value = parsed.entries.get(key)?.text
  const message = `${key}=${value}: nodes in one process talk without TLS; allowed is PLAINTEXT for CONTROLLER`
  throw new ConfigError([{ key, message }])
}

type NodeRole = 'broker' | 'controller'
type NodeCounts = Pick<LocalClusterOptions, 'brokerCount' | 'controllerCount'>

function nodeIds({ brokerCount, controllerCount }: NodeCounts): number[] {
  return Array.from({ length: brokerCount + controllerCount }, (_, index) => index + 1)
}

function rolesOf({ brokerCount, controllerCount }: NodeCounts, id: number): readonly NodeRole[] {
  if (controllerCount === 0) return ['broker', 'controller']
  return id <= brokerCount ? ['broker'] : ['controller']
}

/** Several nodes in this process, which talk to each other as if they were each in its own. */
export class LocalCluster {
  readonly nodes: readonly LocalNode[]
  readonly #links: Links
  readonly #removeFolder: () => Promise<void>

  /** Resolves when all nodes serve and the topics are there; leaves nothing behind when it fails. */
  static async start(options: LocalClusterOptions): Promise<LocalCluster> {
    const { storage, topics, logger } = options
    const real = createRealPlatform()
    const inMemory = storage === 'memory'
    const [grpc, messages] = await Promise.all([loadGrpcNetwork(), loadNodeMessages()])
    const links = new Links()
    const surroundings: Surroundings = { links, grpc, messages, controllerPorts: new Map(), idsByPort: new Map() }
    const folder = inMemory ? '/memory' : await real.files.makeTemporaryDirectory('rookery-')
    const nodes = nodeIds(options).map((id) => {
      const platform = inMemory ? { ...real, files: createMemoryFiles() } : real
      const config = (port: number) => clusterNodeConfig(options, id, `${folder}/${nodeName(id)}`, port)
      const roles = rolesOf(options, id)
      return new LocalNode({ id, roles, platform, inMemory, config, logger: logger(id, platform), surroundings })
    })
    const removeFolder = async () => {
      if (!inMemory) await real.files.removeTree(folder)
    }
    const cluster = new LocalCluster(nodes, links, removeFolder)
    try {
      await Promise.all(nodes.map((node) => node.start()))
      await createDeclaredTopics(cluster.newestNode().admin, topics, logger(1, real))
      return cluster
    } catch (error) {
      await cluster.end()
      throw error
    }
  }

  private constructor(nodes: readonly LocalNode[], links: Links, removeFolder: () => Promise<void>) {
    this.nodes = nodes
    this.#links = links
    this.#removeFolder = removeFolder
  }

  runs(id: number): boolean {
    return this.nodes.some((node) => node.id === id && node.running !== undefined)
  }

  /** Of the brokers that serve, that with the newest metadata: another may be cut off, and know nothing of what happened since. */
  newestNode(): RunningNode {
    const indexOf = ({ observation }: RunningNode) => observation.metadataIndex
    const [first, ...others] = this.#servingBrokers()
    if (first === undefined) throw new Error('No broker of the cluster runs')
    return others.reduce((newest, node) => (indexOf(node) > indexOf(newest) ? node : newest), first)
  }

  /** Resolves when all replicas are in sync, and each broker that serves knows it. Throws `ObservationError`. */
  async waitForInSync(options: { readonly timeoutMs?: number }): Promise<void> {
    const since = this.newestNode().observation.metadataIndex
    const brokers = this.#servingBrokers()
    await Promise.all(brokers.map(({ observation }) => observation.waitForInSync({ ...options, since })))
  }

  #servingBrokers(): RunningNode[] {
    const brokers = this.nodes.filter(({ roles }) => roles.includes('broker'))
    return brokers.map(({ running }) => running).filter((running) => running !== undefined)
  }

  cutLink(a: number, b: number): void {
    this.#links.between(a, b).hold()
  }

  healLink(a: number, b: number): void {
    this.#links.between(a, b).letGo()
  }

  healLinks(): void {
    this.#links.healAll()
  }

  /** All nodes at once, without handing over: nobody is left to take anything, and their data goes too. */
  async end(): Promise<void> {
    this.#links.healAll()
    await Promise.all(this.nodes.map((node) => node.kill()))
    await this.#removeFolder()
  }
}
