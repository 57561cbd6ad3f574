import { assert } from '../base/index.ts'
import type { ControllerRequests, MetadataQuorum, QuorumState } from '../coordination/index.ts'
import { createRealPlatform, type ThreadPort, type ThreadProgram } from '../platform/index.ts'
import type { LogFields, Logger } from '../telemetry/index.ts'
import type { ControlCall, ControlCalls, ControlInput, ControlMessage, SentLogLine } from './control-messages.ts'
import { LocalControlPlane } from './control-plane.ts'
import { raftStorageOnDisk } from './raft-storage.ts'
import { memoryOf, packEntries } from './sent-entries.ts'
import { sentError } from './sent-error.ts'

/**
 * A control plane in a thread of its own: its files, sockets and timers are the thread's. `ControlThread` is the other end.
 *
 * Its syncs are not the scheduler's of the node's event loop: one at a time, as Raft writes, for which that one leaves a
 * thread of libuv's pool, which is the process's.
 */
export const controlProgram: ThreadProgram<ControlInput> = {
  module: import.meta.url,
  name: 'controlProgram',
  run: (port, input) => {
    const host = new ControlHost(port, input)
    port.onMessage((message) => void host.answer(message as ControlCall))
  },
}

class ControlHost {
  readonly #port: ThreadPort
  readonly #plane: LocalControlPlane
  readonly #calls: { readonly [Name in keyof ControlCalls]: (input: never) => Promise<unknown> }
  #quorum: MetadataQuorum | undefined
  /** As the node knows it. */
  #state: QuorumState = { leaderId: null, term: 0, isActive: false, waitsForRoom: false }

  constructor(port: ThreadPort, { config, incarnationId }: ControlInput) {
    this.#port = port
    this.#plane = new LocalControlPlane({
      config,
      platform: createRealPlatform(),
      logger: new PostedLogger((line) => this.#post({ type: 'log', ...line }), {}),
      incarnationId,
      openRaftStorage: raftStorageOnDisk,
      scheduleSync: (work) => work(),
      isBrokerApart: true,
      commits: {
        onCommitted: (batch) => {
          const entries = packEntries(batch)
          this.#post({ type: 'committed', entries }, memoryOf(entries))
        },
        onSnapshot: ({ index, term, data }) => {
          const copy = new Uint8Array(data) // Raft keeps its own, for followers
          this.#post({ type: 'snapshot', index, term, data: copy }, [copy.buffer])
        },
      },
    })
    this.#calls = this.#makeCalls()
  }

  async answer({ id, name, input }: ControlCall): Promise<void> {
    try {
      const result = await this.#calls[name](input as never)
      this.#tellState()
      this.#post({ type: 'answer', id, result })
    } catch (error) {
      this.#post({ type: 'failure', id, error: sentError(error) })
    }
  }

  #makeCalls(): ControlCalls {
    const plane = this.#plane
    return {
      identify: () => plane.identify(),
      open: async (folders) => {
        const quorum = await plane.open(folders)
        quorum.listen({
          onStep: () => undefined, // the node replays the entries itself
          onChange: () => this.#tellState(),
          onFault: (error) => this.#post({ type: 'fault', error: sentError(error) }),
        })
        this.#quorum = quorum
      },
      start: () => this.#opened.start(),
      ask: ({ controller, kind, request, timeoutMs }) =>
        this.#opened.ask(controller, kind, request as ControllerRequests[typeof kind]['request'], timeoutMs),
      waitForRoom: async () => this.#opened.waitForRoom(),
      transferLeadership: () => this.#opened.transferLeadership(),
      stopQuorum: () => this.#opened.stop(),
      unreached: () => plane.unreached(),
      giveUp: async () => plane.giveUp(),
      stop: () => plane.stop(),
    }
  }

  get #opened(): MetadataQuorum {
    assert(this.#quorum !== undefined, 'a quorum is opened before it is used')
    return this.#quorum
  }

  #tellState(): void {
    if (this.#quorum === undefined) return
    const state = this.#quorum.state
    const keys = Object.keys(state) as (keyof QuorumState)[]
    if (keys.every((key) => state[key] === this.#state[key])) return
    this.#state = state
    this.#post({ type: 'state', state: this.#state })
  }

  #post(message: ControlMessage, moved?: readonly ArrayBuffer[]): void {
    this.#port.post(message, moved)
  }
}

/** Lines are written by the node's logger, which decides whether they are. */
class PostedLogger implements Logger {
  readonly #post: (line: SentLogLine) => void
  readonly #bindings: LogFields

  constructor(post: (line: SentLogLine) => void, bindings: LogFields) {
    this.#post = post
    this.#bindings = bindings
  }

  child(fields: LogFields): Logger {
    return new PostedLogger(this.#post, { ...this.#bindings, ...fields })
  }

  debug(fields: LogFields, message: string): void {
    this.#write('debug', fields, message)
  }

  info(fields: LogFields, message: string): void {
    this.#write('info', fields, message)
  }

  warn(fields: LogFields, message: string): void {
    this.#write('warn', fields, message)
  }

  error(fields: LogFields, message: string): void {
    this.#write('error', fields, message)
  }

  #write(level: SentLogLine['level'], fields: LogFields, message: string): void {
    const all = Object.entries({ ...this.#bindings, ...fields })
    const errors = all.flatMap(([key, value]) => (value instanceof Error ? [[key, sentError(value)] as const] : []))
    const others = all.filter(([, value]) => !(value instanceof Error))
    this.#post({ level, fields: Object.fromEntries(others), errors: Object.fromEntries(errors), message })
  }
}
