import type { BrokerId } from '../../base/index.ts'
import type { ControllerAnswer } from '../../controller/index.ts'
import { type Clock, pause, type Timers } from '../../platform/index.ts'
import type { ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
import { CoordinationError } from '../coordination-error.ts'
import type { Gate } from '../gate.ts'
import type { MetadataQuorum } from './metadata-quorum.ts'

export interface ControllerClientOptions {
  readonly quorum: Pick<MetadataQuorum, 'state' | 'image' | 'ask'>
  /** Of this node. */
  readonly brokerId: BrokerId
  /** Notified of every change of the quorum's state and image. */
  readonly gate: Gate
  readonly platform: { readonly clock: Clock; readonly timers: Timers }
}

/** Before another attempt, where the controller was another one than was believed, or could not be reached. */
const retryMs = 20
/** How long a controller that was replaced may take to say what became of a request that must not be made twice. */
const formerControllerMs = 250

/** Requests that may be made twice: a second one finds what the first did, or does no harm. */
const repeatable: ReadonlySet<ControllerRequestKind> = new Set([
  'registerBroker',
  'heartbeat',
  'allocateProducerIds',
  'alterPartition',
  'listPartitionReassignments',
  'describeQuorum',
  'registerController',
  'updateVoter',
])

/** In place of an answer that doesn't come. */
const replaced: ControllerAnswer<never> = { ok: false, reason: 'not-controller', mayBeStored: true }

/** Asks the active controller, whichever it is at the time, until it has answered and the image holds what the answer says. */
export class ControllerClient {
  readonly #options: ControllerClientOptions

  constructor(options: ControllerClientOptions) {
    this.#options = options
  }

  /** Who is believed to be active: this node once it is, else who leads the quorum. */
  get controllerId(): BrokerId | undefined {
    const { brokerId, quorum } = this.#options
    const { isActive, leaderId } = quorum.state
    if (isActive) return brokerId
    return leaderId === null || leaderId === brokerId ? undefined : leaderId
  }

  /** Resolves when a controller is believed to be active. Throws `CoordinationError` at `deadlineMs` (monotonic). */
  async whenThere(deadlineMs: number): Promise<void> {
    await this.#options.gate.until(() => this.controllerId !== undefined, deadlineMs, 'an active controller')
  }

  /** Throws `CoordinationError`. */
  async ask<Kind extends ControllerRequestKind>(
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    deadlineMs: number,
  ): Promise<ControllerRequests[Kind]['response']> {
    const { quorum, gate, platform } = this.#options
    for (;;) {
      await this.whenThere(deadlineMs)
      const controller = this.controllerId
      if (controller === undefined) continue // gone again, since it was there
      const leftMs = Math.max(1, deadlineMs - platform.clock.monotonic())
      const asked = quorum.ask(controller, kind, request, leftMs)
      const answer = await this.#answerOf(asked, controller, kind, deadlineMs)
      if (answer.ok) {
        await gate.until(() => quorum.image.index >= answer.index, deadlineMs, `entry ${answer.index}`)
        return answer.response
      }
      if (answer.reason === 'overloaded') {
        throw new CoordinationError('overloaded', 'Too many requests wait at the controller')
      }
      if (answer.mayBeStored && !repeatable.has(kind)) {
        throw new CoordinationError('outcome-unknown', `The controller changed before ${kind} was stored`)
      }
      await pause(platform.timers, retryMs)
      // One that refuses at once would be asked for ever.
      if (platform.clock.monotonic() >= deadlineMs) {
        throw new CoordinationError('timed-out', `Timed out waiting for a controller that takes ${kind}`)
      }
    }
  }

  /** `replaced` when another node has come to lead before it is there: one that hangs would be waited for in vain. */
  async #answerOf<Answer>(
    asked: Promise<Answer>,
    controller: BrokerId,
    kind: ControllerRequestKind,
    deadlineMs: number,
  ): Promise<Answer | typeof replaced> {
    const { quorum, gate, platform, brokerId } = this.#options
    const isReplaced = () => {
      const { leaderId } = quorum.state
      return controller !== brokerId && leaderId !== null && leaderId !== controller // its own says so itself
    }
    const answer = await gate.valueOf(asked, deadlineMs, `the controller's answer to ${kind}`, isReplaced)
    if (answer !== undefined) return answer
    if (repeatable.has(kind)) return replaced
    // One that lives says so itself, and better: whether the request was stored.
    return await Promise.race([asked, pause(platform.timers, formerControllerMs).then(() => replaced)])
  }
}
