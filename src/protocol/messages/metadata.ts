import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int16, int32, string, uuid } from '../schema.ts'

export const MetadataRequest = request({
  apiKey: 3,
  name: 'Metadata',
  versions: '0-13',
  flexible: '9+',
  fields: {
    topics: array(
      {
        topicId: uuid({ versions: '10+', ignorable: true }),
        name: string({ nullable: '10+' }),
      },
      { nullable: '1+' },
    ),
    allowAutoTopicCreation: boolean({ versions: '4+', default: true }),
    includeClusterAuthorizedOperations: boolean({ versions: '8-10' }),
    includeTopicAuthorizedOperations: boolean({ versions: '8+' }),
  },
})
export type MetadataRequest = MessageType<typeof MetadataRequest>

export const MetadataResponse = response({
  apiKey: 3,
  name: 'Metadata',
  versions: '0-13',
  flexible: '9+',
  fields: {
    throttleTimeMs: int32({ versions: '3+', ignorable: true }),
    brokers: array({
      nodeId: int32(),
      host: string(),
      port: int32(),
      rack: string({ versions: '1+', nullable: true, default: null, ignorable: true }),
    }),
    clusterId: string({ versions: '2+', nullable: true, default: null, ignorable: true }),
    controllerId: int32({ versions: '1+', default: -1, ignorable: true }),
    topics: array({
      errorCode: int16(),
      name: string({ nullable: '12+' }),
      topicId: uuid({ versions: '10+', ignorable: true }),
      isInternal: boolean({ versions: '1+', ignorable: true }),
      partitions: array({
        errorCode: int16(),
        partitionIndex: int32(),
        leaderId: int32(),
        leaderEpoch: int32({ versions: '7+', default: -1, ignorable: true }),
        replicaNodes: arrayOf(int32()),
        isrNodes: arrayOf(int32()),
        offlineReplicas: arrayOf(int32(), { versions: '5+', ignorable: true }),
      }),
      topicAuthorizedOperations: int32({ versions: '8+', default: -2147483648 }),
    }),
    clusterAuthorizedOperations: int32({ versions: '8-10', default: -2147483648 }),
    errorCode: int16({ versions: '13+', ignorable: true }),
  },
})
export type MetadataResponse = MessageType<typeof MetadataResponse>
