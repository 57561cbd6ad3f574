import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'

/** A member that joined a group alone and was given its assignment; it says nothing more by itself. */
export interface RawMember {
  readonly memberId: string
  readonly generationId: number
}

/** Joins as a consumer and leads the generation. Throws for an error code. */
export async function joinGroup(client: KafkaClient, groupId: string, sessionTimeoutMs: number): Promise<RawMember> {
  const found = await client.request(apis.FindCoordinator, 3, { key: groupId, keyType: 0 })
  check(found.errorCode)
  const join = (memberId: string) =>
    client.request(apis.JoinGroup, 7, {
      groupId,
      sessionTimeoutMs,
      rebalanceTimeoutMs: 60_000,
      memberId,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
    })
  const first = await join('')
  const joined = first.errorCode === ErrorCode.MEMBER_ID_REQUIRED ? await join(first.memberId) : first
  check(joined.errorCode)
  const { memberId, generationId } = joined
  const assignments = [{ memberId, assignment: Buffer.alloc(0) }]
  check((await client.request(apis.SyncGroup, 3, { groupId, generationId, memberId, assignments })).errorCode)
  return { memberId, generationId }
}

/** Commits an offset without being a member. Throws for an error code. */
export async function commitOffset(client: KafkaClient, groupId: string, topic: string, offset: number): Promise<void> {
  check((await client.request(apis.FindCoordinator, 3, { key: groupId, keyType: 0 })).errorCode)
  const partitions = [{ partitionIndex: 0, committedOffset: offset, committedMetadata: '' }]
  const body = { groupId, memberId: '', topics: [{ name: topic, partitions }] }
  check((await client.request(apis.OffsetCommit, 7, body)).topics[0]!.partitions[0]!.errorCode)
}

/** -1: none. */
export async function committedOffset(client: KafkaClient, groupId: string, topic: string): Promise<number> {
  const topics = [{ name: topic, partitionIndexes: [0] }]
  const { errorCode, topics: fetched } = await client.request(apis.OffsetFetch, 5, { groupId, topics })
  check(errorCode)
  return fetched[0]!.partitions[0]!.committedOffset
}

function check(errorCode: number): void {
  if (errorCode !== ErrorCode.NONE) throw new Error(`Error ${errorCode}`)
}
