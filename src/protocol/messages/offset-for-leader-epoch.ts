import { type MessageType, request, response } from '../message.ts'
import { array, int16, int32, int64, string } from '../schema.ts'

export const OffsetForLeaderEpochRequest = request({
  apiKey: 23,
  name: 'OffsetForLeaderEpoch',
  versions: '2-4',
  flexible: '4+',
  fields: {
    replicaId: int32({ versions: '3+', default: -2, ignorable: true }),
    topics: array({
      topic: string(),
      partitions: array({
        partition: int32(),
        currentLeaderEpoch: int32({ default: -1 }),
        leaderEpoch: int32(),
      }),
    }),
  },
})
export type OffsetForLeaderEpochRequest = MessageType<typeof OffsetForLeaderEpochRequest>

export const OffsetForLeaderEpochResponse = response({
  apiKey: 23,
  name: 'OffsetForLeaderEpoch',
  versions: '2-4',
  flexible: '4+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    topics: array({
      topic: string(),
      partitions: array({
        errorCode: int16(),
        partition: int32(),
        leaderEpoch: int32({ default: -1 }),
        endOffset: int64({ default: -1 }),
      }),
    }),
  },
})
export type OffsetForLeaderEpochResponse = MessageType<typeof OffsetForLeaderEpochResponse>
