import { type MessageType, request, response } from '../message.ts'
import { array, boolean, int8, int16, int32, string } from '../schema.ts'

export const DescribeClusterRequest = request({
  apiKey: 60,
  name: 'DescribeCluster',
  versions: '0-2',
  flexible: '0+',
  fields: {
    includeClusterAuthorizedOperations: boolean(),
    endpointType: int8({ versions: '1+', default: 1 }),
    includeFencedBrokers: boolean({ versions: '2+' }),
  },
})
export type DescribeClusterRequest = MessageType<typeof DescribeClusterRequest>

export const DescribeClusterResponse = response({
  apiKey: 60,
  name: 'DescribeCluster',
  versions: '0-2',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    errorMessage: string({ nullable: true, default: null }),
    endpointType: int8({ versions: '1+', default: 1 }),
    clusterId: string(),
    controllerId: int32({ default: -1 }),
    brokers: array({
      brokerId: int32(),
      host: string(),
      port: int32(),
      rack: string({ nullable: true, default: null }),
      isFenced: boolean({ versions: '2+' }),
    }),
    clusterAuthorizedOperations: int32({ default: -2147483648 }),
  },
})
export type DescribeClusterResponse = MessageType<typeof DescribeClusterResponse>
