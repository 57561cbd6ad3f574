import { type MessageType, request, response } from '../message.ts'
import { array, int16, int32, string } from '../schema.ts'

export const OffsetDeleteRequest = request({
  apiKey: 47,
  name: 'OffsetDelete',
  versions: '0',
  fields: {
    groupId: string(),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
      }),
    }),
  },
})
export type OffsetDeleteRequest = MessageType<typeof OffsetDeleteRequest>

export const OffsetDeleteResponse = response({
  apiKey: 47,
  name: 'OffsetDelete',
  versions: '0',
  fields: {
    errorCode: int16(),
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
      }),
    }),
  },
})
export type OffsetDeleteResponse = MessageType<typeof OffsetDeleteResponse>
