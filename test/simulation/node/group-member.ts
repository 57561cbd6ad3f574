import {
  apis,
  ConsumerProtocolAssignment,
  ConsumerProtocolSubscription,
  decodeVersioned,
  ErrorCode,
  encodeVersioned,
  type JoinGroupResponse,
} from '../../../src/protocol/index.ts'
import { Client } from './client.ts'
import type { SimulatedTopic } from './history.ts'
import { commitOffset, fetchCommitted, findCoordinator } from './offsets.ts'
import type { ClientWorld } from './world.ts'

const group = 'readers'
const subject = { group }
const sessionTimeoutMs = 6000
const rebalanceTimeoutMs = 3000

/**
 * A member of a consumer group of the classic protocol: joins, is given partitions (by whichever member leads), commits offsets
 * for them, looks at what is committed, leaves now and then, and begins anew after each error.
 */
export class GroupMember {
  readonly #client: Client
  readonly #topics: readonly SimulatedTopic[]
  #memberId = ''
  #committed = 0

  constructor(world: ClientWorld, name: string, topics: readonly SimulatedTopic[]) {
    this.#client = new Client(world, name)
    this.#topics = topics
  }

  async run(): Promise<void> {
    const { world } = this.#client
    while (!world.isDraining) {
      await this.#client.think(30)
      if (!(await findCoordinator(this.#client, group))) continue
      const joined = await this.#join()
      if (joined === undefined) continue
      const partitions = await this.#sync(joined)
      if (partitions !== undefined) await this.#work(joined.generationId, partitions)
    }
    await this.#leave()
    for (const topic of this.#topics) {
      const place = { topic: topic.name, partition: 0 }
      while (!(await fetchCommitted(this.#client, group, place))) await this.#client.think(50)
    }
  }

  async #join(): Promise<JoinGroupResponse | undefined> {
    const metadata = encodeVersioned(ConsumerProtocolSubscription, 0, { topics: this.#topics.map(({ name }) => name) })
    const answer = await this.#client.request(
      apis.JoinGroup,
      5,
      {
        groupId: group,
        sessionTimeoutMs,
        rebalanceTimeoutMs,
        memberId: this.#memberId,
        protocolType: 'consumer',
        protocols: [{ name: 'each-in-turn', metadata }],
      },
      subject,
    )
    if (answer === undefined) return undefined
    if (answer.errorCode === ErrorCode.MEMBER_ID_REQUIRED) this.#memberId = answer.memberId
    else if (answer.errorCode === ErrorCode.UNKNOWN_MEMBER_ID) this.#memberId = ''
    if (answer.errorCode !== ErrorCode.NONE) {
      if (answer.errorCode !== ErrorCode.MEMBER_ID_REQUIRED) this.#client.onRefused(subject)
      return undefined
    }
    this.#memberId = answer.memberId
    return answer
  }

  async #sync({ generationId, leader, members }: JoinGroupResponse): Promise<readonly string[] | undefined> {
    const answer = await this.#client.request(
      apis.SyncGroup,
      3,
      {
        groupId: group,
        generationId,
        memberId: this.#memberId,
        assignments: leader === this.#memberId ? this.#assign(members.map(({ memberId }) => memberId)) : [],
      },
      subject,
    )
    if (answer === undefined || answer.errorCode !== ErrorCode.NONE) return undefined
    const { assignedPartitions } = decodeVersioned(ConsumerProtocolAssignment, answer.assignment)
    const partitions = assignedPartitions.flatMap(({ topic, partitions: indexes }) =>
      indexes.map((index) => `${topic}-${index}`),
    )
    const memberId = this.#memberId
    this.#client.world.history.add({ kind: 'assigned', group, generation: generationId, memberId, partitions })
    return partitions
  }

  #assign(memberIds: readonly string[]): { memberId: string; assignment: Buffer }[] {
    const places = this.#topics.flatMap(({ name, partitionCount }) =>
      Array.from({ length: partitionCount }, (_, partition) => ({ topic: name, partitions: [partition] })),
    )
    return memberIds.map((memberId, i) => ({
      memberId,
      assignment: encodeVersioned(ConsumerProtocolAssignment, 0, {
        assignedPartitions: places.filter((_, place) => place % memberIds.length === i),
      }),
    }))
  }

  /** Until the group rebalances, something fails, or it has had enough. */
  async #work(generation: number, partitions: readonly string[]): Promise<void> {
    const { world } = this.#client
    const committer = { group, memberId: this.#memberId, generation }
    while (!world.isDraining) {
      await this.#client.think(60)
      for (const name of partitions) {
        const separator = name.lastIndexOf('-')
        const place = { topic: name.slice(0, separator), partition: Number(name.slice(separator + 1)) }
        const offset = ++this.#committed
        const metadata = `${this.#client.name} ${offset}`
        const code = await commitOffset(this.#client, committer, place, offset, metadata)
        if (this.#client.chance(0.3)) await fetchCommitted(this.#client, group, place)
        if (code !== ErrorCode.NONE) return
      }
      const beat = await this.#client.request(
        apis.Heartbeat,
        3,
        {
          groupId: group,
          generationId: generation,
          memberId: this.#memberId,
        },
        subject,
      )
      if (beat === undefined || beat.errorCode !== ErrorCode.NONE) return
      if (this.#client.chance(0.02)) return this.#leave()
    }
  }

  async #leave(): Promise<void> {
    const memberId = this.#memberId
    this.#memberId = ''
    await this.#client.request(apis.LeaveGroup, 3, { groupId: group, members: [{ memberId }] }, subject)
  }
}
