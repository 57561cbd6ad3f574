import { assert, type BrokerId, type Deferred, deferred, errorOf, type Uuid } from '../base/index.ts'
import {
  type ControllerAnswer,
  type ControllerRequestKind,
  type ControllerRequests,
  CoordinationError,
  MetadataLoader,
  type MetadataQuorum,
  type QuorumListener,
  type QuorumState,
} from '../coordination/index.ts'
import type { MetadataImage } from '../metadata/index.ts'
import type { Thread, Threads } from '../platform/index.ts'
import type { LogIndex, Term } from '../raft/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { ControlCall, ControlCalls, ControlMessage, SentLogLine } from './control-messages.ts'
import type { ControlConfig, ControlPlane, NodeFolders } from './control-plane.ts'
import { controlProgram } from './control-program.ts'
import type { StartingIdentity } from './node-peers.ts'
import { unpackEntries } from './sent-entries.ts'
import { receivedError } from './sent-error.ts'

export interface ControlThreadOptions {
  readonly config: ControlConfig
  readonly threads: Threads
  readonly logger: Logger
  /** Of this run of the process. */
  readonly incarnationId: Uuid
}

/**
 * A control plane in a thread of its own, as the node sees it. The Raft log is on disk and the peers are reached by gRPC:
 * neither can be another, since nothing but plain data gets there. That the thread ends by itself is a fault of the quorum.
 */
export class ControlThread implements ControlPlane {
  readonly #thread: Thread
  readonly #logger: Logger
  /** Calls that are not answered yet. */
  readonly #waiting = new Map<number, Deferred<unknown>>()
  #lastId = 0
  #quorum: ThreadQuorum | undefined
  /** Why nothing is answered any more. */
  #ended: Error | undefined

  constructor({ config, threads, logger, incarnationId }: ControlThreadOptions) {
    this.#logger = logger
    this.#thread = threads.start(controlProgram, { config, incarnationId })
    this.#thread.onMessage((message) => this.#receive(message as ControlMessage))
    this.#thread.onEnd((cause) => this.#onEnd(cause))
  }

  identify(): Promise<StartingIdentity | undefined> {
    return this.#call('identify')
  }

  async open(folders: NodeFolders): Promise<MetadataQuorum> {
    assert(this.#quorum === undefined, 'a control plane opens one quorum')
    const quorum = new ThreadQuorum((name, ...input) => this.#call(name, ...input), folders.clusterId)
    this.#quorum = quorum // its state may come before the answer
    await this.#call('open', folders)
    return quorum
  }

  async unreached(): Promise<readonly string[]> {
    return await this.#call('unreached')
  }

  giveUp(): void {
    this.#call('giveUp').catch(() => undefined) // nothing is waited for any more where it has ended
  }

  async stop(): Promise<void> {
    try {
      if (this.#ended === undefined) await this.#call('stop')
    } finally {
      this.#ended ??= new CoordinationError('stopped', 'The node is stopped')
      await this.#thread.stop()
    }
  }

  #call<Name extends keyof ControlCalls>(
    name: Name,
    ...inputs: Parameters<ControlCalls[Name]>
  ): ReturnType<ControlCalls[Name]> {
    const [input] = inputs
    const answer = deferred<unknown>()
    if (this.#ended !== undefined) {
      answer.reject(this.#ended)
    } else {
      const id = ++this.#lastId
      this.#thread.post({ id, name, input } satisfies ControlCall)
      this.#waiting.set(id, answer)
    }
    return answer.promise as ReturnType<ControlCalls[Name]>
  }

  #receive(message: ControlMessage): void {
    if (message.type === 'answer') this.#take(message.id).resolve(message.result)
    else if (message.type === 'failure') this.#take(message.id).reject(receivedError(message.error))
    else if (message.type === 'log') this.#write(message)
    else this.#quorum?.receive(message)
  }

  #take(id: number): Deferred<unknown> {
    const answer = this.#waiting.get(id)
    assert(answer !== undefined, 'each call is answered once')
    this.#waiting.delete(id)
    return answer
  }

  #write({ level, fields, errors, message }: SentLogLine): void {
    const received = Object.entries(errors).map(([key, error]) => [key, receivedError(error)] as const)
    this.#logger[level]({ ...fields, ...Object.fromEntries(received) }, message)
  }

  #onEnd(cause: Error | undefined): void {
    const wasStopped = this.#ended !== undefined
    this.#ended ??= new CoordinationError('stopped', "The thread of this node's control plane ended", { cause })
    for (const answer of this.#waiting.values()) answer.reject(this.#ended)
    this.#waiting.clear()
    if (!wasStopped) this.#quorum?.end(this.#ended)
  }
}

type Call = <Name extends keyof ControlCalls>(
  name: Name,
  ...input: Parameters<ControlCalls[Name]>
) => ReturnType<ControlCalls[Name]>

/** The quorum's member in the thread, with an image of its own that is replayed from the same entries. */
class ThreadQuorum implements MetadataQuorum {
  readonly #call: Call
  readonly #loader: MetadataLoader
  #listener: QuorumListener | undefined
  #state: QuorumState = { leaderId: null, term: 0, isActive: false, waitsForRoom: false }
  #fault: Error | undefined
  #stopped: Promise<void> | undefined

  constructor(call: Call, clusterId: string) {
    this.#call = call
    this.#loader = new MetadataLoader(clusterId, (delta, image) => this.#listener?.onStep(delta, image))
  }

  get state(): QuorumState {
    return this.#state
  }

  get image(): MetadataImage {
    return this.#loader.image
  }

  listen(listener: QuorumListener): void {
    assert(this.#listener === undefined, 'a quorum has one listener')
    this.#listener = listener
  }

  async start(): Promise<void> {
    await this.#call('start')
    if (this.#fault !== undefined) throw this.#fault
  }

  ask<Kind extends ControllerRequestKind>(
    controller: BrokerId,
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    timeoutMs: number,
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>> {
    type Answer = Promise<ControllerAnswer<ControllerRequests[Kind]['response']>>
    return this.#call('ask', { controller, kind, request, timeoutMs }) as Answer
  }

  waitForRoom(): void {
    this.#call('waitForRoom').catch(() => undefined) // nothing waits where it has ended
  }

  async transferLeadership(): Promise<void> {
    await this.#unlessEnded(this.#call('transferLeadership'))
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#unlessEnded(this.#call('stopQuorum'))
    return this.#stopped
  }

  /** Where the thread has ended there is nothing left to be done, and the fault was told. */
  #unlessEnded(done: Promise<void>): Promise<void> {
    return done.catch((error: unknown) => {
      if (error !== this.#fault) throw error
    })
  }

  receive(message: Exclude<ControlMessage, { type: 'answer' | 'failure' | 'log' }>): void {
    if (this.#fault !== undefined) return
    try {
      this.#apply(message)
    } catch (error) {
      this.end(errorOf(error))
    }
  }

  #apply(message: Parameters<ThreadQuorum['receive']>[0]): void {
    if (message.type === 'fault') {
      this.end(receivedError(message.error))
      return
    }
    if (message.type === 'committed') this.#loader.onCommitted(unpackEntries(message.entries))
    else if (message.type === 'state') this.#state = message.state
    else {
      const { index, term, data } = message
      this.#loader.onSnapshot({ index: index as LogIndex, term: term as Term, data })
    }
    this.#listener?.onChange()
  }

  /** It can't go on. */
  end(fault: Error): void {
    if (this.#fault !== undefined) return
    this.#fault = fault
    this.#state = { ...this.#state, leaderId: null, isActive: false }
    this.#listener?.onFault(fault)
  }
}
