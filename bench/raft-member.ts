import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Uuid } from '../src/base/index.ts'
import { AcceptedStreams, NodeServer, PeerTransport, protocolVersion } from '../src/coordination/index.ts'
import { createRealPlatform } from '../src/platform/index.ts'
import { type NodeId, openDurableStorage, RaftNode } from '../src/raft/index.ts'
import {
  loadGrpcNetwork,
  loadNodeMessages,
  type NodeMessages,
  RpcError,
  type RpcNetwork,
  type RpcStream,
  type RpcStreamHandlers,
} from '../src/rpc/index.ts'
import { createLogger } from '../src/telemetry/index.ts'
import type { RaftUsage } from './broker.ts'

/**
 * A Raft member without a broker: the node's own Raft, transport and store, with entries that mean nothing. It runs on the event
 * loop of whoever starts it ('inline') or in a worker thread: so that both can be compared under one load, in one process.
 */
export interface MemberSettings {
  readonly nodeId: number
  /** By id - 1. */
  readonly ports: readonly number[]
  readonly directory: string
}

/** Which both ends of a worker say to each other. */
interface MemberCommand {
  readonly id: number
  readonly what: 'begin' | 'end' | 'stop' | 'propose'
}

export interface Member {
  begin(): Promise<void>
  end(): Promise<RaftUsage>
  stop(): Promise<void>
}

/** Between two proposals of the leader. */
const proposalIntervalMs = 50
/** About as much as the record of one partition. */
const proposalBytes = 200

export async function startMember(settings: MemberSettings, where: 'inline' | 'worker'): Promise<Member> {
  return where === 'inline' ? await RunningMember.start(settings) : await WorkerMember.start(settings)
}

/** The directory id of a member: any, but the same in all processes. */
function directoryIdOf(nodeId: number): Uuid {
  return Buffer.alloc(16, nodeId).toString('base64url') as Uuid
}

class RunningMember implements Member {
  readonly #raft: RaftNode
  readonly #where: RaftUsage['where']
  readonly #heartbeats: Heartbeats
  readonly #close: () => Promise<void>
  readonly #timer: NodeJS.Timeout
  #commits: number[] = []

  static async start({ nodeId, ports, directory }: MemberSettings): Promise<RunningMember> {
    const platform = createRealPlatform()
    const heartbeats = new Heartbeats()
    const { network, messages } = await timedServices(heartbeats)
    const silent = { level: 'silent', format: 'json', destination: process.stderr, name: 'member' } as const
    const logger = createLogger({ ...silent, clock: platform.clock })
    const incarnationId = platform.random.uuid()
    const directoryId = directoryIdOf(nodeId)
    const identity = () => ({ clusterId: 'bench', nodeId, directoryId, incarnationId })
    const base = { messages, platform, logger, identity }
    const accepted = new AcceptedStreams({ ...base, onRaft: (message) => transport.receive(message) })
    const configured = new Map(ports.map((port, i) => [i + 1, { host: '127.0.0.1', port }]))
    const transport = new PeerTransport({ ...base, network, configured, accepted })
    const server = new NodeServer({
      messages,
      accepted,
      describe: () => ({
        protocolVersion,
        ...identity(),
        configuredVoters: [],
        bootstrapServers: [],
        voters: [],
        term: 0,
      }),
      ask: () => Promise.reject(new RpcError('unavailable', 'There is no controller')),
    })
    const listener = await network.listen({ host: '127.0.0.1', port: ports[nodeId - 1]! }, server)
    const voters = ports.map((_, i) => ({ id: (i + 1) as NodeId, directoryId: directoryIdOf(i + 1) }))
    const { files, timers } = platform
    const bootstrap = { voters }
    const storage = await openDurableStorage({ files, timers, directory, bootstrap, scheduleSync: (work) => work() })
    const raft = new RaftNode({ id: nodeId as NodeId, directoryId, storage, transport, platform, logger })
    await raft.start()
    return new RunningMember(raft, heartbeats, () => listener.close())
  }

  private constructor(raft: RaftNode, heartbeats: Heartbeats, close: () => Promise<void>) {
    this.#raft = raft
    this.#where = isMainThread ? 'inline' : 'worker'
    this.#heartbeats = heartbeats
    this.#close = close
    this.#timer = setInterval(() => void this.propose(), proposalIntervalMs)
  }

  /** False where it does not lead. */
  async propose(): Promise<boolean> {
    if (this.#raft.state.role !== 'leader') return false
    const sentMs = performance.now()
    const { ok } = await this.#raft.propose(Buffer.alloc(proposalBytes))
    if (ok) this.#commits.push(performance.now() - sentMs)
    return ok
  }

  async begin(): Promise<void> {
    this.#commits = []
    this.#heartbeats.begin()
  }

  async end(): Promise<RaftUsage> {
    const { role, term } = this.#raft.state
    const measured = { heartbeats: this.#heartbeats.timesMs, commits: this.#commits, commitsAcross: [] }
    return { where: this.#where, isLeader: role === 'leader', term, ...measured }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#raft.stop()
    await this.#close()
  }
}

/** A member in a worker thread, as the broker's event loop sees it. */
class WorkerMember implements Member {
  readonly #worker: Worker
  readonly #waiting = new Map<number, (answer: unknown) => void>()
  readonly #timer: NodeJS.Timeout
  #lastId = 0
  #commits: number[] = []

  static async start(settings: MemberSettings): Promise<WorkerMember> {
    const worker = new Worker(new URL(import.meta.url), { workerData: settings })
    await new Promise<void>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
    return new WorkerMember(worker)
  }

  private constructor(worker: Worker) {
    this.#worker = worker
    worker.on('message', ({ id, answer }: { readonly id: number; readonly answer: unknown }) => {
      this.#waiting.get(id)?.(answer)
      this.#waiting.delete(id)
    })
    this.#timer = setInterval(() => void this.#propose(), proposalIntervalMs)
  }

  async begin(): Promise<void> {
    this.#commits = []
    await this.#ask('begin')
  }

  async end(): Promise<RaftUsage> {
    return { ...((await this.#ask('end')) as RaftUsage), commitsAcross: this.#commits }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#ask('stop')
    await this.#worker.terminate()
  }

  async #propose(): Promise<void> {
    const sentMs = performance.now()
    if ((await this.#ask('propose')) === true) this.#commits.push(performance.now() - sentMs)
  }

  #ask(what: MemberCommand['what']): Promise<unknown> {
    const id = ++this.#lastId
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#worker.postMessage({ id, what } satisfies MemberCommand)
    })
  }
}

/** How long heartbeats take to be answered. */
export class Heartbeats {
  /** Those that are not answered, by receiver, oldest first. */
  readonly #sentMs = new Map<number, number[]>()
  #timesMs: number[] = []

  get timesMs(): readonly number[] {
    return this.#timesMs
  }

  begin(): void {
    this.#timesMs = []
    this.#sentMs.clear()
  }

  sent(to: number): void {
    const times = this.#sentMs.get(to) ?? []
    times.push(performance.now())
    this.#sentMs.set(to, times)
  }

  answered(from: number): void {
    const sentMs = this.#sentMs.get(from)?.shift()
    if (sentMs !== undefined) this.#timesMs.push(performance.now() - sentMs)
  }
}

/** What it takes to talk to other nodes, with an eye on the heartbeats that pass. */
export async function timedServices(
  heartbeats: Heartbeats,
): Promise<{ readonly network: RpcNetwork; readonly messages: NodeMessages }> {
  const network = await loadGrpcNetwork()
  const messages = await loadNodeMessages()
  const onSent = (bytes: Uint8Array): void => {
    const { raft } = messages.peerMessage.decode(Buffer.from(bytes))
    if (raft?.body === 'heartbeat') heartbeats.sent(raft.to)
  }
  const onReceived = (bytes: Buffer): void => {
    const { raft } = messages.peerMessage.decode(bytes)
    if (raft?.body === 'heartbeatAnswer') heartbeats.answered(raft.from)
  }
  const timed = (handlers: RpcStreamHandlers): RpcStreamHandlers => ({
    onMessage: (bytes) => {
      onReceived(bytes)
      handlers.onMessage(bytes)
    },
    onDrain: () => handlers.onDrain?.(),
    onClose: (error) => handlers.onClose(error),
  })
  const timedStream = (stream: RpcStream): RpcStream => ({
    send: (bytes) => {
      onSent(bytes)
      return stream.send(bytes)
    },
    end: () => stream.end(),
    cancel: (error) => stream.cancel(error),
  })
  return {
    messages,
    network: {
      listen: (options, service) =>
        network.listen(options, {
          call: (method, request, remote) => service.call(method, request, remote),
          stream: (method, stream, remote) => timed(service.stream(method, stream, remote)),
        }),
      connect: (target) => {
        const channel = network.connect(target)
        return {
          call: (method, request, timeoutMs) => channel.call(method, request, timeoutMs),
          openStream: (method, handlers) => timedStream(channel.openStream(method, timed(handlers))),
          close: () => channel.close(),
        }
      },
    },
  }
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort
  const member = await RunningMember.start(workerData as MemberSettings)
  port.on('message', ({ id, what }: MemberCommand) => {
    void member[what]().then((answer) => port.postMessage({ id, answer }))
  })
  port.postMessage('started')
}
