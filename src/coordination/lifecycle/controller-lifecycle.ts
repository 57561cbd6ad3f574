import { messageOf, type Uuid } from '../../base/index.ts'
import type { ControllerRegistration } from '../../controller/index.ts'
import type { Clock, Timer, Timers } from '../../platform/index.ts'
import type { RaftState } from '../../raft/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { AskController } from './broker-lifecycle.ts'

export interface ControllerLifecycleOptions {
  readonly ask: AskController
  readonly platform: { readonly clock: Clock; readonly timers: Timers }
  readonly logger: Logger
  readonly registration: ControllerRegistration
  /** Of the metadata log of this node. */
  readonly directoryId: Uuid
  /** `host:port` where other nodes reach this one. */
  readonly endpoint: string
  readonly raft: () => Pick<RaftState, 'leaderId' | 'membership' | 'hasVote'>
  /** `controller.quorum.auto.join.enable`: asks for a vote where it has none. */
  readonly joins: boolean
}

/** Between two looks at what is to be done. */
const intervalMs = 500
const requestTimeoutMs = 5000
/** It has to be brought up to date first. */
const joinTimeoutMs = 30_000

/**
 * What a controller tells the quorum of itself, whoever leads it: that it is there and where, so that it can be added by its id; where
 * it is now, when it has a vote and the membership has another address (KIP-853); and that it wants a vote, where it is to join by itself
 * (KIP-1186): a vote that its id has with another folder, one that was wiped, is given up first. Whatever fails is tried again.
 */
export class ControllerLifecycle {
  readonly #options: ControllerLifecycleOptions
  #timer: Timer | undefined
  #isStopped: boolean = false
  #isRegistered = false

  constructor(options: ControllerLifecycleOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#isStopped) return
    this.#timer = this.#options.platform.timers.set(intervalMs, () => {
      void this.#look().finally(() => this.start())
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #look(): Promise<void> {
    const { raft, logger } = this.#options
    if (raft().leaderId === null) return
    try {
      await this.#register()
      await this.#tellEndpoint()
      await this.#join()
    } catch (error) {
      // No leader in time, or another one by now: the next look finds it.
      if (!this.#isStopped) logger.debug({ reason: messageOf(error) }, 'controller was not heard by the quorum')
    }
  }

  async #register(): Promise<void> {
    if (this.#isRegistered) return
    const { ask, registration, logger } = this.#options
    const result = await ask('registerController', registration, this.#deadline(requestTimeoutMs))
    this.#isRegistered = true
    if (result.ok) logger.info({ controllerId: registration.controllerId }, 'controller registered')
    else logger.warn({ reason: result.message }, 'controller registration refused')
  }

  async #tellEndpoint(): Promise<void> {
    const { ask, raft, registration, directoryId, endpoint, logger } = this.#options
    const { membership, hasVote } = raft()
    const known = membership.voters.find((voter) => voter.directoryId === directoryId)?.endpoint
    if (!hasVote || known === endpoint) return
    const self = { id: registration.controllerId, directoryId, endpoint, timeoutMs: requestTimeoutMs }
    const result = await ask('updateVoter', self, this.#deadline(requestTimeoutMs))
    if (result.ok) logger.info({ endpoint, before: known }, 'quorum was told where this voter is')
    else logger.debug({ reason: result.message }, 'quorum does not take where this voter is')
  }

  async #join(): Promise<void> {
    const { ask, raft, registration, directoryId, endpoint, joins, logger } = this.#options
    const { membership, hasVote } = raft()
    if (!joins || hasVote) return
    const id = registration.controllerId
    const deadlineMs = this.#deadline(joinTimeoutMs)
    const before = membership.voters.find((voter) => (voter.id as number) === (id as number))
    if (before !== undefined) {
      const { directoryId: wiped } = before
      logger.info({ directoryId: wiped }, 'taking the vote of the folder that this one replaces')
      await ask('removeVoter', { id, directoryId: wiped, timeoutMs: joinTimeoutMs }, deadlineMs)
    }
    const result = await ask('addVoter', { id, directoryId, endpoint, timeoutMs: joinTimeoutMs }, deadlineMs)
    if (result.ok) logger.info({ directoryId }, 'joined the quorum as a voter')
    else logger.debug({ reason: result.message }, 'not made a voter')
  }

  #deadline(ms: number): number {
    return this.#options.platform.clock.monotonic() + ms
  }
}
