import { assert, ownCopy } from '../base/index.ts'
import type { Now, Ticket } from '../coordinator-runtime/index.ts'
import { ClassicGroup } from './classic-group.ts'
import type { GroupConfig } from './config.ts'
import { Effects, joinKey, type RebalanceReason, sessionKey, syncKey } from './effects.ts'
import { Member, ownProtocols } from './member.ts'
import type {
  HeartbeatRequest,
  HeartbeatResponse,
  JoinGroupRequest,
  JoinGroupResponse,
  LeaveGroupRequest,
  LeaveGroupResponse,
  MemberIdentity,
  SyncGroupRequest,
  SyncGroupResponse,
} from './types.ts'

/**
 * How long a member that doesn't know its id yet may wait in its first join. Its connection may be long gone, which nobody
 * notices while the request waits; its client then joins anew as another member.
 */
const newMemberJoinTimeoutMs = 5 * 60_000

const noBytes = Buffer.alloc(0)

/** Characters of a client's words that a log line has. */
const maxShownLength = 200

function shown(text: string): string {
  return text.slice(0, maxShownLength)
}

interface RebalanceCause {
  readonly reason: RebalanceReason
  readonly memberId?: string | undefined
  readonly clientReason?: string | null | undefined
}

/**
 * The rules of classic groups: who may join, when a rebalance begins and ends, who is dropped. The states and what they mean
 * are in `ClassicGroup`; the moves between them:
 *
 *     Empty -> PreparingRebalance               someone joins; ends after the initial rebalance delay
 *     Stable, CompletingRebalance -> Preparing  a member joins, leaves, is dropped, or changes; a leader joins again
 *     PreparingRebalance -> Completing          all members have joined, or the rebalance timeout is over
 *     PreparingRebalance -> Empty               the same, and nobody is left
 *     CompletingRebalance -> Stable             the leader's assignment is appended to the log
 */
export class ClassicGroups {
  readonly #config: GroupConfig
  readonly #groups: Map<string, ClassicGroup>

  constructor(config: GroupConfig, groups: Map<string, ClassicGroup>) {
    this.#config = config
    this.#groups = groups
  }

  /** `newMemberId` is taken for a member that has none yet. */
  join(request: JoinGroupRequest, newMemberId: string, ticket: Ticket<JoinGroupResponse>, now: Now): Effects {
    const effects = new Effects(now)
    const { groupId, memberId } = request
    let group = this.#groups.get(groupId)
    if (group === undefined) {
      if (memberId !== '') return effects.answer(ticket, refusedJoin('unknown-member-id', memberId))
      group = new ClassicGroup(groupId)
      this.#groups.set(groupId, group)
    }
    if (!this.#hasRoomFor(group, memberId)) {
      const member = group.members.get(memberId)
      if (member !== undefined) this.#drop(group, member, effects)
      effects.answer(ticket, refusedJoin('group-max-size-reached', ''))
      this.#maybeCompleteJoin(group, effects)
    } else if (!group.accepts(request.protocolType, request.protocols)) {
      effects.answer(ticket, refusedJoin('inconsistent-group-protocol', memberId))
    } else if (memberId === '') {
      this.#joinNew(group, request, newMemberId, ticket, effects)
    } else {
      this.#joinAgain(group, request, ticket, effects)
    }
    this.forgetIfVacant(group)
    return effects
  }

  #hasRoomFor(group: ClassicGroup, memberId: string): boolean {
    const { groupMaxSize } = this.#config
    const member = group.members.get(memberId)
    switch (group.state) {
      case 'Empty':
        return true
      case 'PreparingRebalance':
        return member?.joinTicket !== undefined || group.joinedCount < groupMaxSize
      default:
        return member !== undefined || group.members.size < groupMaxSize
    }
  }

  #joinNew(
    group: ClassicGroup,
    request: JoinGroupRequest,
    newMemberId: string,
    ticket: Ticket<JoinGroupResponse>,
    effects: Effects,
  ): void {
    const { groupInstanceId, requireKnownMemberId, sessionTimeoutMs } = request
    if (groupInstanceId !== null) {
      const oldId = group.staticMemberId(groupInstanceId)
      const old = oldId === undefined ? undefined : group.members.get(oldId)
      if (old !== undefined) this.#replaceStatic(group, old, request, newMemberId, ticket, effects)
      else this.#addMember(group, request, newMemberId, ticket, effects)
    } else if (requireKnownMemberId) {
      // A client that dies between two joins then leaves nothing behind that the others would wait for.
      group.pendingMembers.add(newMemberId)
      const event = { kind: 'session', groupId: group.groupId, memberId: newMemberId } as const
      effects.setTimer(sessionKey(group.groupId, newMemberId), sessionTimeoutMs, event)
      effects.answer(ticket, refusedJoin('member-id-required', newMemberId))
    } else {
      this.#addMember(group, request, newMemberId, ticket, effects)
    }
  }

  #joinAgain(
    group: ClassicGroup,
    request: JoinGroupRequest,
    ticket: Ticket<JoinGroupResponse>,
    effects: Effects,
  ): void {
    const { memberId, protocols } = request
    if (group.pendingMembers.has(memberId) && request.groupInstanceId === null) {
      this.#addMember(group, request, memberId, ticket, effects)
      return
    }
    const member = findMember(group, request)
    if (!(member instanceof Member)) {
      effects.answer(ticket, refusedJoin(member, memberId))
      return
    }
    // A member that missed its answer asks again, and one that changed what it wants asks for a rebalance. A leader that
    // asks again when all have their assignment wants to assign anew: cooperative clients do that after they gave
    // partitions up, and any client when it sees that its topics have changed.
    const missedAnswer = member.matches(protocols) && !(group.state === 'Stable' && group.isLeader(memberId))
    if (group.state !== 'PreparingRebalance' && missedAnswer) {
      effects.answer(ticket, joined(group, member, false))
      this.#touch(group, member, effects)
    } else {
      const reason = member.matches(protocols) ? 'leader-rejoined' : 'member-changed'
      this.#update(group, member, request)
      this.#holdJoin(group, member, ticket, effects)
      this.#rebalanceOrCompleteJoin(group, { reason, memberId, clientReason: request.reason }, effects)
    }
  }

  #addMember(
    group: ClassicGroup,
    request: JoinGroupRequest,
    memberId: string,
    ticket: Ticket<JoinGroupResponse>,
    effects: Effects,
  ): void {
    const member = new Member({
      memberId,
      groupInstanceId: request.groupInstanceId,
      clientId: request.clientId,
      clientHost: request.clientHost,
      sessionTimeoutMs: request.sessionTimeoutMs,
      rebalanceTimeoutMs: rebalanceTimeoutOf(request),
      protocols: ownProtocols(request),
    })
    member.isNew = true
    if (group.isFirstRebalance) group.hasNewcomer = true
    group.add(member, request.protocolType)
    this.#touch(group, member, effects, newMemberJoinTimeoutMs)
    this.#holdJoin(group, member, ticket, effects)
    const cause = { reason: 'member-joined', memberId, clientReason: request.reason } as const
    this.#rebalanceOrCompleteJoin(group, cause, effects)
  }

  /**
   * A static member came back without its id. Its old run is fenced, and the new one gets its place. When the group is Stable
   * and would choose the same protocol again, nothing else changes: no rebalance for a restart.
   */
  #replaceStatic(
    group: ClassicGroup,
    old: Member,
    request: JoinGroupRequest,
    newMemberId: string,
    ticket: Ticket<JoinGroupResponse>,
    effects: Effects,
  ): void {
    const oldLeader = group.leaderId
    this.#answerJoin(group, old, refusedJoin('fenced-instance-id', old.memberId), effects)
    answerSync(old, { ok: false, reason: 'fenced-instance-id' }, effects)
    const member = new Member({ ...old, memberId: newMemberId })
    member.protocols = ownProtocols(request)
    member.sessionTimeoutMs = request.sessionTimeoutMs
    member.rebalanceTimeoutMs = rebalanceTimeoutOf(request)
    group.replace(old, member)
    this.#forgetSession(group, old, effects)
    this.#touch(group, member, effects)

    if (group.state === 'Stable' && group.chooseProtocol() === group.protocolName) {
      effects.records.push(group.recordWith(assignmentsOf(group), effects.now.wallMs))
      const response = joined(group, member, request.supportsSkippingAssignment)
      // A client that knows nothing of skipping would assign if it were told that it leads.
      const leader = request.supportsSkippingAssignment ? response.leader : (oldLeader ?? '')
      const members = request.supportsSkippingAssignment ? response.members : []
      effects.answer(ticket, { ...response, leader, members })
      effects.onRefused = (_reason, now) => {
        const undo = new Effects(now)
        if (group.members.get(newMemberId) === member) {
          this.#forgetSession(group, member, undo)
          group.replace(member, old)
          this.#touch(group, old, undo)
        }
        return undo
      }
      return
    }
    this.#holdJoin(group, member, ticket, effects)
    // After a join the leader may have assigned to the old id already: only another generation settles that.
    const cause = { reason: 'static-member-replaced', memberId: newMemberId, clientReason: request.reason } as const
    this.#rebalanceOrCompleteJoin(group, cause, effects)
  }

  #update(group: ClassicGroup, member: Member, request: JoinGroupRequest): void {
    if (!member.matches(request.protocols)) group.setProtocols(member, ownProtocols(request))
    member.sessionTimeoutMs = request.sessionTimeoutMs
    member.rebalanceTimeoutMs = rebalanceTimeoutOf(request)
  }

  /** Of two joins of one member the older has been given up by its client. */
  #holdJoin(group: ClassicGroup, member: Member, ticket: Ticket<JoinGroupResponse>, effects: Effects): void {
    const older = group.holdJoin(member, ticket)
    if (older !== undefined) effects.answer(older, refusedJoin('rebalance-in-progress', member.memberId))
  }

  #rebalanceOrCompleteJoin(group: ClassicGroup, cause: RebalanceCause, effects: Effects): void {
    if (group.state === 'PreparingRebalance') this.#maybeCompleteJoin(group, effects)
    else this.#prepareRebalance(group, cause, effects)
  }

  #prepareRebalance(group: ClassicGroup, cause: RebalanceCause, effects: Effects): void {
    const { groupId, generation } = group
    effects.news.push({
      message: 'group rebalance began',
      fields: {
        groupId: shown(groupId),
        generation,
        members: group.members.size,
        reason: cause.reason,
        memberId: cause.memberId === undefined ? null : shown(cause.memberId),
        clientReason: cause.clientReason ? shown(cause.clientReason) : null,
      },
    })
    if (group.state === 'CompletingRebalance') {
      for (const member of group.members.values()) {
        member.assignment = noBytes
        if (answerSync(member, { ok: false, reason: 'rebalance-in-progress' }, effects)) {
          this.#touch(group, member, effects)
        }
      }
    }
    effects.cancelTimer(syncKey(groupId))
    group.becomePreparingRebalance(effects.now.wallMs)
    if (!group.isFirstRebalance) {
      if (group.hasEveryoneJoined) this.#completeJoin(group, effects)
      else effects.setTimer(joinKey(groupId), group.rebalanceTimeoutMs, { kind: 'join', groupId })
      return
    }
    const delayMs = this.#config.initialRebalanceDelayMs
    group.hasNewcomer = false
    if (delayMs === 0) {
      this.#completeJoin(group, effects)
      return
    }
    const remainingMs = Math.max(group.rebalanceTimeoutMs - delayMs, 0)
    effects.setTimer(joinKey(groupId), delayMs, { kind: 'initial-join', groupId, delayMs, remainingMs })
  }

  /** The first rebalance isn't cut short when all have joined: that there are more to come is why it waits. */
  #maybeCompleteJoin(group: ClassicGroup, effects: Effects): void {
    if (group.state === 'PreparingRebalance' && !group.isFirstRebalance && group.hasEveryoneJoined) {
      this.#completeJoin(group, effects)
    }
  }

  #completeJoin(group: ClassicGroup, effects: Effects): void {
    const { groupId } = group
    const { wallMs } = effects.now
    effects.cancelTimer(joinKey(groupId))
    for (const member of group.members.values()) {
      if (member.joinTicket === undefined && member.groupInstanceId === null) this.#drop(group, member, effects)
    }
    if (group.members.size === 0) {
      // Becomes Empty when the record is replayed; and without it too, as there is nobody left to fail.
      effects.records.push(group.recordWithoutMembers(wallMs))
      this.#tellEnded(group, group.generation + 1, effects)
      effects.onRefused = (_reason, now) => {
        if (group.state === 'PreparingRebalance' && group.members.size === 0) group.becomeEmpty(now.wallMs)
        return {}
      }
      return
    }
    if (!group.electJoinedLeader()) {
      // Only static members that may be restarting: wait until one is back or their sessions end.
      effects.setTimer(joinKey(groupId), group.rebalanceTimeoutMs, { kind: 'join', groupId })
      return
    }
    group.becomeCompletingRebalance(wallMs)
    this.#tellEnded(group, group.generation, effects)
    for (const member of group.members.values()) {
      if (!this.#answerJoin(group, member, joined(group, member, false), effects)) continue
      member.isNew = false
      this.#touch(group, member, effects)
    }
    effects.setTimer(syncKey(groupId), group.rebalanceTimeoutMs, { kind: 'sync', groupId })
  }

  #tellEnded({ groupId, members, protocolName, leaderId }: ClassicGroup, generation: number, effects: Effects): void {
    const isEmpty = members.size === 0
    effects.news.push({
      message: 'group rebalance ended',
      fields: {
        groupId: shown(groupId),
        generation,
        members: members.size,
        protocol: isEmpty ? null : protocolName,
        leaderId: isEmpty || leaderId === null ? null : shown(leaderId),
      },
    })
  }

  sync(request: SyncGroupRequest, ticket: Ticket<SyncGroupResponse>, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(request.groupId)
    const refuse = (reason: Extract<SyncGroupResponse, { ok: false }>['reason']) =>
      effects.answer(ticket, { ok: false, reason })
    if (group === undefined) return refuse('unknown-member-id')
    const member = findMember(group, request)
    if (!(member instanceof Member)) return refuse(member)
    if (request.generationId !== group.generation) return refuse('illegal-generation')
    if (differs(request.protocolType, group.protocolType) || differs(request.protocolName, group.protocolName)) {
      return refuse('inconsistent-group-protocol')
    }
    if (group.state === 'PreparingRebalance') return refuse('rebalance-in-progress')
    this.#onSynced(group, member, effects)
    if (group.state === 'Stable') {
      this.#touch(group, member, effects)
      return effects.answer(ticket, synced(group, member.assignment))
    }
    const older = member.syncTicket
    if (older !== undefined) effects.answer(older, { ok: false, reason: 'rebalance-in-progress' })
    member.syncTicket = ticket
    if (group.isLeader(member.memberId)) this.#assign(group, request.assignments, effects)
    return effects
  }

  /** The group becomes Stable when the record is replayed, and all who wait get their assignment when it is committed. */
  #assign(group: ClassicGroup, assignments: SyncGroupRequest['assignments'], effects: Effects): void {
    const byMember = new Map(assignments.map(({ memberId, assignment }) => [memberId, ownCopy(assignment)]))
    effects.records.push(group.recordWith(byMember, effects.now.wallMs))
    for (const member of group.members.values()) {
      if (answerSync(member, synced(group, byMember.get(member.memberId) ?? noBytes), effects)) {
        this.#touch(group, member, effects)
      }
    }
    effects.onRefused = (_reason, now) => {
      // The leader will not assign this generation again by itself, so there must be another.
      const next = new Effects(now)
      if (group.state === 'CompletingRebalance')
        this.#prepareRebalance(group, { reason: 'assignment-not-stored' }, next)
      return next
    }
  }

  #onSynced(group: ClassicGroup, member: Member, effects: Effects): void {
    if (group.unsynced.delete(member.memberId) && group.unsynced.size === 0) {
      effects.cancelTimer(syncKey(group.groupId))
    }
  }

  heartbeat(request: HeartbeatRequest, ticket: Ticket<HeartbeatResponse>, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(request.groupId)
    if (group === undefined) return effects.answer(ticket, { ok: false, reason: 'unknown-member-id' })
    const member = findMember(group, request)
    if (!(member instanceof Member)) return effects.answer(ticket, { ok: false, reason: member })
    if (request.generationId !== group.generation) {
      return effects.answer(ticket, { ok: false, reason: 'illegal-generation' })
    }
    this.#touch(group, member, effects)
    const rebalances = group.state === 'PreparingRebalance'
    return effects.answer(ticket, rebalances ? { ok: false, reason: 'rebalance-in-progress' } : { ok: true })
  }

  leave(request: LeaveGroupRequest, ticket: Ticket<LeaveGroupResponse>, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(request.groupId)
    const members = request.members.map(({ memberId, groupInstanceId }) => ({
      memberId,
      groupInstanceId,
      reason:
        group === undefined
          ? ('unknown-member-id' as const)
          : this.#leaveOne(group, memberId, groupInstanceId, effects),
    }))
    if (group !== undefined) {
      const gone = members.findIndex(({ reason }) => reason === null)
      if (gone >= 0) {
        const { memberId, reason: clientReason } = request.members[gone]!
        this.#onMembersGone(group, { reason: 'member-left', memberId, clientReason }, effects)
      }
      this.forgetIfVacant(group)
    }
    return effects.answer(ticket, { ok: true, members })
  }

  #leaveOne(
    group: ClassicGroup,
    memberId: string,
    groupInstanceId: string | null,
    effects: Effects,
  ): 'unknown-member-id' | 'fenced-instance-id' | null {
    if (group.pendingMembers.delete(memberId)) {
      effects.cancelTimer(sessionKey(group.groupId, memberId))
      return null
    }
    const current = groupInstanceId === null ? undefined : group.staticMemberId(groupInstanceId)
    const named = memberId === '' && current !== undefined ? current : memberId
    const member = findMember(group, { memberId: named, groupInstanceId })
    if (!(member instanceof Member)) return member
    this.#drop(group, member, effects)
    return null
  }

  #onMembersGone(group: ClassicGroup, cause: RebalanceCause, effects: Effects): void {
    if (group.state === 'Stable' || group.state === 'CompletingRebalance') this.#prepareRebalance(group, cause, effects)
    else this.#maybeCompleteJoin(group, effects)
  }

  /** A sign of life that isn't a heartbeat. */
  renewSession(group: ClassicGroup, memberId: string, effects: Effects): void {
    const member = group.members.get(memberId)
    if (member !== undefined) this.#touch(group, member, effects)
  }

  /** The group was loaded: its members get a fresh session each and go on; one that is too large is cut by a rebalance. */
  onLoaded(group: ClassicGroup, effects: Effects): void {
    for (const member of group.members.values()) this.#touch(group, member, effects)
    if (group.members.size > this.#config.groupMaxSize && group.state === 'Stable') {
      this.#prepareRebalance(group, { reason: 'group-too-large' }, effects)
    }
  }

  onSessionTimer(groupId: string, memberId: string, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(groupId)
    if (group === undefined) return effects
    if (group.pendingMembers.delete(memberId)) {
      this.#maybeCompleteJoin(group, effects)
      this.forgetIfVacant(group)
      return effects
    }
    const member = group.members.get(memberId)
    if (member === undefined) return effects
    member.timerEndMs = undefined
    if (member.isKeptWaiting) {
      this.#touch(group, member, effects)
    } else if (member.sessionEndMs > now.monotonicMs) {
      this.#touch(group, member, effects, member.sessionEndMs - now.monotonicMs)
    } else {
      this.#drop(group, member, effects)
      this.#onMembersGone(group, { reason: 'session-expired', memberId }, effects)
    }
    return effects
  }

  onJoinTimer(groupId: string, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(groupId)
    if (group?.state === 'PreparingRebalance') this.#completeJoin(group, effects)
    return effects
  }

  /** While members keep coming the first rebalance goes on, up to the rebalance timeout in all. */
  onInitialJoinTimer(groupId: string, delayMs: number, remainingMs: number, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(groupId)
    if (group?.state !== 'PreparingRebalance') return effects
    if (!group.hasNewcomer || remainingMs === 0) {
      this.#completeJoin(group, effects)
      return effects
    }
    group.hasNewcomer = false
    const nextDelayMs = Math.min(this.#config.initialRebalanceDelayMs, remainingMs)
    const event = {
      kind: 'initial-join',
      groupId,
      delayMs: nextDelayMs,
      remainingMs: Math.max(remainingMs - delayMs, 0),
    } as const
    effects.setTimer(joinKey(groupId), nextDelayMs, event)
    return effects
  }

  /** Members that have not asked for their assignment in all this time are dropped. */
  onSyncTimer(groupId: string, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(groupId)
    if (group === undefined || group.unsynced.size === 0) return effects
    if (group.state !== 'CompletingRebalance' && group.state !== 'Stable') return effects
    const [firstId] = group.unsynced
    for (const memberId of [...group.unsynced]) {
      const member = group.members.get(memberId)
      assert(member !== undefined, 'who has not synced is a member')
      this.#drop(group, member, effects)
    }
    this.#prepareRebalance(group, { reason: 'not-synced', memberId: firstId }, effects)
    return effects
  }

  /** A group that nothing speaks for is no longer known: it was never stored, or its tombstone is. */
  forgetIfVacant(group: ClassicGroup): void {
    if (group.isVacant) this.#groups.delete(group.groupId)
  }

  /** Removes a member, and tells its requests that wait; what that means for the group is for the caller to see to. */
  #drop(group: ClassicGroup, member: Member, effects: Effects): void {
    this.#answerJoin(group, member, refusedJoin('unknown-member-id', ''), effects)
    answerSync(member, { ok: false, reason: 'unknown-member-id' }, effects)
    this.#forgetSession(group, member, effects)
    group.remove(member)
  }

  /** False: no join of its waits. */
  #answerJoin(group: ClassicGroup, member: Member, response: JoinGroupResponse, effects: Effects): boolean {
    const ticket = group.takeJoin(member)
    if (ticket === undefined) return false
    effects.answer(ticket, response)
    return true
  }

  /**
   * Moves the end of the member's session. Its timer is only touched when it would fire too late; one that fires too early
   * is set anew then, so that heartbeats (the most frequent request) cost no timer.
   */
  #touch(group: ClassicGroup, member: Member, effects: Effects, timeoutMs = member.sessionTimeoutMs): void {
    member.sessionEndMs = effects.now.monotonicMs + timeoutMs
    if (member.timerEndMs !== undefined && member.timerEndMs <= member.sessionEndMs) return
    member.timerEndMs = member.sessionEndMs
    const { groupId } = group
    const { memberId } = member
    effects.setTimer(sessionKey(groupId, memberId), timeoutMs, { kind: 'session', groupId, memberId })
  }

  #forgetSession(group: ClassicGroup, member: Member, effects: Effects): void {
    member.timerEndMs = undefined
    effects.cancelTimer(sessionKey(group.groupId, member.memberId))
  }
}

/** The member that a request says it is from, or what is wrong with that. */
export function findMember(
  group: ClassicGroup,
  { memberId, groupInstanceId }: MemberIdentity,
): Member | 'unknown-member-id' | 'fenced-instance-id' {
  if (groupInstanceId !== null) {
    const current = group.staticMemberId(groupInstanceId)
    if (current === undefined) return 'unknown-member-id'
    if (current !== memberId) return 'fenced-instance-id'
  }
  return group.members.get(memberId) ?? 'unknown-member-id'
}

function refusedJoin(reason: Extract<JoinGroupResponse, { ok: false }>['reason'], memberId: string) {
  return { ok: false, reason, memberId } as const
}

/** What a member is told of the generation; the leader also who is in it, to assign or, `skipAssignment`, to know. */
function joined(group: ClassicGroup, member: Member, skipAssignment: boolean) {
  const isLeader = group.isLeader(member.memberId)
  return {
    ok: true,
    memberId: member.memberId,
    generationId: group.generation,
    protocolType: group.protocolType ?? '',
    protocolName: group.protocolName ?? '',
    leader: group.leaderId ?? '',
    skipAssignment: skipAssignment && isLeader,
    members: isLeader ? group.describeJoined() : [],
  } as const
}

function synced(group: ClassicGroup, assignment: Buffer): SyncGroupResponse {
  const { protocolType, protocolName } = group
  return { ok: true, protocolType: protocolType ?? '', protocolName: protocolName ?? '', assignment }
}

/** False: no sync of its waits. */
function answerSync(member: Member, response: SyncGroupResponse, effects: Effects): boolean {
  if (member.syncTicket === undefined) return false
  effects.answer(member.syncTicket, response)
  member.syncTicket = undefined
  return true
}

function assignmentsOf(group: ClassicGroup): ReadonlyMap<string, Buffer> {
  return new Map([...group.members.values()].map(({ memberId, assignment }) => [memberId, assignment]))
}

function rebalanceTimeoutOf({ rebalanceTimeoutMs, sessionTimeoutMs }: JoinGroupRequest): number {
  return rebalanceTimeoutMs < 0 ? sessionTimeoutMs : rebalanceTimeoutMs
}

/** Null: the request doesn't say. */
function differs(asked: string | null, current: string | null): boolean {
  return asked !== null && asked !== current
}
