import type { KafkaClient } from '../../../src/network/index.ts'
import {
  apis,
  ConsumerProtocolAssignment,
  ConsumerProtocolSubscription,
  decodeVersioned,
  ErrorCode,
  encodeVersioned,
  type JoinGroupResponse,
} from '../../../src/protocol/index.ts'
import { type Committer, commit, committedOffsets } from './committing.ts'
import { fetchOnce } from './fetching.ts'
import { pause, Session, type World } from './session.ts'

export const membersGroup = 'members'
const sessionTimeoutMs = 6000
const rebalanceTimeoutMs = 3000
/** Longer than a join may wait for the others. */
const joinTimeoutMs = 10_000

/** A consumer of a group: joins, reads what it is given from what is committed, commits, leaves now and then, and begins anew after each error. */
export class Member {
  readonly name: string
  readonly #session: Session
  #memberId = ''
  #commitCount = 0

  constructor(world: World, name: string) {
    this.name = name
    this.#session = new Session(world)
  }

  /** Commits that were acknowledged. */
  get progress(): number {
    return this.#commitCount
  }

  async run(): Promise<void> {
    const { world } = this.#session
    while (!world.isDraining) {
      await pause(30)
      const id = await this.#session.coordinator(membersGroup)
      const client = id === undefined ? undefined : await this.#session.connection(id).catch(() => undefined)
      if (client !== undefined) await this.#takePart(client).catch(() => undefined)
    }
    this.#session.close()
  }

  /** Throws when the coordinator doesn't answer. */
  async #takePart(client: KafkaClient): Promise<void> {
    const joined = await this.#join(client)
    if (joined === undefined) return
    const partitions = await this.#sync(client, joined)
    if (partitions === undefined) return
    const { world } = this.#session
    const committer = {
      process: this.name,
      group: membersGroup,
      memberId: this.#memberId,
      generation: joined.generationId,
    }
    const positions = await committedOffsets(world, client, this.name, membersGroup, partitions, false)
    if (positions === undefined) return
    // A leader of before the epoch of what is committed may not have it: it isn't asked.
    for (const [partition, { leaderEpoch }] of positions) this.#session.atLeastEpoch(partition, leaderEpoch)
    await this.#work(
      client,
      committer,
      new Map([...positions].map(([partition, { offset }]) => [partition, Math.max(offset, 0)])),
    )
  }

  async #join(client: KafkaClient): Promise<JoinGroupResponse | undefined> {
    const subscription = { topics: [this.#session.world.topic] }
    const metadata = encodeVersioned(ConsumerProtocolSubscription, 0, subscription)
    const answer = await client.request(
      apis.JoinGroup,
      5,
      {
        groupId: membersGroup,
        sessionTimeoutMs,
        rebalanceTimeoutMs,
        memberId: this.#memberId,
        protocolType: 'consumer',
        protocols: [{ name: 'each-in-turn', metadata }],
      },
      { timeoutMs: joinTimeoutMs },
    )
    if (answer.errorCode === ErrorCode.MEMBER_ID_REQUIRED) this.#memberId = answer.memberId
    else if (answer.errorCode === ErrorCode.UNKNOWN_MEMBER_ID) this.#memberId = ''
    if (answer.errorCode !== ErrorCode.NONE) return undefined
    this.#memberId = answer.memberId
    return answer
  }

  async #sync(
    client: KafkaClient,
    { generationId, leader, members }: JoinGroupResponse,
  ): Promise<readonly number[] | undefined> {
    const { world } = this.#session
    const memberIds = members.map(({ memberId }) => memberId)
    const answer = await client.request(
      apis.SyncGroup,
      3,
      {
        groupId: membersGroup,
        generationId,
        memberId: this.#memberId,
        assignments: leader === this.#memberId ? this.#assign(memberIds) : [],
      },
      { timeoutMs: joinTimeoutMs },
    )
    if (answer.errorCode !== ErrorCode.NONE) return undefined
    const { assignedPartitions } = decodeVersioned(ConsumerProtocolAssignment, answer.assignment)
    const partitions = assignedPartitions.flatMap((each) => each.partitions)
    world.recording.assignments.push({
      kind: 'assignment',
      atMs: world.recording.now(),
      process: this.#memberId,
      group: membersGroup,
      generation: generationId,
      partitions,
    })
    return partitions
  }

  #assign(memberIds: readonly string[]): { memberId: string; assignment: Buffer }[] {
    const { topic, partitionCount } = this.#session.world
    const all = Array.from({ length: partitionCount }, (_, partition) => partition)
    return memberIds.map((memberId, place) => ({
      memberId,
      assignment: encodeVersioned(ConsumerProtocolAssignment, 0, {
        assignedPartitions: [{ topic, partitions: all.filter((partition) => partition % memberIds.length === place) }],
      }),
    }))
  }

  /** Until the group rebalances, something fails, or it has had enough. */
  async #work(client: KafkaClient, committer: Committer, positions: Map<number, number>): Promise<void> {
    const { world } = this.#session
    while (!world.isDraining) {
      for (const [partition, fetchOffset] of positions) {
        const read = await fetchOnce(this.#session, this.name, partition, fetchOffset)
        const last = read?.records.at(-1)
        if (last === undefined) continue
        positions.set(partition, last.offset + 1)
        const position = { offset: last.offset + 1, leaderEpoch: last.leaderEpoch }
        if (!(await commit(world, client, committer, partition, position))) return
        this.#commitCount++
      }
      const { memberId, generation } = committer
      const { errorCode } = await client.request(apis.Heartbeat, 3, {
        groupId: membersGroup,
        generationId: generation,
        memberId,
      })
      if (errorCode !== ErrorCode.NONE) return
      if (world.random() < 0.005) return await this.#leave(client)
      await pause(20)
    }
    await this.#leave(client)
  }

  async #leave(client: KafkaClient): Promise<void> {
    const memberId = this.#memberId
    this.#memberId = ''
    await client.request(apis.LeaveGroup, 3, { groupId: membersGroup, members: [{ memberId }] })
  }
}
