import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, bytes, int16, int32, string } from '../schema.ts'

export const DescribeGroupsRequest = request({
  apiKey: 15,
  name: 'DescribeGroups',
  versions: '0-6',
  flexible: '5+',
  fields: {
    groups: arrayOf(string()),
    includeAuthorizedOperations: boolean({ versions: '3+' }),
  },
})
export type DescribeGroupsRequest = MessageType<typeof DescribeGroupsRequest>

export const DescribeGroupsResponse = response({
  apiKey: 15,
  name: 'DescribeGroups',
  versions: '0-6',
  flexible: '5+',
  fields: {
    throttleTimeMs: int32({ versions: '1+', ignorable: true }),
    groups: array({
      errorCode: int16(),
      errorMessage: string({ versions: '6+', nullable: true, default: null }),
      groupId: string(),
      groupState: string(),
      protocolType: string(),
      protocolData: string(),
      members: array({
        memberId: string(),
        groupInstanceId: string({ versions: '4+', nullable: true, default: null, ignorable: true }),
        clientId: string(),
        clientHost: string(),
        memberMetadata: bytes(),
        memberAssignment: bytes(),
      }),
      authorizedOperations: int32({ versions: '3+', default: -2147483648 }),
    }),
  },
})
export type DescribeGroupsResponse = MessageType<typeof DescribeGroupsResponse>
