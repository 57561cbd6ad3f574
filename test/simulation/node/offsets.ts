import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import type { Client } from './client.ts'
import type { OffsetCommit } from './history.ts'

/** Who commits: a member in a generation, or nobody's offsets (generation -1, member ''). */
export interface Committer {
  readonly group: string
  readonly memberId: string
  readonly generation: number
}

/** Commits one offset; answers the error code, undefined when no answer came. */
export async function commitOffset(
  client: Client,
  { group, memberId, generation }: Committer,
  place: { readonly topic: string; readonly partition: number },
  offset: number,
  metadata: string,
): Promise<number | undefined> {
  const { history } = client.world
  const connection = await client.connection({ group })
  const commit: OffsetCommit = { key: keyOf(group, place), offset, metadata }
  history.add({ kind: 'commit-sent', commit })
  const answer = await client.requestOn(connection, apis.OffsetCommit, 7, {
    groupId: group,
    generationIdOrMemberEpoch: generation,
    memberId,
    topics: [
      {
        name: place.topic,
        partitions: [{ partitionIndex: place.partition, committedOffset: offset, committedMetadata: metadata }],
      },
    ],
  })
  const errorCode = answer?.topics[0]?.partitions[0]?.errorCode
  if (errorCode === ErrorCode.NONE) history.add({ kind: 'commit-acked', commit })
  else client.onRefused({ group })
  return errorCode
}

/** Fetches one committed offset; whether there was an answer without an error. */
export async function fetchCommitted(
  client: Client,
  group: string,
  place: { readonly topic: string; readonly partition: number },
): Promise<boolean> {
  const { history } = client.world
  const connection = await client.connection({ group })
  const sentAt = history.now
  const answer = await client.requestOn(connection, apis.OffsetFetch, 6, {
    groupId: group,
    topics: [{ name: place.topic, partitionIndexes: [place.partition] }],
  })
  const found = answer?.topics[0]?.partitions[0]
  if (answer?.errorCode !== ErrorCode.NONE || found?.errorCode !== ErrorCode.NONE) {
    client.onRefused({ group })
    return false
  }
  const { committedOffset: offset, metadata } = found
  history.add({ kind: 'commits-fetched', key: keyOf(group, place), offset, metadata: metadata ?? '', sentAt })
  return true
}

/** Makes the node create the topic of the groups' offsets, as every client's first question does. */
export async function findCoordinator(client: Client, group: string): Promise<boolean> {
  const answer = await client.request(apis.FindCoordinator, 3, { key: group, keyType: 0 })
  return answer?.errorCode === ErrorCode.NONE
}

function keyOf(group: string, { topic, partition }: { readonly topic: string; readonly partition: number }): string {
  return `${group}/${topic}-${partition}`
}
