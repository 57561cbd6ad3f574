import { type MessageType, request, response } from '../message.ts'
import { array, int16, int32, int64, string, uint16, uuid } from '../schema.ts'

export const DescribeQuorumRequest = request({
  apiKey: 55,
  name: 'DescribeQuorum',
  versions: '0-2',
  flexible: '0+',
  fields: {
    topics: array({
      topicName: string(),
      partitions: array({
        partitionIndex: int32(),
      }),
    }),
  },
})
export type DescribeQuorumRequest = MessageType<typeof DescribeQuorumRequest>

const replicaState = {
  replicaId: int32(),
  replicaDirectoryId: uuid({ versions: '2+' }),
  logEndOffset: int64(),
  lastFetchTimestamp: int64({ versions: '1+', default: -1, ignorable: true }),
  lastCaughtUpTimestamp: int64({ versions: '1+', default: -1, ignorable: true }),
}

export const DescribeQuorumResponse = response({
  apiKey: 55,
  name: 'DescribeQuorum',
  versions: '0-2',
  flexible: '0+',
  fields: {
    errorCode: int16(),
    errorMessage: string({ versions: '2+', nullable: '2+', ignorable: true }),
    topics: array({
      topicName: string(),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
        errorMessage: string({ versions: '2+', nullable: '2+', ignorable: true }),
        leaderId: int32(),
        leaderEpoch: int32(),
        highWatermark: int64(),
        currentVoters: array(replicaState),
        observers: array(replicaState),
      }),
    }),
    nodes: array(
      {
        nodeId: int32(),
        listeners: array({
          name: string(),
          host: string(),
          port: uint16(),
        }),
      },
      { versions: '2+' },
    ),
  },
})
export type DescribeQuorumResponse = MessageType<typeof DescribeQuorumResponse>
