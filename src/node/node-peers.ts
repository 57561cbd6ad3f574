import { join, resolve } from 'node:path'
import { addressText, type BrokerId, isUuid, type Uuid, zeroUuid } from '../base/index.ts'
import type { ParsedConfig } from '../config/index.ts'
import {
  AcceptedStreams,
  BrokerWatch,
  type BrokerWatchOptions,
  Contacts,
  type Formation,
  formQuorum,
  NodeServer,
  PeerTransport,
  type Place,
  protocolVersion,
} from '../coordination/index.ts'
import { readMetaProperties } from '../log/index.ts'
import { type Platform, replaceFile } from '../platform/index.ts'
import type { NodeId, RaftNode, Voter } from '../raft/index.ts'
import {
  type NodeDescription,
  type NodeMessages,
  RpcError,
  type RpcListener,
  type RpcNetwork,
  type RpcTarget,
} from '../rpc/index.ts'
import type { Logger } from '../telemetry/index.ts'

/** The id of a directory that is about to become a voter's; gone once its log is begun. */
const formingFile = 'forming.id'

/** What is needed to talk to other nodes: loaded only where there are some. */
export interface PeerServices {
  readonly network: RpcNetwork
  readonly messages: NodeMessages
}

/** Who this node is, before anything of it is opened. */
export interface StartingIdentity {
  readonly clusterId: string
  readonly metadataDirectoryId: Uuid
  /** Undefined: formatted before, the log says who votes. */
  readonly voters: readonly Voter[] | undefined
  /** `host:port` where others reach it; undefined where it listens for none. */
  readonly endpoint: string | undefined
}

/** What of a node's settings says who its peers are. */
type PeersConfig = Pick<
  ParsedConfig,
  'values' | 'nodeId' | 'roles' | 'metadataLogDir' | 'quorumVoters' | 'quorumBootstrapServers' | 'controllerListeners'
>

/** This node among others: its CONTROLLER listener, its streams, and what it tells of itself. */
export class NodePeers {
  readonly transport: PeerTransport
  readonly services: PeerServices
  readonly #config: PeersConfig
  readonly #platform: Platform
  readonly #logger: Logger
  readonly #incarnationId: Uuid
  readonly #stopping = new AbortController()
  /** By `controller.quorum.voters`; empty where those are not set. */
  readonly #targets: ReadonlyMap<number, RpcTarget>
  /** Others may know what this node is: empty and named, or of a cluster whose voters it knows. */
  #isIdentified = false
  #listener: RpcListener | undefined
  #clusterId = ''
  #directoryId = '' as Uuid
  #voters: readonly Voter[] = []
  #quorum: () => { readonly leaderId: number | null; readonly term: number } = () => ({ leaderId: null, term: 0 })
  #ask: ((request: Buffer) => Promise<Uint8Array>) | undefined
  #caller: { readonly nodeId: number; readonly clusterId: string } | undefined
  #contacts: Contacts | undefined
  readonly #accepted: AcceptedStreams
  readonly #watch: BrokerWatch
  /** What is made of what the watch sees. */
  #brokers: Omit<BrokerWatchOptions, 'platform'> | undefined

  constructor(config: PeersConfig, platform: Platform, logger: Logger, services: PeerServices, incarnationId: Uuid) {
    this.#config = config
    this.#platform = platform
    this.#logger = logger.child({ part: 'peers' })
    this.services = services
    this.#incarnationId = incarnationId
    this.#targets = new Map(config.quorumVoters.map(({ nodeId, host, port }) => [nodeId, { host, port }]))
    const identity = () => ({
      clusterId: this.#clusterId,
      nodeId: config.nodeId as number,
      directoryId: this.#directoryId,
      incarnationId,
    })
    this.#watch = new BrokerWatch({
      platform,
      placeOf: (nodeId, incarnation) => this.#brokers?.placeOf(nodeId, incarnation),
      onConnected: (nodeId) => this.#brokers?.onConnected(nodeId),
      onCrashed: (nodeId) => this.#brokers?.onCrashed(nodeId),
    })
    this.#accepted = new AcceptedStreams({
      platform,
      messages: services.messages,
      logger: this.#logger,
      identity,
      onCall: ({ nodeId, clusterId }) => {
        if (clusterId !== '') this.#caller ??= { nodeId, clusterId }
      },
      // Who is called is watched by the link to it.
      onOpened: ({ nodeId, incarnationId: run }) => {
        if (this.transport.targetOf(nodeId as NodeId) === undefined) this.#watch.opened(nodeId, run as Uuid)
      },
      onClosed: (nodeId) => this.#watch.closed(nodeId),
      onRaft: (message) => this.transport.receive(message),
    })
    this.transport = new PeerTransport({
      ...services,
      platform,
      logger: this.#logger,
      identity,
      configured: this.#targets,
      accepted: this.#accepted,
    })
  }

  /** Where a controller listens for others, as far as this node knows. */
  targetOf(node: BrokerId): RpcTarget | undefined {
    return this.transport.targetOf(node as number as NodeId)
  }

  /** `host:port` where others reach this node; undefined where it doesn't listen for any. */
  get endpoint(): string | undefined {
    const [listener] = this.#config.controllerListeners
    if (listener === undefined) return undefined
    const named = this.#targets.get(this.#config.nodeId)
    const { host, port, advertisedHost, advertisedPort } = listener
    return addressText(named ?? { host: advertisedHost ?? host, port: advertisedPort ?? this.#listener?.port ?? port })
  }

  /** The voters that this one isn't connected to, each with the reason, for people. */
  unreached(): string[] {
    return [...this.transport.unreached].map(([id, reason]) => `${id} (${reason})`)
  }

  /** The port of the CONTROLLER listener. Throws `RpcError`. */
  async listen(): Promise<void> {
    const [listener] = this.#config.controllerListeners
    if (listener === undefined) return
    const server = new NodeServer({
      messages: this.services.messages,
      accepted: this.#accepted,
      describe: () => this.#describe(),
      ask: (request) => {
        if (this.#ask === undefined) throw new RpcError('unavailable', 'The node is starting')
        return this.#ask(request)
      },
    })
    this.#listener = await this.services.network.listen({ host: listener.host, port: listener.port }, server)
  }

  /** What meta.properties says, or what the voters agree on at their first boot. Throws `CoordinationError`, `StorageError`. */
  async identify(): Promise<StartingIdentity> {
    const { files, random } = this.#platform
    const directory = this.#directory
    const meta = await readMetaProperties(files, directory)
    const forming = (await files.readFile(join(directory, formingFile), 1024))?.toString()
    if (meta !== undefined && forming === undefined) {
      this.#clusterId = meta.clusterId
      this.#directoryId = meta.directoryId
      const { clusterId, directoryId: metadataDirectoryId } = meta
      return { clusterId, metadataDirectoryId, voters: undefined, endpoint: this.endpoint }
    }
    // A crash on the way: the directory was named, and maybe labelled, but its log was not begun.
    this.#directoryId = forming !== undefined && isUuid(forming) ? forming : await this.#nameDirectory()
    const givenId = meta?.clusterId ?? this.#config.values.clusterId
    this.#isIdentified = true
    const formation: Formation = await formQuorum({
      ...this.services,
      timers: this.#platform.timers,
      logger: this.#logger,
      nodeId: this.#config.nodeId,
      directoryId: this.#directoryId,
      incarnationId: this.#incarnationId,
      isController: this.#config.roles.controller,
      places: this.#places,
      calledBy: () => this.#caller,
      newClusterId: givenId ?? random.uuid(),
      isClusterIdGiven: givenId !== null,
      signal: this.#stopping.signal,
    })
    return { ...formation, metadataDirectoryId: this.#directoryId, endpoint: this.endpoint }
  }

  /** The node's folders are formatted: others may know. */
  formatted(clusterId: string, voters: readonly Voter[]): void {
    this.#clusterId = clusterId
    this.#voters = voters
    this.#isIdentified = true
  }

  /** From now on requests to the controller are answered, and the quorum is told of. */
  serve(
    ask: (request: Buffer) => Promise<Uint8Array>,
    quorum: () => { readonly leaderId: number | null; readonly term: number; readonly voters: readonly Voter[] },
  ): void {
    this.#ask = ask
    this.#quorum = () => {
      const facts = quorum()
      this.#voters = facts.voters
      return facts
    }
  }

  /** Brokers that only call are watched from now on; `look` is to be called when registrations change. */
  watchBrokers(brokers: Omit<BrokerWatchOptions, 'platform'>): { look(): void } {
    this.#brokers = brokers
    return this.#watch
  }

  /** Whom `raft` asks for the log while it has no vote: found where the settings say, as long as it hears no leader. */
  findLeaderFor(raft: RaftNode): void {
    raft.setContacts([...this.#targets.keys()] as NodeId[])
    const { quorumBootstrapServers: servers, nodeId } = this.#config
    if (this.#targets.size > 0 || servers.length === 0) return
    this.#contacts = new Contacts({
      ...this.services,
      timers: this.#platform.timers,
      nodeId,
      clusterId: () => this.#clusterId,
      servers,
      hasLeader: () => raft.state.leaderId !== null,
      onFound: (nodes) => {
        for (const { id, endpoint } of nodes) {
          this.transport.learn({ id: id as NodeId, directoryId: zeroUuid, endpoint })
        }
        raft.setContacts(nodes.map(({ id }) => id as NodeId))
      },
    })
    this.#contacts.start()
  }

  /** `identify` rejects with a 'stopped'. */
  giveUp(): void {
    this.#stopping.abort()
  }

  async stop(): Promise<void> {
    this.giveUp()
    this.#contacts?.stop()
    this.#watch.stop()
    await this.#listener?.close()
  }

  async #nameDirectory(): Promise<Uuid> {
    const { files, random } = this.#platform
    const directory = this.#directory
    const directoryId = random.uuid()
    await files.makeDirectory(directory)
    await replaceFile(files, directory, formingFile, Buffer.from(directoryId))
    return directoryId
  }

  /** Once the log is begun. */
  async forgetForming(): Promise<void> {
    await this.#platform.files.remove(join(this.#directory, formingFile))
  }

  get #places(): readonly Place[] {
    if (this.#targets.size > 0) return [...this.#targets].map(([id, target]) => ({ id, target }))
    return this.#config.quorumBootstrapServers.map((target) => ({ id: undefined, target }))
  }

  /** In the settings it may be relative. */
  get #directory(): string {
    return resolve(this.#config.metadataLogDir)
  }

  /**
   * Throws `RpcError`: a node that doesn't know yet what its folders hold must not pass for an empty one, nor for one of a
   * cluster without voters. Who forms a cluster asks again.
   */
  #describe(): NodeDescription {
    if (!this.#isIdentified) throw new RpcError('unavailable', 'The node is starting')
    const { leaderId, term } = this.#quorum()
    return {
      protocolVersion,
      clusterId: this.#clusterId,
      nodeId: this.#config.nodeId,
      directoryId: this.#directoryId,
      incarnationId: this.#incarnationId,
      configuredVoters: [...this.#targets].map(([id, target]) => ({
        id,
        directoryId: '',
        endpoint: addressText(target),
      })),
      bootstrapServers: this.#targets.size > 0 ? [] : this.#config.quorumBootstrapServers.map(addressText),
      voters: this.#voters.map(({ id, directoryId, endpoint }) => ({ id, directoryId, endpoint: endpoint ?? '' })),
      ...(leaderId === null ? {} : { leaderId }),
      term,
    }
  }
}
