import { open, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Uuid } from '../../src/base/index.ts'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { type NodePorts, portsOfNodes } from '../support/cluster-processes.ts'
import { connect } from '../support/kafka-connection.ts'
import { addressOfNode, Links } from '../support/links.ts'
import type { DiskFault } from '../support/node-faults.ts'
import { type RunningProgram, startProgram } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Size of the file system of a node that has one of its own. */
const diskMiB = 512

export const nodeIds = [1, 2, 3] as const

/** A process of a node that ended, and whether it was to. */
export interface Ending {
  readonly id: number
  readonly exitCode: number | null
  readonly isExpected: boolean
  readonly output: string
}

/** What a node knows of a partition. */
export interface PartitionFacts {
  readonly partition: string
  /** -1: none. */
  readonly leaderId: number
  readonly leaderEpoch: number
  readonly isr: readonly number[]
}

/** Ports of a node: each listener's own, and the proxy's before those that other nodes use. */
interface NodeAddresses {
  readonly client: number
  readonly broker: number
  readonly controller: number
  readonly brokerProxy: number
  readonly controllerProxy: number
}

/**
 * Three nodes in processes of their own, each broker and voter, with everything between them that can be broken: the links (both
 * listeners that nodes use among them are behind `Links`; clients have a third, which nothing is before), the disks
 * (through `node-faults.ts`, and file systems of their own where this machine lets us mount any) and the processes.
 */
export class FaultyCluster implements AsyncDisposable {
  readonly links: Links
  readonly folder: string
  /** Processes that ended, in order. */
  readonly endings: Ending[] = []
  /** Undefined: the nodes' folders are on the machine's own disk. */
  readonly #disks: Disks | undefined
  readonly #addresses: readonly NodeAddresses[]
  readonly #nodes = new Map<number, BrokerProcess>()
  /** Nodes that may end by themselves, as their disk fails. */
  readonly #mayEnd = new Set<number>()
  readonly #logs = new Map<number, string>()
  readonly #dispose: () => PromiseLike<void>

  /** All nodes, serving. `hasOwnDisks`: where it can be had. */
  static async start({ hasOwnDisks = false }: { readonly hasOwnDisks?: boolean } = {}): Promise<FaultyCluster> {
    const folder = await temporaryFolder()
    const links = new Links()
    const disks = hasOwnDisks ? await Disks.mount(folder.path) : undefined
    const ports = await portsOfNodes(2 * nodeIds.length)
    const addresses = await Promise.all(nodeIds.map((id) => addressesOf(id, ports, links)))
    const cluster = new FaultyCluster(folder.path, links, disks, addresses, async () => {
      await links[Symbol.asyncDispose]()
      await disks?.unmount()
      await folder[Symbol.asyncDispose]()
    })
    try {
      await Promise.all(nodeIds.map((id) => cluster.launch(id).whenServing()))
      return cluster
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(
    folder: string,
    links: Links,
    disks: Disks | undefined,
    addresses: readonly NodeAddresses[],
    dispose: () => PromiseLike<void>,
  ) {
    this.folder = folder
    this.links = links
    this.#disks = disks
    this.#addresses = addresses
    this.#dispose = dispose
  }

  /** Where clients find each node, whether it runs or not. */
  get addresses(): ReadonlyMap<number, string> {
    return new Map(nodeIds.map((id) => [id, `127.0.0.1:${this.#addresses[id - 1]!.client}`]))
  }

  get hasOwnDisks(): boolean {
    return this.#disks !== undefined
  }

  launch(id: number): BrokerProcess {
    const { client, broker, controller, brokerProxy, controllerProxy } = this.#addresses[id - 1]!
    const controllers = this.#addresses.map((each) => `127.0.0.1:${each.controllerProxy}`)
    const node = new BrokerProcess({
      folder: join(this.#dataFolder(id), 'data'),
      listeners: `CLIENT://127.0.0.1:${client},BROKER://127.0.0.1:${broker},CONTROLLER://127.0.0.1:${controller}`,
      config: {
        'advertised.listeners': `CLIENT://127.0.0.1:${client},BROKER://127.0.0.1:${brokerProxy},CONTROLLER://127.0.0.1:${controllerProxy}`,
        'listener.security.protocol.map': 'CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
        'inter.broker.listener.name': 'BROKER',
        'controller.listener.names': 'CONTROLLER',
        'process.roles': 'broker,controller',
        'node.id': id,
        // Not by id: who votes changes.
        'controller.quorum.bootstrap.servers': controllers.join(','),
        'group.initial.rebalance.delay.ms': 0,
        'leader.imbalance.check.interval.seconds': 5,
        // Segments roll and the metadata log is cut off while the run lasts.
        'log.segment.bytes': 1024 * 1024,
        'metadata.log.max.record.bytes.between.snapshots': 16 * 1024,
      },
      nodeOptions: ['--import', join(import.meta.dirname, '../support/node-faults.ts')],
      env: { FAULTS_SOURCE_ADDRESS: addressOfNode(id), FAULTS_FILE: this.#faultsFile(id) },
      within: this.#disks?.within ?? [],
    })
    this.#nodes.set(id, node)
    const { program } = node
    // Whatever ends it: who ends it on purpose takes it from the map first.
    void program.ended(2 ** 31 - 1).then(({ exitCode, output }) => {
      const isExpected = this.#nodes.get(id) !== node || this.#mayEnd.has(id)
      if (this.#nodes.get(id) === node) this.#nodes.delete(id)
      this.#logs.set(id, (this.#logs.get(id) ?? '') + program.stdout)
      this.endings.push({ id, exitCode, isExpected, output: output.slice(-20_000) })
    })
    return node
  }

  isRunning(id: number): boolean {
    return this.#nodes.has(id)
  }

  /** No effect when it doesn't run. */
  async kill(id: number): Promise<void> {
    await this.#take(id)?.kill()
  }

  /** Stops it as people do, by SIGTERM. That it doesn't stop in order is a fault, unless its disk is one. */
  async stop(id: number): Promise<void> {
    const outcome = await this.#take(id)?.stop()
    if (outcome === undefined || outcome.exitCode === 0 || this.#mayEnd.has(id)) return
    this.endings.push({ id, exitCode: outcome.exitCode, isExpected: false, output: outcome.output.slice(-20_000) })
  }

  signal(id: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#nodes.get(id)?.program.kill(signal)
  }

  /** Undefined heals. While its disk fails a node may end by itself. */
  async setDiskFault(id: number, fault: DiskFault | undefined): Promise<void> {
    if (fault?.code !== undefined) this.#mayEnd.add(id)
    await writeFile(this.#faultsFile(id), fault === undefined ? '' : JSON.stringify(fault))
  }

  /** The real thing: nothing more fits on the disk of the node, but for `freeBytes`. */
  async fillDisk(id: number, freeBytes: number): Promise<void> {
    this.#mayEnd.add(id)
    await this.#disks?.fill(this.#dataFolder(id), freeBytes)
  }

  async emptyDisk(id: number): Promise<void> {
    await this.#disks?.empty(this.#dataFolder(id))
  }

  /** From now on its end is a fault again. */
  expectToLast(id: number): void {
    this.#mayEnd.delete(id)
  }

  /** With a replica on each node, of which two have to have what is acknowledged. */
  async createTopic(name: string, partitionCount: number): Promise<void> {
    const topic = {
      name,
      numPartitions: partitionCount,
      replicationFactor: nodeIds.length,
      assignments: [],
      configs: [{ name: 'min.insync.replicas', value: '2' }],
    }
    const create = (client: KafkaClient) => client.request(apis.CreateTopics, 7, { topics: [topic], timeoutMs: 20_000 })
    const answer = await this.#ask(nodeIds[0], create, 30_000)
    const errorCode = answer.topics[0]?.errorCode
    if (errorCode !== ErrorCode.NONE) throw new Error(`Topic ${name} was not created: error ${errorCode}`)
  }

  /** What node `id` knows of the topics' partitions. Throws when it can't be asked. */
  async partitions(id: number, topics: readonly string[]): Promise<readonly PartitionFacts[]> {
    const asked = { topics: topics.map((name) => ({ name })) }
    const answer = await this.#ask(id, (client) => client.request(apis.Metadata, 12, asked))
    return answer.topics.flatMap(({ name, partitions }) =>
      partitions.map(({ partitionIndex, leaderId, leaderEpoch, isrNodes }) => ({
        partition: `${name}-${partitionIndex}`,
        leaderId,
        leaderEpoch,
        isr: [...isrNodes],
      })),
    )
  }

  /** Whether every node knows every partition of these topics with a leader and all replicas in sync. */
  async isInSync(topics: readonly string[]): Promise<boolean> {
    for (const id of nodeIds) {
      const partitions = await this.partitions(id, topics).catch(() => [])
      const isOne = ({ leaderId, isr }: PartitionFacts) => leaderId > 0 && isr.length === nodeIds.length
      if (partitions.length === 0 || !partitions.every(isOne)) return false
    }
    return true
  }

  // ---- the quorum ----

  /** The folder with which node `id` has a vote; undefined: it has none. Throws when nobody can be asked. */
  async voterDirectory(id: number): Promise<Uuid | undefined> {
    const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }]
    const answer = await this.#askAnybody((client) => client.request(apis.DescribeQuorum, 2, { topics }))
    const quorum = answer.topics[0]?.partitions[0]
    if (quorum?.errorCode !== ErrorCode.NONE) throw new Error(`The quorum is not described: error ${quorum?.errorCode}`)
    return quorum.currentVoters.find(({ replicaId }) => replicaId === id)?.replicaDirectoryId
  }

  /** The folder that node `id` has now. Throws while it has none. */
  async directory(id: number): Promise<Uuid> {
    const text = await readFile(join(this.#fromOutside(this.#dataFolder(id)), 'data', 'meta.properties'), 'utf8')
    const directoryId = /^directory\.id=(\S+)$/m.exec(text)?.[1]
    if (directoryId === undefined) throw new Error(`Node ${id} has no directory id`)
    return directoryId as Uuid
  }

  /** Throws when it is refused. */
  async removeVoter(voterId: number, voterDirectoryId: Uuid): Promise<void> {
    const request = { clusterId: null, voterId, voterDirectoryId }
    const answer = await this.#askAnybody((client) => client.request(apis.RemoveRaftVoter, 0, request))
    if (answer.errorCode !== ErrorCode.NONE) throw new Error(`No vote taken: ${answer.errorMessage}`)
  }

  /** Throws when it is refused. */
  async addVoter(voterId: number, voterDirectoryId: Uuid): Promise<void> {
    const listeners = [{ name: 'CONTROLLER', host: '127.0.0.1', port: this.#addresses[voterId - 1]!.controllerProxy }]
    const request = { clusterId: null, timeoutMs: 5000, voterId, voterDirectoryId, listeners }
    const answer = await this.#askAnybody((client) => client.request(apis.AddRaftVoter, 1, request))
    if (answer.errorCode !== ErrorCode.NONE) throw new Error(`No vote given: ${answer.errorMessage}`)
  }

  /** The node gets an empty disk. It doesn't run. */
  async wipe(id: number): Promise<void> {
    await rm(join(this.#fromOutside(this.#dataFolder(id)), 'data'), { recursive: true, force: true })
  }

  /** The first that answers. */
  async #askAnybody<T>(question: (client: KafkaClient) => Promise<T>): Promise<T> {
    let failure: unknown
    for (const id of nodeIds) {
      try {
        return await this.#ask(id, question, 8000)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  async #ask<T>(id: number, question: (client: KafkaClient) => Promise<T>, timeoutMs = 3000): Promise<T> {
    const client = await connect(this.addresses.get(id)!, timeoutMs)
    try {
      return await question(client)
    } finally {
      client.close()
    }
  }

  /** What a node has logged over all its runs, JSON lines. */
  log(id: number): string {
    return (this.#logs.get(id) ?? '') + (this.#nodes.get(id)?.program.stdout ?? '')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(nodeIds.map((id) => this.kill(id)))
    await this.#dispose()
  }

  #take(id: number): BrokerProcess | undefined {
    const node = this.#nodes.get(id)
    this.#nodes.delete(id)
    return node
  }

  /** As the node sees it. */
  #dataFolder(id: number): string {
    return this.#disks?.folder(id) ?? join(this.folder, `node-${id}`)
  }

  #fromOutside(path: string): string {
    return this.#disks?.fromOutside(path) ?? path
  }

  #faultsFile(id: number): string {
    return join(this.folder, `faults-${id}`)
  }
}

async function addressesOf(id: number, ports: readonly NodePorts[], links: Links): Promise<NodeAddresses> {
  const first = ports[2 * (id - 1)]!
  const { client: broker } = ports[2 * (id - 1) + 1]!
  const { client, controller } = first
  return {
    client,
    broker,
    controller,
    brokerProxy: await links.add(id, broker),
    controllerProxy: await links.add(id, controller),
  }
}

/**
 * A small file system for each node, in memory, in a namespace where an ordinary user may mount: the nodes run in it, and a process that
 * does nothing keeps it while they are restarted. From outside it is seen through that process's root.
 */
class Disks {
  readonly #keeper: RunningProgram
  readonly #root: string

  /** Undefined where the system lets nobody do that. */
  static async mount(root: string): Promise<Disks | undefined> {
    const folders = nodeIds.map((id) => join(root, `disk-${id}`))
    const mounts = folders.map((path) => `mkdir -p '${path}' && mount -t tmpfs -o size=${diskMiB}m none '${path}'`)
    const script = `${mounts.join(' && ')} && echo mounted && exec sleep 1000000`
    const keeper = startProgram('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', script])
    try {
      await keeper.until(({ stdout }) => stdout.includes('mounted'), 'file systems are mounted')
      return new Disks(keeper, root)
    } catch {
      keeper.kill('SIGKILL')
      return undefined
    }
  }

  private constructor(keeper: RunningProgram, root: string) {
    this.#keeper = keeper
    this.#root = root
  }

  /** Runs a command where the file systems are. */
  get within(): readonly string[] {
    return ['nsenter', '--target', `${this.#keeper.pid}`, '--user', '--preserve-credentials', '--mount']
  }

  folder(id: number): string {
    return join(this.#root, `disk-${id}`)
  }

  /** The path by which this process finds what the nodes have at `path`. */
  fromOutside(path: string): string {
    return join(`/proc/${this.#keeper.pid}/root`, path)
  }

  async fill(folder: string, freeBytes: number): Promise<void> {
    const file = await open(this.#ballast(folder), 'w')
    try {
      const block = Buffer.alloc(1 << 20)
      // A write that doesn't fit writes what does.
      for (;;) await file.write(block)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      const { size } = await file.stat()
      await file.truncate(Math.max(size - freeBytes, 0))
    } finally {
      await file.close()
    }
  }

  async empty(folder: string): Promise<void> {
    await rm(this.#ballast(folder), { force: true })
  }

  async unmount(): Promise<void> {
    this.#keeper.kill('SIGKILL')
    await this.#keeper.ended()
  }

  #ballast(folder: string): string {
    return join(this.fromOutside(folder), 'ballast')
  }
}
