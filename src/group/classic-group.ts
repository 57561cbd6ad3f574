import { assert } from '../base/index.ts'
import type { Ticket } from '../coordinator-runtime/index.ts'
import { ConsumerProtocolSubscription, decodeMessage, MalformedRequestError, Reader } from '../protocol/index.ts'
import { Member } from './member.ts'
import { GroupOffsets } from './offsets.ts'
import type { GroupMetadata, GroupMetadataRecord } from './records.ts'
import type { GroupProtocol, GroupState, JoinedMember, JoinGroupResponse } from './types.ts'

type LiveState = Exclude<GroupState, 'Dead'>

/** What a state may follow on. */
const previousStates: Readonly<Record<LiveState, readonly LiveState[]>> = {
  Empty: ['PreparingRebalance', 'Empty'],
  PreparingRebalance: ['Empty', 'CompletingRebalance', 'Stable'],
  CompletingRebalance: ['PreparingRebalance'],
  // A group is Stable again after a static member came back under a new id.
  Stable: ['CompletingRebalance', 'Stable'],
}

/**
 * The state of one group: its members, its generation and its offsets. Its methods keep these consistent with each other; who
 * may do what and when is decided by `ClassicGroups`.
 *
 *     Empty                no members; a group that only commits offsets stays here
 *     PreparingRebalance   members join; ends when all have, or at the rebalance timeout
 *     CompletingRebalance  the members have a generation and wait for its leader's assignment
 *     Stable               every member has, or can ask for, its assignment
 *     Dead                 not in memory: what an unknown group is said to be
 */
export class ClassicGroup {
  readonly groupId: string
  readonly offsets = new GroupOffsets()
  readonly members = new Map<string, Member>()
  /** Ids given out with 'member-id-required' that have not come back yet. */
  readonly pendingMembers = new Set<string>()
  /** Members of this generation that have not asked for their assignment. */
  readonly unsynced = new Set<string>()
  /** Member ids by group instance id. */
  readonly #staticMembers = new Map<string, string>()
  /** How many members speak a protocol, by its name. */
  readonly #speakers = new Map<string, number>()
  #joinedCount = 0
  #state: LiveState = 'Empty'
  /** The state before it began to rebalance. */
  #previousState: LiveState = 'Empty'
  /** 0 or more, one more for each rebalance that ends; never goes back while the group is in memory. */
  #generation = 0
  /** Null for a group that only commits offsets. */
  #protocolType: string | null = null
  #protocolName: string | null = null
  #leaderId: string | null = null
  /** Milliseconds since 1970 of the last change of state; -1 when an old record doesn't tell. */
  #stateSinceMs = -1
  /** The log holds a generation of it, which a tombstone must follow when the group is forgotten. */
  #isStored = false
  /** Someone joined since the last time the initial rebalance was put off. */
  hasNewcomer: boolean = false

  constructor(groupId: string) {
    this.groupId = groupId
  }

  get state(): LiveState {
    return this.#state
  }

  get generation(): number {
    return this.#generation
  }

  get protocolType(): string | null {
    return this.#protocolType
  }

  get protocolName(): string | null {
    return this.#protocolName
  }

  get leaderId(): string | null {
    return this.#leaderId
  }

  get stateSinceMs(): number {
    return this.#stateSinceMs
  }

  /** In the first rebalance after it was Empty, which waits for more members on purpose. */
  get isFirstRebalance(): boolean {
    return this.#state === 'PreparingRebalance' && this.#previousState === 'Empty'
  }

  /** Nothing speaks for keeping it, in memory or in the log. */
  get isVacant(): boolean {
    return this.#state === 'Empty' && !this.#isStored && this.offsets.size === 0 && this.pendingMembers.size === 0
  }

  /** Members whose JoinGroup waits. */
  get joinedCount(): number {
    return this.#joinedCount
  }

  get hasEveryoneJoined(): boolean {
    return this.#joinedCount === this.members.size && this.pendingMembers.size === 0
  }

  /** The longest that any member takes to rejoin. */
  get rebalanceTimeoutMs(): number {
    let longest = 0
    for (const member of this.members.values()) longest = Math.max(longest, member.rebalanceTimeoutMs)
    return longest
  }

  isLeader(memberId: string): boolean {
    return this.#leaderId === memberId
  }

  staticMemberId(groupInstanceId: string): string | undefined {
    return this.#staticMembers.get(groupInstanceId)
  }

  /** Whether a member that speaks `protocols` fits in: each group has one type, and one protocol that all speak. */
  accepts(protocolType: string, protocols: readonly GroupProtocol[]): boolean {
    if (this.members.size === 0) return protocolType !== '' && protocols.length > 0
    return protocolType === this.#protocolType && protocols.some(({ name }) => this.#isSpokenByAll(name))
  }

  /** The first member of an empty group says what kind of group it is. */
  add(member: Member, protocolType: string): void {
    if (this.members.size === 0) this.#protocolType = protocolType
    this.#leaderId ??= member.memberId
    this.members.set(member.memberId, member)
    this.pendingMembers.delete(member.memberId)
    this.#countSpeaker(member, 1)
    if (member.groupInstanceId !== null) this.#staticMembers.set(member.groupInstanceId, member.memberId)
  }

  /** The member's JoinGroup waits from here on; gives back an older one of its that waited. */
  holdJoin(member: Member, ticket: Ticket<JoinGroupResponse>): Ticket<JoinGroupResponse> | undefined {
    const older = this.takeJoin(member)
    member.joinTicket = ticket
    this.#joinedCount++
    return older
  }

  /** The member's JoinGroup waits no longer: it must be answered. */
  takeJoin(member: Member): Ticket<JoinGroupResponse> | undefined {
    const ticket = member.joinTicket
    if (ticket !== undefined) this.#joinedCount--
    member.joinTicket = undefined
    return ticket
  }

  setProtocols(member: Member, protocols: readonly GroupProtocol[]): void {
    this.#countSpeaker(member, -1)
    member.protocols = protocols
    this.#countSpeaker(member, 1)
  }

  /** Whoever waits for the member must have been answered. */
  remove(member: Member): void {
    assert(member.joinTicket === undefined && member.syncTicket === undefined, 'a member that waits is not removed')
    const { memberId, groupInstanceId } = member
    this.members.delete(memberId)
    this.unsynced.delete(memberId)
    this.#countSpeaker(member, -1)
    if (groupInstanceId !== null && this.#staticMembers.get(groupInstanceId) === memberId) {
      this.#staticMembers.delete(groupInstanceId)
    }
    if (this.isLeader(memberId)) this.#leaderId = this.members.keys().next().value ?? null
  }

  /** Puts a static member's new run in the place of the old one: leadership, assignment and its place in the order stay. */
  replace(old: Member, member: Member): void {
    const wasLeader = this.isLeader(old.memberId)
    const order = [...this.members.values()]
    const later = order.slice(order.indexOf(old) + 1)
    const protocolType = this.#protocolType ?? ''
    this.remove(old)
    this.add(member, protocolType)
    member.assignment = old.assignment
    if (wasLeader) this.#leaderId = member.memberId
    for (const each of later) this.#moveToEnd(each)
  }

  #moveToEnd(member: Member): void {
    this.members.delete(member.memberId)
    this.members.set(member.memberId, member)
  }

  /** The leader stays when it has joined; otherwise the first member that has takes over. False: no member has joined. */
  electJoinedLeader(): boolean {
    if (this.#leaderId !== null && this.members.get(this.#leaderId)?.joinTicket !== undefined) return true
    for (const member of this.members.values()) {
      if (member.joinTicket === undefined) continue
      this.#leaderId = member.memberId
      return true
    }
    return false
  }

  /**
   * What the next generation will speak: of the protocols that all members speak the one that most of them name first.
   * Of several with as many votes, the one that its leader likes best.
   */
  chooseProtocol(): string {
    const votes = new Map<string, number>()
    for (const member of this.members.values()) {
      const vote = member.protocols.find(({ name }) => this.#isSpokenByAll(name))
      assert(vote !== undefined, 'the members of a group have a protocol in common')
      votes.set(vote.name, (votes.get(vote.name) ?? 0) + 1)
    }
    const leader = this.#leaderId === null ? undefined : this.members.get(this.#leaderId)
    assert(leader !== undefined, 'a group with members has a leader')
    let chosen: string | undefined
    for (const { name } of leader.protocols) {
      const count = votes.get(name)
      if (count !== undefined && (chosen === undefined || count > votes.get(chosen)!)) chosen = name
    }
    assert(chosen !== undefined, 'the leader speaks what all members speak')
    return chosen
  }

  becomePreparingRebalance(nowMs: number): void {
    this.#previousState = this.#state
    this.#become('PreparingRebalance', nowMs)
    this.unsynced.clear()
  }

  /** All who take part have joined: a new generation begins. */
  becomeCompletingRebalance(nowMs: number): void {
    this.#become('CompletingRebalance', nowMs)
    this.#generation++
    this.#protocolName = this.chooseProtocol()
    this.unsynced.clear()
    for (const member of this.members.values()) if (member.joinTicket !== undefined) this.unsynced.add(member.memberId)
  }

  /** The last member went: a generation of nobody begins. */
  becomeEmpty(nowMs: number): void {
    assert(this.members.size === 0, 'an empty group has no members')
    this.#become('Empty', nowMs)
    this.#generation++
    this.#protocolName = null
    this.#leaderId = null
    this.unsynced.clear()
  }

  /** The generation as it will be once the leader's `assignments` (by member id) are stored. */
  recordWith(assignments: ReadonlyMap<string, Buffer>, nowMs: number): GroupMetadataRecord {
    const protocolName = this.#protocolName
    return this.#record({
      generation: this.#generation,
      protocol: protocolName,
      leader: this.#leaderId,
      currentStateTimestamp: nowMs,
      members: [...this.members.values()].map((member) => ({
        memberId: member.memberId,
        groupInstanceId: member.groupInstanceId,
        clientId: member.clientId,
        clientHost: member.clientHost,
        rebalanceTimeout: member.rebalanceTimeoutMs,
        sessionTimeout: member.sessionTimeoutMs,
        subscription: member.metadataFor(protocolName),
        assignment: assignments.get(member.memberId) ?? noBytes,
      })),
    })
  }

  /** The generation of nobody that `becomeEmpty` begins. */
  recordWithoutMembers(nowMs: number): GroupMetadataRecord {
    const generation = this.#generation + 1
    return this.#record({ generation, protocol: null, leader: null, currentStateTimestamp: nowMs, members: [] })
  }

  #record(value: Omit<GroupMetadata, 'protocolType'>): GroupMetadataRecord {
    return { kind: 'group', groupId: this.groupId, value: { protocolType: this.#protocolType ?? '', ...value } }
  }

  /** Replays a generation. A group that decided it has all of it already but the assignments and the state. */
  replay(value: GroupMetadata): void {
    const { generation, protocolType, protocol, leader, members } = value
    this.#generation = generation
    const memberIds = new Set(members.map(({ memberId }) => memberId))
    for (const member of this.members.values()) if (!memberIds.has(member.memberId)) this.remove(member)
    for (const record of members) {
      const stored = Member.fromRecord(record, protocol)
      const member = this.members.get(record.memberId) ?? stored
      if (member === stored) this.add(member, protocolType)
      else this.#moveToEnd(member) // all in the order of the record
      member.sessionTimeoutMs = stored.sessionTimeoutMs
      member.rebalanceTimeoutMs = stored.rebalanceTimeoutMs
      // A member that is here knows more protocols than the record does; one of an older record knows another.
      if (!member.says(stored.protocols[0]!)) this.setProtocols(member, stored.protocols)
      member.assignment = record.assignment
    }
    this.#protocolType = protocolType === '' ? null : protocolType
    this.#protocolName = protocol
    if (leader !== null && this.members.has(leader)) this.#leaderId = leader
    if (members.length === 0) this.#leaderId = null
    this.#state = members.length > 0 ? 'Stable' : 'Empty'
    this.#stateSinceMs = value.currentStateTimestamp
    this.#isStored = true
    if (members.length === 0) this.unsynced.clear()
  }

  /** Replays the tombstone of a group: what is left is a group that only commits offsets, if that. */
  replayRemoval(): void {
    for (const member of this.members.values()) this.remove(member)
    this.#state = 'Empty'
    this.#protocolType = null
    this.#protocolName = null
    this.#leaderId = null
    this.#isStored = false
  }

  /** For the leader's answer: everyone, with what they said in the chosen protocol. */
  describeJoined(): readonly JoinedMember[] {
    return [...this.members.values()].map((member) => ({
      memberId: member.memberId,
      groupInstanceId: member.groupInstanceId,
      metadata: member.metadataFor(this.#protocolName),
    }))
  }

  /**
   * Topics that the members of a group of consumers read; undefined when the group is of another kind, has chosen no
   * protocol yet, or has a member whose subscription isn't understood.
   */
  subscribedTopics(): ReadonlySet<string> | undefined {
    if (this.#protocolType !== 'consumer' || this.#protocolName === null) return undefined
    const topics = new Set<string>()
    for (const member of this.members.values()) {
      const subscribed = topicsOf(member.metadataFor(this.#protocolName))
      if (subscribed === undefined) return undefined
      for (const topic of subscribed) topics.add(topic)
    }
    return topics
  }

  #become(state: LiveState, nowMs: number): void {
    assert(previousStates[state].includes(this.#state), `a group that is ${this.#state} cannot become ${state}`)
    this.#state = state
    this.#stateSinceMs = nowMs
  }

  #isSpokenByAll(protocolName: string): boolean {
    return this.#speakers.get(protocolName) === this.members.size
  }

  #countSpeaker(member: Member, change: 1 | -1): void {
    for (const { name } of member.protocols) {
      const count = (this.#speakers.get(name) ?? 0) + change
      if (count === 0) this.#speakers.delete(name)
      else this.#speakers.set(name, count)
    }
  }
}

const noBytes = Buffer.alloc(0)

/** The version in front is not checked: later ones only add fields at the end. */
function topicsOf(subscription: Buffer): readonly string[] | undefined {
  try {
    const reader = new Reader(subscription)
    if (reader.int16() < 0) return undefined
    return decodeMessage(ConsumerProtocolSubscription, 0, reader).topics
  } catch (error) {
    if (error instanceof MalformedRequestError) return undefined
    throw error
  }
}
