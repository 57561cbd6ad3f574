import { type MessageType, request, response } from '../message.ts'
import { array, int16, int32, string } from '../schema.ts'

export const LeaveGroupRequest = request({
  apiKey: 13,
  name: 'LeaveGroup',
  versions: '0-5',
  flexible: '4+',
  fields: {
    groupId: string(),
    memberId: string({ versions: '0-2' }),
    members: array(
      {
        memberId: string(),
        groupInstanceId: string({ nullable: true, default: null }),
        reason: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
      },
      { versions: '3+' },
    ),
  },
})
export type LeaveGroupRequest = MessageType<typeof LeaveGroupRequest>

export const LeaveGroupResponse = response({
  apiKey: 13,
  name: 'LeaveGroup',
  versions: '0-5',
  flexible: '4+',
  fields: {
    throttleTimeMs: int32({ versions: '1+', ignorable: true }),
    errorCode: int16(),
    members: array(
      {
        memberId: string(),
        groupInstanceId: string({ nullable: true }),
        errorCode: int16(),
      },
      { versions: '3+' },
    ),
  },
})
export type LeaveGroupResponse = MessageType<typeof LeaveGroupResponse>
