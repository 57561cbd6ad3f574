import { type MessageType, request, response } from '../message.ts'
import { array, bytes, int16, int32, string } from '../schema.ts'

export const SyncGroupRequest = request({
  apiKey: 14,
  name: 'SyncGroup',
  versions: '0-5',
  flexible: '4+',
  fields: {
    groupId: string(),
    generationId: int32(),
    memberId: string(),
    groupInstanceId: string({ versions: '3+', nullable: true, default: null }),
    protocolType: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
    protocolName: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
    assignments: array({
      memberId: string(),
      assignment: bytes(),
    }),
  },
})
export type SyncGroupRequest = MessageType<typeof SyncGroupRequest>

export const SyncGroupResponse = response({
  apiKey: 14,
  name: 'SyncGroup',
  versions: '0-5',
  flexible: '4+',
  fields: {
    throttleTimeMs: int32({ versions: '1+', ignorable: true }),
    errorCode: int16(),
    protocolType: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
    protocolName: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
    assignment: bytes(),
  },
})
export type SyncGroupResponse = MessageType<typeof SyncGroupResponse>
