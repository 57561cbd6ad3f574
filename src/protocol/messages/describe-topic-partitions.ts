import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int16, int32, string, struct, uuid } from '../schema.ts'

export const DescribeTopicPartitionsRequest = request({
  apiKey: 75,
  name: 'DescribeTopicPartitions',
  versions: '0',
  flexible: '0+',
  fields: {
    topics: array({
      name: string(),
    }),
    responsePartitionLimit: int32({ default: 2000 }),
    cursor: struct(
      {
        topicName: string(),
        partitionIndex: int32(),
      },
      { nullable: true, default: null },
    ),
  },
})
export type DescribeTopicPartitionsRequest = MessageType<typeof DescribeTopicPartitionsRequest>

export const DescribeTopicPartitionsResponse = response({
  apiKey: 75,
  name: 'DescribeTopicPartitions',
  versions: '0',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    topics: array({
      errorCode: int16(),
      name: string({ nullable: true }),
      topicId: uuid({ ignorable: true }),
      isInternal: boolean({ default: false, ignorable: true }),
      partitions: array({
        errorCode: int16(),
        partitionIndex: int32(),
        leaderId: int32(),
        leaderEpoch: int32({ default: -1, ignorable: true }),
        replicaNodes: arrayOf(int32()),
        isrNodes: arrayOf(int32()),
        eligibleLeaderReplicas: arrayOf(int32(), { nullable: true, default: null }),
        lastKnownElr: arrayOf(int32(), { nullable: true, default: null }),
        offlineReplicas: arrayOf(int32(), { ignorable: true }),
      }),
      topicAuthorizedOperations: int32({ default: -2147483648 }),
    }),
    nextCursor: struct(
      {
        topicName: string(),
        partitionIndex: int32(),
      },
      { nullable: true, default: null },
    ),
  },
})
export type DescribeTopicPartitionsResponse = MessageType<typeof DescribeTopicPartitionsResponse>
