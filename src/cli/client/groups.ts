import { apis, ConsumerProtocolAssignment, decodeVersioned } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { expectNoError } from './errors.ts'
import { latest, type Place, placeName, probeOffsets } from './offsets.ts'

export interface GroupListing {
  readonly groupId: string
  /** `Stable`, `Empty`; empty when the broker doesn't tell. */
  readonly state: string
  /** `consumer` */
  readonly protocolType: string
}

/** Of all brokers, sorted by id. */
export async function listGroups(cluster: Cluster): Promise<readonly GroupListing[]> {
  const groups = new Map<string, GroupListing>()
  for (const connection of await cluster.brokers()) {
    const answer = await cluster.retrying(async () => {
      const answer = await connection.call(apis.ListGroups, {})
      expectNoError('Groups', answer.errorCode)
      return answer
    })
    for (const { groupId, groupState, protocolType } of answer.groups) {
      groups.set(groupId, { groupId, state: groupState, protocolType })
    }
  }
  return [...groups.values()].sort((left, right) => (left.groupId < right.groupId ? -1 : 1))
}

export interface GroupDescription {
  readonly groupId: string
  readonly state: string
  /** The assignor, `range`; empty without members. */
  readonly assignor: string
  readonly coordinator: string
  readonly members: readonly GroupMember[]
  /** Every partition that the group has committed or is assigned, sorted. */
  readonly offsets: readonly GroupOffset[]
}

export interface GroupMember {
  readonly memberId: string
  readonly clientId: string
  readonly host: string
  readonly partitions: readonly Place[]
}

export interface GroupOffset extends Place {
  /** The next to be read; null when nothing is committed. */
  readonly committedOffset: number | null
  /** Exclusive; null for a partition that isn't there any more, or can't be asked. */
  readonly endOffset: number | null
  /** Records between the two; null when one isn't known. */
  readonly lag: number | null
  /** The member that reads it; null when none does. */
  readonly memberId: string | null
}

/** Throws `RequestRefusedError`. A group that was never heard of is `Dead` and has neither members nor offsets. */
export async function describeGroup(cluster: Cluster, groupId: string): Promise<GroupDescription> {
  const group = await cluster.retrying(async () => {
    const coordinator = await cluster.coordinatorOf(groupId)
    const { groups } = await coordinator.call(apis.DescribeGroups, { groups: [groupId] })
    const described = groups[0]!
    // From version 6 on a group that isn't there has an error, before that the state alone.
    if (described.groupState !== 'Dead') expectNoError(`Group ${groupId}`, described.errorCode, described.errorMessage)
    return described
  })
  const members = group.members.map((member) => ({
    memberId: member.memberId,
    clientId: member.clientId,
    host: member.clientHost.replace(/^\//, ''),
    partitions: group.protocolType === 'consumer' ? assignedPartitions(member.memberAssignment) : [],
  }))
  return {
    groupId,
    state: group.groupState,
    assignor: group.protocolData,
    coordinator: await coordinatorAddress(cluster, groupId),
    members,
    offsets: await groupOffsets(cluster, groupId, members),
  }
}

/** With all that it committed. Throws `RequestRefusedError`: it has members, or there is no such group. */
export async function deleteGroup(cluster: Cluster, groupId: string): Promise<void> {
  await cluster.retrying(async () => {
    const coordinator = await cluster.coordinatorOf(groupId)
    const { results } = await coordinator.call(apis.DeleteGroups, { groupsNames: [groupId] })
    expectNoError(`Group ${groupId}`, results[0]!.errorCode)
  })
}

/** What the group has committed, by `placeName`. */
export async function fetchCommitted(cluster: Cluster, groupId: string): Promise<readonly CommittedOffset[]> {
  return await cluster.retrying(async () => {
    const coordinator = await cluster.coordinatorOf(groupId)
    const answer = await coordinator.call(apis.OffsetFetch, { groupId, topics: null })
    expectNoError(`Offsets of group ${groupId}`, answer.errorCode)
    return answer.topics.flatMap(({ name: topic, partitions }) =>
      partitions.flatMap(({ partitionIndex: partition, committedOffset, errorCode }) => {
        expectNoError(`Offset of group ${groupId} in ${topic}-${partition}`, errorCode)
        return committedOffset < 0 ? [] : [{ topic, partition, committedOffset }]
      }),
    )
  })
}

export interface CommittedOffset extends Place {
  readonly committedOffset: number
}

async function coordinatorAddress(cluster: Cluster, groupId: string): Promise<string> {
  const connection = await cluster.any()
  const { host, port } = await connection.call(apis.FindCoordinator, { key: groupId })
  return `${host}:${port}`
}

async function groupOffsets(
  cluster: Cluster,
  groupId: string,
  members: readonly GroupMember[],
): Promise<readonly GroupOffset[]> {
  const committed = await fetchCommitted(cluster, groupId)
  const committedBy = new Map(committed.map((each) => [placeName(each), each.committedOffset]))
  const memberBy = new Map(
    members.flatMap(({ memberId, partitions }) => partitions.map((p) => [placeName(p), memberId])),
  )
  const places = new Map<string, Place>()
  for (const place of [...committed, ...members.flatMap(({ partitions }) => partitions)]) {
    places.set(placeName(place), { topic: place.topic, partition: place.partition })
  }
  const ends = await probeOffsets(cluster, await existing(cluster, [...places.values()]), latest)
  const offsets = [...places].map(([name, place]): GroupOffset => {
    const committedOffset = committedBy.get(name) ?? null
    const end = ends.get(name)
    const endOffset = typeof end === 'number' ? end : null
    const lag = committedOffset === null || endOffset === null ? null : Math.max(0, endOffset - committedOffset)
    return { ...place, committedOffset, endOffset, lag, memberId: memberBy.get(name) ?? null }
  })
  return offsets.sort((left, right) =>
    left.topic === right.topic ? left.partition - right.partition : left.topic < right.topic ? -1 : 1,
  )
}

/** Without those whose topic was deleted since. */
async function existing(cluster: Cluster, places: readonly Place[]): Promise<readonly Place[]> {
  if (places.length === 0) return places
  const counts = new Map((await cluster.allTopics()).map(({ name, partitions }) => [name, partitions.length]))
  return places.filter(({ topic, partition }) => partition < (counts.get(topic) ?? 0))
}

/** The partitions that a member's assignment names, in the format of Kafka's consumers. */
export function assignedPartitions(assignment: Buffer): readonly Place[] {
  if (assignment.length === 0) return []
  const { assignedPartitions: topics } = decodeVersioned(ConsumerProtocolAssignment, assignment, {
    newerAsNewest: true,
  })
  return topics.flatMap(({ topic, partitions }) => partitions.map((partition) => ({ topic, partition })))
}
