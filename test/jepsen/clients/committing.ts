import type { KafkaClient } from '../../../src/network/index.ts'
import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import type { Commit, Committed } from '../judge/history.ts'
import type { World } from './session.ts'

/** Who commits: a member in its generation, or somebody who is none. */
export interface Committer {
  readonly process: string
  readonly group: string
  readonly memberId: string
  readonly generation: number
}

/** Refusals that say for certain that the commit wasn't stored. */
const certain: ReadonlySet<number> = new Set([
  ErrorCode.ILLEGAL_GENERATION,
  ErrorCode.UNKNOWN_MEMBER_ID,
  ErrorCode.REBALANCE_IN_PROGRESS,
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
])

/** Where a consumer is: the next offset that it reads, and the leader epoch of the record before it, -1 when that isn't known. */
export interface Position {
  readonly offset: number
  readonly leaderEpoch: number
}

/** True when it was acknowledged. */
export async function commit(
  world: World,
  client: KafkaClient,
  { process, group, memberId, generation }: Committer,
  partition: number,
  { offset, leaderEpoch }: Position,
): Promise<boolean> {
  const { recording } = world
  const operation: Commit = {
    kind: 'commit',
    process,
    group,
    partition,
    offset,
    invokedMs: recording.now(),
    completedMs: Number.POSITIVE_INFINITY,
    outcome: 'unknown',
  }
  recording.commits.push(operation)
  try {
    const committed = { committedOffset: offset, committedLeaderEpoch: leaderEpoch, committedMetadata: null }
    const partitions = [{ partitionIndex: partition, ...committed }]
    const { topics } = await client.request(apis.OffsetCommit, 7, {
      groupId: group,
      generationIdOrMemberEpoch: generation,
      memberId,
      topics: [{ name: world.topic, partitions }],
    })
    const { errorCode } = topics[0]!.partitions[0]!
    if (errorCode !== ErrorCode.NONE) {
      operation.note = `error ${errorCode}`
      if (certain.has(errorCode)) operation.outcome = 'fail'
      return false
    }
    operation.completedMs = recording.now()
    operation.outcome = 'ok'
    return true
  } catch (error) {
    operation.note = (error as Error).message
    return false
  }
}

/** What is committed for each partition, offset -1 for none; undefined when there was no answer. */
export async function committedOffsets(
  world: World,
  client: KafkaClient,
  process: string,
  group: string,
  partitions: readonly number[],
  mayBeStale: boolean,
): Promise<ReadonlyMap<number, Position> | undefined> {
  const { recording, topic } = world
  const invokedMs = recording.now()
  try {
    const asked = { groupId: group, topics: [{ name: topic, partitionIndexes: [...partitions] }], requireStable: true }
    const { errorCode, topics } = await client.request(apis.OffsetFetch, 7, asked)
    if (errorCode !== ErrorCode.NONE) return undefined
    const completedMs = recording.now()
    const told = topics[0]?.partitions ?? []
    if (told.some((each) => each.errorCode !== ErrorCode.NONE)) return undefined
    for (const { partitionIndex, committedOffset } of told) {
      const operation: Committed = {
        kind: 'committed',
        process,
        group,
        partition: partitionIndex,
        offset: committedOffset,
        mayBeStale,
        invokedMs,
        completedMs,
        outcome: 'ok',
      }
      recording.committed.push(operation)
    }
    return new Map(
      told.map(({ partitionIndex, committedOffset, committedLeaderEpoch }) => [
        partitionIndex,
        { offset: committedOffset, leaderEpoch: committedLeaderEpoch },
      ]),
    )
  } catch {
    return undefined
  }
}
