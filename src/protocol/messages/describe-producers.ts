import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int16, int32, int64, string } from '../schema.ts'

export const DescribeProducersRequest = request({
  apiKey: 61,
  name: 'DescribeProducers',
  versions: '0',
  flexible: '0+',
  fields: {
    topics: array({
      name: string(),
      partitionIndexes: arrayOf(int32()),
    }),
  },
})
export type DescribeProducersRequest = MessageType<typeof DescribeProducersRequest>

export const DescribeProducersResponse = response({
  apiKey: 61,
  name: 'DescribeProducers',
  versions: '0',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
        errorMessage: string({ nullable: true, default: null }),
        activeProducers: array({
          producerId: int64(),
          producerEpoch: int32(),
          lastSequence: int32({ default: -1 }),
          lastTimestamp: int64({ default: -1 }),
          coordinatorEpoch: int32(),
          currentTxnStartOffset: int64({ default: -1 }),
        }),
      }),
    }),
  },
})
export type DescribeProducersResponse = MessageType<typeof DescribeProducersResponse>
