import { type MessageType, request, response } from '../message.ts'
import { array, int16, int32, int64, string } from '../schema.ts'

export const DeleteRecordsRequest = request({
  apiKey: 21,
  name: 'DeleteRecords',
  versions: '0-2',
  flexible: '2+',
  fields: {
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        offset: int64(),
      }),
    }),
    timeoutMs: int32(),
  },
})
export type DeleteRecordsRequest = MessageType<typeof DeleteRecordsRequest>

export const DeleteRecordsResponse = response({
  apiKey: 21,
  name: 'DeleteRecords',
  versions: '0-2',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        lowWatermark: int64(),
        errorCode: int16(),
      }),
    }),
  },
})
export type DeleteRecordsResponse = MessageType<typeof DeleteRecordsResponse>
