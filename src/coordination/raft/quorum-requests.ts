import type { BrokerId } from '../../base/index.ts'
import type { ControllerAnswer } from '../../controller/index.ts'
import type { MemberState, MembershipResult, NodeId, RaftNode } from '../../raft/index.ts'
import type { ControllerChannel, ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
import type { ChangeVotersResult, QuorumFacts, QuorumMember } from '../coordination.ts'
import type { ActiveController, DecisionKind } from './active-controller.ts'

type Raft = Pick<RaftNode, 'describe' | 'addVoter' | 'updateVoter' | 'removeVoter'>
type Answer<Kind extends ControllerRequestKind> = Promise<ControllerAnswer<ControllerRequests[Kind]['response']>>
type Handler<Kind extends ControllerRequestKind> = (request: ControllerRequests[Kind]['request']) => Answer<Kind>
type Handlers = { readonly [Kind in Exclude<ControllerRequestKind, DecisionKind>]: Handler<Kind> }

/** A voter that wasn't heard for longer is not counted on when another is to be removed; heartbeats come several times in it. */
const maxSilenceMs = 500

const notLeader = { ok: false, reason: 'not-controller', mayBeStored: false } as const
const mayHaveHappened = { ok: false, reason: 'not-controller', mayBeStored: true } as const

/**
 * All that this node answers while it leads the quorum: what is decided on metadata goes to the active controller, and what
 * is about the quorum itself to Raft. On another node every request is refused.
 */
export class LeaderChannel implements ControllerChannel {
  readonly #raft: Raft
  readonly #controller: ActiveController
  readonly #handlers: Handlers

  constructor(raft: Raft, controller: ActiveController) {
    this.#raft = raft
    this.#controller = controller
    this.#handlers = {
      describeQuorum: async () => this.#describe(),
      addVoter: async ({ id, directoryId, endpoint, timeoutMs }) => {
        const voter = { id: id as number as NodeId, directoryId, endpoint }
        return answerOf(await this.#raft.addVoter(voter, { timeoutMs }))
      },
      updateVoter: async ({ id, directoryId, endpoint, timeoutMs }) => {
        const voter = { id: id as number as NodeId, directoryId, endpoint }
        return answerOf(await this.#raft.updateVoter(voter, { timeoutMs }))
      },
      removeVoter: async ({ id, directoryId, timeoutMs }) => {
        const refusal = this.#removalRefusal(id)
        if (refusal !== undefined) return { ok: true, index: 0, response: refusal }
        return answerOf(await this.#raft.removeVoter({ id: id as number as NodeId, directoryId }, { timeoutMs }))
      },
    }
  }

  ask<Kind extends ControllerRequestKind>(kind: Kind, request: ControllerRequests[Kind]['request']): Answer<Kind> {
    // What isn't the quorum's is the controller's: the types of the two tables say so together, and not to the compiler.
    const handler = (this.#handlers as { readonly [Each in Kind]?: Handler<Each> })[kind]
    if (handler !== undefined) return handler(request)
    const decide = this.#controller as { ask(kind: Kind, request: ControllerRequests[Kind]['request']): Answer<Kind> }
    return decide.ask(kind, request)
  }

  /** A removal counts with the voters that are left: where most of those are away it would never be committed, nor anything after it. */
  #removalRefusal(id: BrokerId): ChangeVotersResult | undefined {
    const left = this.#raft.describe()?.voters.filter((voter) => (voter.id as number) !== id) ?? []
    const heard = left.filter(({ lastContactMs }) => lastContactMs !== null && lastContactMs <= maxSilenceMs)
    if (heard.length * 2 > left.length || left.length === 0) return undefined
    const message = `Of the ${left.length} voters that would be left only ${heard.length} are heard`
    return { ok: false, reason: 'too-few-heard', message }
  }

  #describe(): ControllerAnswer<QuorumFacts> {
    const quorum = this.#raft.describe()
    if (quorum === undefined) return notLeader
    const { leaderId, term, commitIndex, voters, observers } = quorum
    const memberOf = (member: MemberState): QuorumMember => ({
      id: member.id as number as BrokerId,
      directoryId: member.directoryId,
      endpoint: member.endpoint ?? null,
      logEndOffset: (member.id === leaderId ? quorum.lastIndex : member.matchIndex) + 1,
      lastContactMs: member.lastContactMs,
      lastCaughtUpMs: member.lastCaughtUpMs,
    })
    return {
      ok: true,
      index: 0, // of the quorum, not of the metadata: no image has to hold it
      response: {
        leaderId: leaderId as number as BrokerId,
        term,
        highWatermark: commitIndex + 1,
        voters: voters.map(memberOf),
        observers: observers.map(memberOf),
      },
    }
  }
}

function answerOf(result: MembershipResult): ControllerAnswer<ChangeVotersResult> {
  if (result.ok) return { ok: true, index: result.index, response: { ok: true } }
  const { reason } = result
  switch (reason) {
    case 'not-leader':
      return notLeader
    case 'leadership-lost':
    case 'stopped':
      return mayHaveHappened
    default:
      return { ok: true, index: 0, response: { ok: false, reason, message: messages[reason] } }
  }
}

const messages: Readonly<
  Record<Exclude<Extract<ChangeVotersResult, { ok: false }>['reason'], 'too-few-heard'>, string>
> = {
  busy: 'Another change of voters is under way',
  timeout: 'The voter was not up to date, or the change not committed, in time',
  'duplicate-voter': 'A voter with this id is there already: remove it first',
  'voter-not-found': 'There is no voter with this id and directory id',
  'last-voter': 'The last voter cannot be removed',
  'too-many': 'There are as many voters as there may be',
  'no-transport': 'This node was started alone, without a way to other voters',
}
