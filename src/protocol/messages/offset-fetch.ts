import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int16, int32, int64, string, uuid } from '../schema.ts'

export const OffsetFetchRequest = request({
  apiKey: 9,
  name: 'OffsetFetch',
  versions: '1-10',
  flexible: '6+',
  fields: {
    groupId: string({ versions: '1-7' }),
    topics: array(
      {
        name: string(),
        partitionIndexes: arrayOf(int32()),
      },
      { versions: '1-7', nullable: '2-7' },
    ),
    groups: array(
      {
        groupId: string(),
        memberId: string({ versions: '9+', nullable: true, default: null, ignorable: true }),
        memberEpoch: int32({ versions: '9+', default: -1, ignorable: true }),
        topics: array(
          {
            name: string({ versions: '8-9', ignorable: true }),
            topicId: uuid({ versions: '10+', ignorable: true }),
            partitionIndexes: arrayOf(int32()),
          },
          { nullable: true },
        ),
      },
      { versions: '8+' },
    ),
    requireStable: boolean({ versions: '7+' }),
  },
})
export type OffsetFetchRequest = MessageType<typeof OffsetFetchRequest>

export const OffsetFetchResponse = response({
  apiKey: 9,
  name: 'OffsetFetch',
  versions: '1-10',
  flexible: '6+',
  fields: {
    throttleTimeMs: int32({ versions: '3+', ignorable: true }),
    topics: array(
      {
        name: string(),
        partitions: array({
          partitionIndex: int32(),
          committedOffset: int64(),
          committedLeaderEpoch: int32({ versions: '5-7', default: -1, ignorable: true }),
          metadata: string({ nullable: true }),
          errorCode: int16(),
        }),
      },
      { versions: '1-7' },
    ),
    errorCode: int16({ versions: '2-7', ignorable: true }),
    groups: array(
      {
        groupId: string(),
        topics: array({
          name: string({ versions: '8-9', ignorable: true }),
          topicId: uuid({ versions: '10+', ignorable: true }),
          partitions: array({
            partitionIndex: int32(),
            committedOffset: int64(),
            committedLeaderEpoch: int32({ default: -1 }),
            metadata: string({ nullable: true }),
            errorCode: int16(),
          }),
        }),
        errorCode: int16({ default: 0 }),
      },
      { versions: '8+' },
    ),
  },
})
export type OffsetFetchResponse = MessageType<typeof OffsetFetchResponse>
