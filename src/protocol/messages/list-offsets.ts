import { type MessageType, request, response } from '../message.ts'
import { array, int8, int16, int32, int64, int64Wide, string } from '../schema.ts'

export const ListOffsetsRequest = request({
  apiKey: 2,
  name: 'ListOffsets',
  versions: '1-11',
  flexible: '6+',
  fields: {
    replicaId: int32(),
    isolationLevel: int8({ versions: '2+' }),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        currentLeaderEpoch: int32({ versions: '4+', default: -1, ignorable: true }),
        timestamp: int64Wide(),
      }),
    }),
    timeoutMs: int32({ versions: '10+', ignorable: true }),
  },
})
export type ListOffsetsRequest = MessageType<typeof ListOffsetsRequest>

export const ListOffsetsResponse = response({
  apiKey: 2,
  name: 'ListOffsets',
  versions: '1-11',
  flexible: '6+',
  fields: {
    throttleTimeMs: int32({ versions: '2+', ignorable: true }),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
        timestamp: int64Wide({ default: -1n }),
        offset: int64({ default: -1 }),
        leaderEpoch: int32({ versions: '4+', default: -1 }),
      }),
    }),
  },
})
export type ListOffsetsResponse = MessageType<typeof ListOffsetsResponse>
