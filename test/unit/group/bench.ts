import { zeroUuid } from '../../../src/base/index.ts'
import type { Now, StoreFailure, Ticket } from '../../../src/coordinator-runtime/index.ts'
import type { GroupConfig } from '../../../src/group/config.ts'
import type { Effects, GroupTimer } from '../../../src/group/effects.ts'
import { GroupMachine } from '../../../src/group/group-machine.ts'
import type {
  DeleteGroupResponse,
  DescribeGroupResponse,
  HeartbeatResponse,
  JoinGroupRequest,
  JoinGroupResponse,
  LeaveGroupResponse,
  ListedGroup,
  ListGroupsRequest,
  MemberIdentity,
  OffsetCommitRequest,
  OffsetCommitResponse,
  OffsetDeleteResponse,
  OffsetFetchResponse,
  SyncGroupRequest,
  SyncGroupResponse,
} from '../../../src/group/index.ts'
import { type GroupRecord, groupRecordCodec } from '../../../src/group/records.ts'

export const defaultConfig: GroupConfig = {
  minSessionTimeoutMs: 6000,
  maxSessionTimeoutMs: 1_800_000,
  initialRebalanceDelayMs: 0,
  groupMaxSize: 2 ** 31 - 1,
  offsetMetadataMaxBytes: 4096,
  offsetsRetentionMs: 7 * 24 * 3600_000,
  offsetsRetentionCheckIntervalMs: 600_000,
}

export const sessionMs = 10_000
export const rebalanceMs = 60_000

/** What a request was answered; undefined while it waits. */
export interface Reply<T> {
  readonly ticket: number
  readonly answer: T | undefined
}

/**
 * One machine with time, timers and a log under a test's hand; appends are committed at once. Records go through their bytes, so
 * that what a test sees is what a reload would.
 */
export class Bench {
  readonly config: GroupConfig
  machine: GroupMachine
  readonly log: { readonly key: Buffer; readonly value: Buffer | null }[] = []
  /** Refuse appends with this. */
  refusal: StoreFailure | undefined
  now: Now = { wallMs: 1_700_000_000_000, monotonicMs: 0 }
  readonly #answers = new Map<number, unknown>()
  readonly #timers = new Map<string, { readonly atMs: number; readonly event: GroupTimer }>()
  #lastTicket = 0
  #lastMember = 0

  constructor(config: Partial<GroupConfig> = {}) {
    this.config = { ...defaultConfig, ...config }
    this.machine = new GroupMachine(this.config)
    this.apply(this.machine.onLoaded(this.now))
  }

  ask<T>(decide: (machine: GroupMachine, now: Now, ticket: Ticket<T>) => Effects): Reply<T> {
    const ticket = ++this.#lastTicket
    this.apply(decide(this.machine, this.now, ticket))
    const answers = this.#answers
    return {
      ticket,
      get answer() {
        return answers.get(ticket) as T | undefined
      },
    }
  }

  apply(effects: Effects): void {
    for (const { key, delayMs, event } of effects.timers as readonly {
      key: string
      delayMs?: number
      event?: GroupTimer
    }[]) {
      if (delayMs === undefined || event === undefined) this.#timers.delete(key)
      else this.#timers.set(key, { atMs: this.now.monotonicMs + delayMs, event })
    }
    if (effects.records.length > 0 && this.refusal !== undefined) {
      for (const { ticket } of effects.answers) this.#answer(ticket, { ok: false, reason: this.refusal })
      const undone = effects.onRefused?.(this.refusal, this.now)
      if (undone !== undefined) this.apply({ records: [], answers: [], timers: [], ...undone } as unknown as Effects)
      return
    }
    for (const record of effects.records) {
      const { key, value } = groupRecordCodec.encode(record)
      this.log.push({ key, value })
      this.machine.replay(record)
    }
    for (const { ticket, response } of effects.answers) this.#answer(ticket, response)
  }

  #answer(ticket: number, response: unknown): void {
    if (this.#answers.has(ticket)) throw new Error(`Ticket ${ticket} is answered twice`)
    this.#answers.set(ticket, response)
  }

  get timerCount(): number {
    return this.#timers.size
  }

  advance(byMs: number): void {
    const endMs = this.now.monotonicMs + byMs
    for (;;) {
      let next: [string, { readonly atMs: number; readonly event: GroupTimer }] | undefined
      for (const timer of this.#timers) {
        if (timer[1].atMs <= endMs && (next === undefined || timer[1].atMs < next[1].atMs)) next = timer
      }
      if (next === undefined) break
      this.#moveTo(Math.max(next[1].atMs, this.now.monotonicMs))
      this.#timers.delete(next[0])
      this.apply(this.machine.onTimer(next[1].event, this.now))
    }
    this.#moveTo(endMs)
  }

  #moveTo(monotonicMs: number): void {
    this.now = { wallMs: this.now.wallMs + monotonicMs - this.now.monotonicMs, monotonicMs }
  }

  records(): GroupRecord[] {
    return this.log.map(({ key, value }) => groupRecordCodec.decode(key, value)!)
  }

  /** Another broker takes over: all that isn't in the log is lost, what waits is not answered from here. */
  reload(): void {
    this.machine = new GroupMachine(this.config)
    this.#timers.clear()
    for (const record of this.records()) this.machine.replay(record)
    this.apply(this.machine.onLoaded(this.now))
  }

  // Requests of group 'g'.

  join(request: Partial<JoinGroupRequest> = {}): Reply<JoinGroupResponse> {
    const newMemberId = `member-${++this.#lastMember}`
    const whole: JoinGroupRequest = {
      groupId: 'g',
      memberId: '',
      groupInstanceId: null,
      clientId: 'client',
      clientHost: '/127.0.0.1',
      sessionTimeoutMs: sessionMs,
      rebalanceTimeoutMs: rebalanceMs,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: Buffer.from('metadata') }],
      requireKnownMemberId: false,
      supportsSkippingAssignment: false,
      ...request,
    }
    return this.ask((machine, now, ticket) => machine.members.join(whole, newMemberId, ticket, now))
  }

  sync(
    member: string | MemberIdentity,
    generationId: number,
    request: Partial<SyncGroupRequest> = {},
  ): Reply<SyncGroupResponse> {
    const whole: SyncGroupRequest = {
      groupId: 'g',
      ...identity(member),
      generationId,
      protocolType: null,
      protocolName: null,
      assignments: [],
      ...request,
    }
    return this.ask((machine, now, ticket) => machine.members.sync(whole, ticket, now))
  }

  heartbeat(member: string | MemberIdentity, generationId: number, groupId = 'g'): HeartbeatResponse | undefined {
    const request = { groupId, ...identity(member), generationId }
    return this.ask<HeartbeatResponse>((machine, now, ticket) => machine.members.heartbeat(request, ticket, now)).answer
  }

  leave(...members: (string | MemberIdentity)[]): LeaveGroupResponse | undefined {
    const request = { groupId: 'g', members: members.map(identity) }
    return this.ask<LeaveGroupResponse>((machine, now, ticket) => machine.members.leave(request, ticket, now)).answer
  }

  commit(
    request: Partial<OffsetCommitRequest> & { readonly offset?: number; readonly metadata?: string } = {},
  ): OffsetCommitResponse | undefined {
    const { offset = 5, metadata = '', ...rest } = request
    const whole: OffsetCommitRequest = {
      groupId: 'g',
      memberId: '',
      groupInstanceId: null,
      generationId: -1,
      retentionTimeMs: -1,
      reportsUnknownGroup: true,
      topics: [{ topic: 't', topicId: zeroUuid, partitions: [{ partition: 0, offset, leaderEpoch: 3, metadata }] }],
      ...rest,
    }
    return this.ask<OffsetCommitResponse>((machine, now, ticket) => machine.offsets.commit(whole, ticket, now)).answer
  }

  fetchOffsets(
    topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[] | null = null,
    groupId = 'g',
  ): OffsetFetchResponse | undefined {
    return this.ask<OffsetFetchResponse>((machine, now, ticket) =>
      machine.offsets.fetch({ groupId, topics }, ticket, now),
    ).answer
  }

  /** The committed offset of t-0, -1 for none. */
  offset(groupId = 'g'): number {
    const answer = this.fetchOffsets([{ topic: 't', partitions: [0] }], groupId)
    if (answer?.ok !== true) throw new Error('OffsetFetch was refused')
    return answer.topics[0]!.partitions[0]!.offset
  }

  deleteOffsets(topic: string, partition: number): OffsetDeleteResponse | undefined {
    const request = { groupId: 'g', topics: [{ topic, partitions: [partition] }] }
    return this.ask<OffsetDeleteResponse>((machine, now, ticket) => machine.offsets.deleteOffsets(request, ticket, now))
      .answer
  }

  deleteGroup(groupId = 'g'): DeleteGroupResponse['reason'] | 'more' | undefined {
    return this.ask<DeleteGroupResponse['reason'] | 'more'>((machine, now, ticket) =>
      machine.offsets.deleteGroup(groupId, ticket, now),
    ).answer
  }

  describe(groupId = 'g'): DescribeGroupResponse {
    return this.ask<DescribeGroupResponse>((machine, now, ticket) => machine.describe(groupId, ticket, now)).answer!
  }

  state(groupId = 'g'): string {
    const answer = this.describe(groupId)
    return answer.ok ? answer.state : 'Dead'
  }

  list(request: Partial<ListGroupsRequest> = {}): readonly ListedGroup[] {
    const whole = { states: [], types: [], ...request }
    return this.ask<readonly ListedGroup[]>((machine, now, ticket) => machine.list(whole, ticket, now)).answer!
  }

  // Groups in a known state.

  /** A Stable group of so many members, the first of them its leader, each assigned its own id as bytes. */
  stable(
    count = 1,
    request: Partial<JoinGroupRequest> | ((i: number) => Partial<JoinGroupRequest>) = {},
  ): { readonly ids: string[]; readonly generation: number } {
    const of = (i: number) => (typeof request === 'function' ? request(i) : request)
    const ids: string[] = []
    let generation = 0
    for (let i = 0; i < count; i++) {
      const reply = this.join(of(i))
      // Those who are in must join again for the newcomer to get in.
      for (const [j, memberId] of ids.entries()) this.join({ ...of(j), memberId })
      const { memberId, generationId } = good(reply.answer)
      ids.push(memberId)
      generation = generationId
    }
    this.syncAll(ids, generation)
    return { ids, generation }
  }

  /** All members ask for their assignment, the leader, who is the first, last. */
  syncAll(ids: readonly string[], generation: number): void {
    const [leader, ...others] = ids
    const replies = others.map((memberId) => this.sync(memberId, generation))
    const assignments = ids.map((memberId) => ({ memberId, assignment: Buffer.from(memberId) }))
    replies.push(this.sync(leader!, generation, { assignments }))
    for (const [i, { answer }] of replies.entries()) {
      const memberId = others[i] ?? leader!
      if (good(answer).assignment.toString() !== memberId) throw new Error(`${memberId} got another's assignment`)
    }
  }
}

function identity(member: string | MemberIdentity): MemberIdentity {
  return typeof member === 'string' ? { memberId: member, groupInstanceId: null } : member
}

/** An answer that must be there and good. */
export function good<T extends { readonly ok: boolean }>(answer: T | undefined): Extract<T, { ok: true }> {
  if (answer?.ok !== true) throw new Error(`Expected a good answer, got ${JSON.stringify(answer)}`)
  return answer as Extract<T, { ok: true }>
}
