import { type MessageType, request, response } from '../message.ts'
import { array, int16, int32, int64, string, uuid } from '../schema.ts'

export const OffsetCommitRequest = request({
  apiKey: 8,
  name: 'OffsetCommit',
  versions: '2-10',
  flexible: '8+',
  fields: {
    groupId: string(),
    generationIdOrMemberEpoch: int32({ default: -1 }),
    memberId: string(),
    groupInstanceId: string({ versions: '7+', nullable: true, default: null }),
    retentionTimeMs: int64({ versions: '2-4', default: -1, ignorable: true }),
    topics: array({
      name: string({ versions: '2-9', ignorable: true }),
      topicId: uuid({ versions: '10+', ignorable: true }),
      partitions: array({
        partitionIndex: int32(),
        committedOffset: int64(),
        committedLeaderEpoch: int32({ versions: '6+', default: -1, ignorable: true }),
        committedMetadata: string({ nullable: true }),
      }),
    }),
  },
})
export type OffsetCommitRequest = MessageType<typeof OffsetCommitRequest>

export const OffsetCommitResponse = response({
  apiKey: 8,
  name: 'OffsetCommit',
  versions: '2-10',
  flexible: '8+',
  fields: {
    throttleTimeMs: int32({ versions: '3+', ignorable: true }),
    topics: array({
      name: string({ versions: '2-9', ignorable: true }),
      topicId: uuid({ versions: '10+', ignorable: true }),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
      }),
    }),
  },
})
export type OffsetCommitResponse = MessageType<typeof OffsetCommitResponse>
