import { apis, ErrorCode, type MessageInput, type OffsetDeleteResponse } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf } from './errors.ts'

/**
 * OffsetDelete, 0.
 *
 * Forgets what a group committed for some partitions. A topic that a member still reads is GROUP_SUBSCRIBED_TO_TOPIC, one
 * that isn't there UNKNOWN_TOPIC_OR_PARTITION. What is wrong with the group stands at the top, with no topics; nothing is
 * asked of it when none of the partitions exists.
 */
export const offsetDelete = defineApi({
  api: apis.OffsetDelete,
  versions: { min: 0, max: 0 },
  async handle({ groupId, topics }, { services }) {
    const { topics: known } = services.coordination.image
    const isKnown = (topic: string, partition: number) => known.byName(topic)?.partitions[partition] !== undefined
    const wanted = topics.flatMap(({ name: topic, partitions }) => {
      const there = partitions.map((each) => each.partitionIndex).filter((partition) => isKnown(topic, partition))
      return there.length === 0 ? [] : [{ topic, partitions: there }]
    })
    if (wanted.length > 0 && groupId === '') return { body: refused(ErrorCode.INVALID_GROUP_ID) }
    const deleted =
      wanted.length === 0
        ? ({ ok: true, topics: [] } as const)
        : await services.groups.offsetDelete({ groupId, topics: wanted })
    if (!deleted.ok) return { body: refused(errorCodeOf(deleted.reason)) }
    const reasons = deleted.topics.flatMap(({ partitions }) => partitions.map(({ reason }) => reason))
    let next = 0
    const answered = topics.filter(({ partitions }) => partitions.length > 0)
    const answers = answered.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => {
        const reason = isKnown(name, partitionIndex) ? reasons[next++]! : 'unknown-topic-or-partition'
        return { partitionIndex, errorCode: reason === null ? ErrorCode.NONE : errorCodeOf(reason) }
      }),
    }))
    return { body: { errorCode: ErrorCode.NONE, topics: answers } }
  },
  fault: (_request, errorCode) => refused(errorCode),
})

function refused(errorCode: ErrorCode): MessageInput<typeof OffsetDeleteResponse> {
  return { errorCode, topics: [] }
}
