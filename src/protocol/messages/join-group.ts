import { type MessageType, request, response } from '../message.ts'
import { array, boolean, bytes, int16, int32, string } from '../schema.ts'

export const JoinGroupRequest = request({
  apiKey: 11,
  name: 'JoinGroup',
  versions: '0-9',
  flexible: '6+',
  fields: {
    groupId: string(),
    sessionTimeoutMs: int32(),
    rebalanceTimeoutMs: int32({ versions: '1+', default: -1, ignorable: true }),
    memberId: string(),
    groupInstanceId: string({ versions: '5+', nullable: true, default: null }),
    protocolType: string(),
    protocols: array({
      name: string(),
      metadata: bytes(),
    }),
    reason: string({ versions: '8+', nullable: true, default: null, ignorable: true }),
  },
})
export type JoinGroupRequest = MessageType<typeof JoinGroupRequest>

export const JoinGroupResponse = response({
  apiKey: 11,
  name: 'JoinGroup',
  versions: '0-9',
  flexible: '6+',
  fields: {
    throttleTimeMs: int32({ versions: '2+', ignorable: true }),
    errorCode: int16(),
    generationId: int32({ default: -1 }),
    protocolType: string({ versions: '7+', nullable: true, default: null, ignorable: true }),
    protocolName: string({ nullable: '7+' }),
    leader: string(),
    skipAssignment: boolean({ versions: '9+' }),
    memberId: string(),
    members: array({
      memberId: string(),
      groupInstanceId: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
      metadata: bytes(),
    }),
  },
})
export type JoinGroupResponse = MessageType<typeof JoinGroupResponse>
