import {
  apis,
  ConsumerProtocolAssignment,
  ConsumerProtocolSubscription,
  decodeVersioned,
  encodeVersioned,
  type JoinGroupResponse,
} from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { expectNoError } from './errors.ts'
import { assignedPartitions } from './groups.ts'
import { groupByTopic, type Place } from './offsets.ts'
import { assignRanges } from './range-assignor.ts'

const protocolName = 'range'
const sessionTimeoutMs = 10_000
/** How long the others may take to come back when somebody joins or leaves. */
const rebalanceTimeoutMs = 60_000

const unknownTopicOrPartition = 3
const illegalGeneration = 22
/** For a commit in a group that is gone with its broker's data. */
const groupIdNotFound = 69
/** Kafka's codes that say: the group has moved on, join again. */
const rejoinCodes: ReadonlySet<number> = new Set([illegalGeneration, 25, 27, groupIdNotFound])
const unknownMemberId = 25
const memberIdRequired = 79

/**
 * A member of a classic consumer group, which shares partitions by Kafka's range assignor. `join` until it has
 * partitions; `heartbeat` at least every three seconds; join again when that, or `commit`, says so; `leave` at the end.
 */
export class GroupMember {
  readonly #cluster: Cluster
  readonly #groupId: string
  readonly #topics: readonly string[]
  #memberId = ''
  #generationId = -1

  constructor(cluster: Cluster, groupId: string, topics: readonly string[]) {
    this.#cluster = cluster
    this.#groupId = groupId
    this.#topics = topics
  }

  /** The partitions that are this member's now; waits for the other members. Throws `RequestRefusedError`. */
  async join(): Promise<readonly Place[]> {
    for (;;) {
      const joined = await this.#cluster.retrying(() => this.#join())
      if (joined === 'again') continue
      const assignment = await this.#cluster.retrying(() => this.#sync(joined))
      if (assignment !== 'again') return assignedPartitions(assignment)
    }
  }

  async heartbeat(): Promise<'ok' | 'rejoin'> {
    return await this.#cluster.retrying(async () => {
      const coordinator = await this.#cluster.coordinatorOf(this.#groupId)
      const { errorCode } = await coordinator.call(apis.Heartbeat, this.#identity())
      return this.#outcome('Heartbeat', errorCode)
    })
  }

  /** Each offset is the next one to be read. 'gone': some partitions aren't there (now); whoever reads them hears of it too. */
  async commit(offsets: readonly (Place & { readonly nextOffset: number })[]): Promise<'ok' | 'gone' | 'rejoin'> {
    if (offsets.length === 0) return 'ok'
    const { groupId, generationId, memberId } = this.#identity()
    const topics = groupByTopic(offsets).map(([name, partitions]) => ({
      name,
      partitions: partitions.map((partitionIndex) => ({
        partitionIndex,
        committedOffset: offsets.find((each) => each.topic === name && each.partition === partitionIndex)!.nextOffset,
        committedMetadata: null,
      })),
    }))
    const request = { groupId, generationIdOrMemberEpoch: generationId, memberId, topics }
    return await this.#cluster.retrying(async () => {
      const coordinator = await this.#cluster.coordinatorOf(groupId)
      const answer = await coordinator.call(apis.OffsetCommit, request)
      const codes = answer.topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode))
      const outcome = this.#outcome('Commit', codes.find((code) => code !== 0 && code !== unknownTopicOrPartition) ?? 0)
      return outcome === 'ok' && codes.includes(unknownTopicOrPartition) ? 'gone' : outcome
    })
  }

  /** The others get its partitions at once, not after the session's timeout. */
  async leave(): Promise<void> {
    const memberId = this.#memberId
    if (memberId === '') return
    this.#memberId = ''
    const coordinator = await this.#cluster.coordinatorOf(this.#groupId)
    await coordinator.call(apis.LeaveGroup, { groupId: this.#groupId, memberId })
  }

  async #join(): Promise<JoinGroupResponse | 'again'> {
    const coordinator = await this.#cluster.coordinatorOf(this.#groupId)
    const metadata = encodeVersioned(ConsumerProtocolSubscription, 1, { topics: this.#topics })
    const request = {
      groupId: this.#groupId,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      memberId: this.#memberId,
      protocolType: 'consumer',
      protocols: [{ name: protocolName, metadata }],
    }
    const timeoutMs = rebalanceTimeoutMs + this.#cluster.timeoutMs
    const answer = await coordinator.call(apis.JoinGroup, request, { timeoutMs })
    if (answer.errorCode === memberIdRequired) {
      this.#memberId = answer.memberId
      return 'again'
    }
    if (this.#outcome('Joining', answer.errorCode) === 'rejoin') return 'again'
    this.#memberId = answer.memberId
    this.#generationId = answer.generationId
    return answer
  }

  async #sync(joined: JoinGroupResponse): Promise<Buffer | 'again'> {
    const assignments = joined.leader === this.#memberId && !joined.skipAssignment ? await this.#assign(joined) : []
    const coordinator = await this.#cluster.coordinatorOf(this.#groupId)
    const request = { ...this.#identity(), protocolType: 'consumer', protocolName, assignments }
    const answer = await coordinator.call(apis.SyncGroup, request, { timeoutMs: rebalanceTimeoutMs })
    return this.#outcome('Synchronizing', answer.errorCode) === 'rejoin' ? 'again' : answer.assignment
  }

  /** As the leader: what each member gets. */
  async #assign({ members }: JoinGroupResponse): Promise<{ memberId: string; assignment: Buffer }[]> {
    const subscriptions = members.map(({ memberId, metadata }) => {
      const { topics } = decodeVersioned(ConsumerProtocolSubscription, metadata, { newerAsNewest: true })
      return { memberId, topics }
    })
    const counts = new Map<string, number>()
    const known = new Map((await this.#cluster.allTopics()).map(({ name, partitions }) => [name, partitions.length]))
    for (const topic of new Set(subscriptions.flatMap(({ topics }) => topics))) counts.set(topic, known.get(topic) ?? 0)
    return [...assignRanges(subscriptions, counts)].map(([memberId, places]) => {
      const topics = groupByTopic(places).map(([topic, partitions]) => ({ topic, partitions }))
      const assignment = encodeVersioned(ConsumerProtocolAssignment, 1, { assignedPartitions: topics })
      return { memberId, assignment }
    })
  }

  #identity(): { groupId: string; generationId: number; memberId: string } {
    return { groupId: this.#groupId, generationId: this.#generationId, memberId: this.#memberId }
  }

  /** Throws `RequestRefusedError` for what joining again doesn't mend. */
  #outcome(what: string, errorCode: number): 'ok' | 'rejoin' {
    if (!rejoinCodes.has(errorCode)) {
      expectNoError(`${what} in group ${this.#groupId}`, errorCode)
      return 'ok'
    }
    const isForgotten = errorCode === unknownMemberId || errorCode === groupIdNotFound
    if (isForgotten) this.#memberId = ''
    if (isForgotten || errorCode === illegalGeneration) this.#generationId = -1
    return 'rejoin'
  }
}
