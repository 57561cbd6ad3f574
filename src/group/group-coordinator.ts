import type { LeaderEpoch } from '../base/index.ts'
import {
  CoordinatorRuntime,
  type Now,
  type Outcome,
  type PartitionStore,
  type RuntimeFailure,
  type RuntimeResult,
  type Ticket,
} from '../coordinator-runtime/index.ts'
import { nextTurn, type Platform, pause, type Time } from '../platform/index.ts'
import type { Logger, Metrics } from '../telemetry/index.ts'
import type { GroupConfig } from './config.ts'
import type { GroupTimer } from './effects.ts'
import { GroupMachine } from './group-machine.ts'
import { type DeletedTopic, TopicDeletion } from './offset-rules.ts'
import { partitionFor } from './partition-for.ts'
import { GroupProbe } from './probe.ts'
import { type GroupRecord, groupRecordCodec, isStorable } from './records.ts'
import type {
  DeleteGroupResponse,
  DescribeGroupResponse,
  HeartbeatRequest,
  HeartbeatResponse,
  JoinGroupRequest,
  JoinGroupResponse,
  LeaveGroupRequest,
  LeaveGroupResponse,
  ListedGroup,
  ListGroupsRequest,
  ListGroupsResponse,
  OffsetCommitRequest,
  OffsetCommitResponse,
  OffsetDeleteRequest,
  OffsetDeleteResponse,
  OffsetFetchRequest,
  OffsetFetchResponse,
  SyncGroupRequest,
  SyncGroupResponse,
} from './types.ts'

export const groupTopic = '__consumer_offsets'

export interface GroupCoordinatorOptions {
  readonly config: GroupConfig
  readonly store: PartitionStore
  readonly platform: Pick<Platform, 'clock' | 'timers' | 'random' | 'offload'>
  /** What sessions, rebalances and the retention of offsets go by; the platform's when left out. */
  readonly ruleTime?: Time | undefined
  readonly logger: Logger
  readonly metrics: Metrics
  /** Partitions of `__consumer_offsets`; undefined while there is no such topic. */
  readonly partitionCount: () => number | undefined
  /** `offsets.commit.timeout.ms` */
  readonly writeTimeoutMs: number
  /** A group may be another now, or will be when what was written is committed. */
  readonly onChange?: () => void
}

/** Of a client id, or an instance id in a member id, no more is kept: names on the wire have a limit. */
const maxClientIdLength = 1000
/** Groups that one turn of the event loop lists, describes, looks for offsets in, and deletes, each with an append. */
const listedPerTurn = 5000
const describedPerTurn = 500
const fetchesPerTurn = 100
const deletionsPerTurn = 50
/** Between two tries to forget a deleted topic in a partition that is being loaded. */
const deleteTopicsRetryMs = 200

/**
 * What clients ask of the group coordinator on this broker. Every method answers; none rejects. Joins and syncs wait for as long
 * as the group does, whether or not their client is still there.
 */
export class GroupCoordinator {
  readonly #options: GroupCoordinatorOptions
  readonly #runtime: CoordinatorRuntime<GroupMachine, GroupRecord, GroupTimer>

  constructor(options: GroupCoordinatorOptions) {
    this.#options = options
    const probe = new GroupProbe(options.metrics)
    const { config, store, platform, ruleTime, logger, writeTimeoutMs, onChange } = options
    this.#runtime = new CoordinatorRuntime({
      topic: groupTopic,
      store,
      clock: platform.clock,
      timers: platform.timers,
      ruleTime,
      offload: platform.offload,
      logger,
      codec: groupRecordCodec,
      createMachine: () => new GroupMachine(config),
      writeTimeoutMs,
      onChange,
      onNews: ({ message, fields }, partition) => {
        logger.info({ partition, ...fields }, message)
        if (message === 'group rebalance began') probe.begunRebalances.value++
        else probe.completedRebalances.value++
      },
    })
  }

  /** See `CoordinatorRuntime.becomeLeader`. */
  becomeLeader(partition: number, leaderEpoch: LeaderEpoch): void {
    this.#runtime.becomeLeader(partition, leaderEpoch)
  }

  /** See `CoordinatorRuntime.resign`. */
  resign(partition: number, leaderEpoch: LeaderEpoch): void {
    this.#runtime.resign(partition, leaderEpoch)
  }

  stop(): void {
    this.#runtime.stop()
  }

  /** The internal topic was deleted or emptied. The next `becomeLeader` counts, whatever its leader epoch. */
  forget(): void {
    this.#runtime.forget()
  }

  async joinGroup(request: JoinGroupRequest): Promise<JoinGroupResponse> {
    const { groupId, memberId, sessionTimeoutMs } = request
    const { minSessionTimeoutMs, maxSessionTimeoutMs } = this.#options.config
    if (groupId === '' || !isStorable(groupId)) return { ok: false, reason: 'invalid-group-id', memberId }
    if (sessionTimeoutMs < minSessionTimeoutMs || sessionTimeoutMs > maxSessionTimeoutMs) {
      return { ok: false, reason: 'invalid-session-timeout', memberId }
    }
    const { protocolType, protocols, groupInstanceId } = request
    if (!isStorable(protocolType) || !protocols.every(({ name }) => isStorable(name))) {
      return { ok: false, reason: 'inconsistent-group-protocol', memberId }
    }
    if (groupInstanceId !== null && !isStorable(groupInstanceId)) {
      return { ok: false, reason: 'unknown-server-error', memberId }
    }
    // A group with it could never be stored, and what members say of themselves stays in memory as long as they do.
    if (protocols.reduce((sum, { metadata }) => sum + metadata.length, 0) > this.#maxRecordBytes(groupId)) {
      return { ok: false, reason: 'unknown-server-error', memberId }
    }
    const clientId = request.clientId.slice(0, maxClientIdLength)
    const newMemberId = memberId === '' ? this.#newMemberId(groupInstanceId ?? clientId) : memberId
    const result = await this.#run<JoinGroupResponse>(groupId, (machine, now, ticket) =>
      machine.members.join({ ...request, clientId }, newMemberId, ticket, now),
    )
    return result.ok ? result.value : { ok: false, reason: orServerError(result.reason), memberId }
  }

  async syncGroup(request: SyncGroupRequest): Promise<SyncGroupResponse> {
    if (request.groupId === '') return { ok: false, reason: 'invalid-group-id' }
    const result = await this.#run<SyncGroupResponse>(request.groupId, (machine, now, ticket) =>
      machine.members.sync(request, ticket, now),
    )
    // The rebalance it is part of was lost with the coordinator before: it must join again, which older clients do on this.
    if (!result.ok && result.reason === 'coordinator-load-in-progress') {
      return { ok: false, reason: 'rebalance-in-progress' }
    }
    return result.ok ? result.value : { ok: false, reason: orServerError(result.reason) }
  }

  async heartbeat(request: HeartbeatRequest): Promise<HeartbeatResponse> {
    if (request.groupId === '') return { ok: false, reason: 'invalid-group-id' }
    const result = await this.#run<HeartbeatResponse>(request.groupId, (machine, now, ticket) =>
      machine.members.heartbeat(request, ticket, now),
    )
    if (result.ok) return result.value
    // As Kafka does: a client that is told of the load would ask again at once, and its session is fresh after it anyway.
    if (result.reason === 'coordinator-load-in-progress') return { ok: true }
    return { ok: false, reason: orNotAvailable(result.reason) }
  }

  async leaveGroup(request: LeaveGroupRequest): Promise<LeaveGroupResponse> {
    if (request.groupId === '') return { ok: false, reason: 'invalid-group-id' }
    const result = await this.#run<LeaveGroupResponse>(request.groupId, (machine, now, ticket) =>
      machine.members.leave(request, ticket, now),
    )
    return result.ok ? result.value : { ok: false, reason: orNotAvailable(result.reason) }
  }

  /** The group id may be empty: old clients commit so. */
  async offsetCommit(request: OffsetCommitRequest): Promise<OffsetCommitResponse> {
    if (!isStorable(request.groupId)) return { ok: false, reason: 'invalid-group-id' }
    const result = await this.#run<OffsetCommitResponse>(request.groupId, (machine, now, ticket) =>
      machine.offsets.commit(request, ticket, now),
    )
    return result.ok ? result.value : { ok: false, reason: orServerError(result.reason) }
  }

  /** One answer for each request, in their order. */
  offsetFetch(requests: readonly OffsetFetchRequest[]): Promise<readonly OffsetFetchResponse[]> {
    return this.#inTurns(requests, fetchesPerTurn, async (request): Promise<OffsetFetchResponse> => {
      const result = await this.#run<OffsetFetchResponse>(request.groupId, (machine, now, ticket) =>
        machine.offsets.fetch(request, ticket, now),
      )
      if (result.ok) return result.value
      return { ok: false, groupId: request.groupId, reason: orNotAvailable(result.reason) }
    })
  }

  /** One answer for each group, in their order. */
  describeGroups(groupIds: readonly string[]): Promise<readonly DescribeGroupResponse[]> {
    return this.#inTurns(groupIds, describedPerTurn, async (groupId): Promise<DescribeGroupResponse> => {
      const result = await this.#run<DescribeGroupResponse>(groupId, (machine, now, ticket) =>
        machine.describe(groupId, ticket, now),
      )
      return result.ok ? result.value : { ok: false, groupId, reason: orNotAvailable(result.reason) }
    })
  }

  /** The groups of all partitions that this broker coordinates; refused while one of them is being loaded. */
  async listGroups(request: ListGroupsRequest): Promise<ListGroupsResponse> {
    const groups: ListedGroup[] = []
    let listedInTurn = 0
    for (const partition of this.#runtime.partitions) {
      const list = await this.#runtime.run<readonly ListedGroup[]>(partition, null, (machine, now, ticket) =>
        machine.list(request, ticket, now),
      )
      if (!list.ok) {
        if (list.reason === 'not-coordinator') continue
        const loads = list.reason === 'coordinator-load-in-progress'
        return { ok: false, reason: loads ? list.reason : 'coordinator-not-available' }
      }
      for (const group of list.value) groups.push(group)
      listedInTurn += list.value.length
      if (listedInTurn < listedPerTurn) continue
      listedInTurn = 0
      await nextTurn(this.#options.platform.timers)
    }
    return { ok: true, groups }
  }

  /** One answer for each group, in their order. */
  deleteGroups(groupIds: readonly string[]): Promise<readonly DeleteGroupResponse[]> {
    return this.#inTurns(groupIds, deletionsPerTurn, async (groupId) => ({
      groupId,
      reason: await this.#deleteGroup(groupId),
    }))
  }

  async #deleteGroup(groupId: string): Promise<DeleteGroupResponse['reason']> {
    for (let turn = 0; ; turn++) {
      const result = await this.#run<DeleteGroupResponse['reason'] | 'more'>(groupId, (machine, now, ticket) =>
        machine.offsets.deleteGroup(groupId, ticket, now),
      )
      if (!result.ok) return orServerError(result.reason)
      // A group that only had offsets is gone with the last of them.
      if (result.value === 'group-id-not-found' && turn > 0) return null
      if (result.value !== 'more') return result.value
    }
  }

  async offsetDelete(request: OffsetDeleteRequest): Promise<OffsetDeleteResponse> {
    const result = await this.#run<OffsetDeleteResponse>(request.groupId, (machine, now, ticket) =>
      machine.offsets.deleteOffsets(request, ticket, now),
    )
    return result.ok ? result.value : { ok: false, reason: orServerError(result.reason) }
  }

  /** Topics are gone: what was committed for them is forgotten. For each broker to do with the groups it coordinates. */
  async onTopicsDeleted(topics: readonly DeletedTopic[]): Promise<void> {
    if (topics.some(({ topic }) => topic === groupTopic)) this.forget()
    await Promise.all(this.#runtime.partitions.map((partition) => this.#deleteTopics(partition, topics)))
  }

  async #deleteTopics(partition: number, topics: readonly DeletedTopic[]): Promise<void> {
    const { timers } = this.#options.platform
    const deletion = new TopicDeletion(topics)
    for (;;) {
      const result = await this.#runtime.run<'done' | 'more'>(partition, null, (machine, now, ticket) =>
        machine.offsets.deleteTopics(deletion, ticket, now),
      )
      if (result.ok && result.value === 'done') return
      if (result.ok) await nextTurn(this.#options.platform.timers)
      else if (result.reason === 'not-coordinator') return
      else await pause(timers, deleteTopicsRetryMs)
    }
  }

  /** One request may name every group that there is: the event loop turns between parts of the work. */
  async #inTurns<T, R>(asked: readonly T[], perTurn: number, answer: (each: T) => Promise<R>): Promise<R[]> {
    const answers: Promise<R>[] = []
    for (const each of asked) {
      if (answers.length > 0 && answers.length % perTurn === 0) await nextTurn(this.#options.platform.timers)
      answers.push(answer(each))
    }
    return await Promise.all(answers)
  }

  #run<T>(
    groupId: string,
    decide: (machine: GroupMachine, now: Now, ticket: Ticket<T>) => Outcome<GroupRecord, GroupTimer>,
  ): Promise<RuntimeResult<T>> {
    const partitionCount = this.#options.partitionCount()
    if (partitionCount === undefined) return Promise.resolve({ ok: false, reason: 'not-coordinator' })
    return this.#runtime.run(partitionFor(groupId, partitionCount), groupId, decide)
  }

  #maxRecordBytes(groupId: string): number {
    const { store, partitionCount } = this.#options
    const count = partitionCount()
    if (count === undefined) return Number.POSITIVE_INFINITY
    return store.maxBatchBytes({ topic: groupTopic, partition: partitionFor(groupId, count) })
  }

  /** `name-` and a random UUID in its usual text form. */
  #newMemberId(name: string): string {
    const bytes = this.#options.platform.random.bytes(16)
    bytes[6] = (bytes[6]! & 0x0f) | 0x40
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    const hex = bytes.toString('hex')
    const uuid = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
    return `${name.slice(0, maxClientIdLength)}-${uuid}`
  }
}

/** What is larger than its topic takes: of an offset too, since Kafka no longer answers INVALID_COMMIT_OFFSET_SIZE. */
function orServerError(reason: RuntimeFailure) {
  return reason === 'record-too-large' ? 'unknown-server-error' : reason
}

/** For requests that write nothing of their own: their answer waited for a record of the group, which cannot be too large. */
function orNotAvailable(reason: RuntimeFailure) {
  return reason === 'record-too-large' ? 'coordinator-not-available' : reason
}
