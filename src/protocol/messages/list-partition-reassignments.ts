import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int16, int32, string } from '../schema.ts'

export const ListPartitionReassignmentsRequest = request({
  apiKey: 46,
  name: 'ListPartitionReassignments',
  versions: '0',
  flexible: '0+',
  fields: {
    timeoutMs: int32({ default: 60_000 }),
    topics: array(
      {
        name: string(),
        partitionIndexes: arrayOf(int32()),
      },
      { nullable: true, default: null },
    ),
  },
})
export type ListPartitionReassignmentsRequest = MessageType<typeof ListPartitionReassignmentsRequest>

export const ListPartitionReassignmentsResponse = response({
  apiKey: 46,
  name: 'ListPartitionReassignments',
  versions: '0',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    errorMessage: string({ nullable: true }),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        replicas: arrayOf(int32()),
        addingReplicas: arrayOf(int32()),
        removingReplicas: arrayOf(int32()),
      }),
    }),
  },
})
export type ListPartitionReassignmentsResponse = MessageType<typeof ListPartitionReassignmentsResponse>
