import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int16, int32, string } from '../schema.ts'

export const AlterPartitionReassignmentsRequest = request({
  apiKey: 45,
  name: 'AlterPartitionReassignments',
  versions: '0-1',
  flexible: '0+',
  fields: {
    timeoutMs: int32({ default: 60_000 }),
    allowReplicationFactorChange: boolean({ versions: '1+', default: true }),
    topics: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        replicas: arrayOf(int32(), { nullable: true, default: null }),
      }),
    }),
  },
})
export type AlterPartitionReassignmentsRequest = MessageType<typeof AlterPartitionReassignmentsRequest>

export const AlterPartitionReassignmentsResponse = response({
  apiKey: 45,
  name: 'AlterPartitionReassignments',
  versions: '0-1',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    allowReplicationFactorChange: boolean({ versions: '1+', default: true, ignorable: true }),
    errorCode: int16(),
    errorMessage: string({ nullable: true }),
    responses: array({
      name: string(),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
        errorMessage: string({ nullable: true }),
      }),
    }),
  },
})
export type AlterPartitionReassignmentsResponse = MessageType<typeof AlterPartitionReassignmentsResponse>
