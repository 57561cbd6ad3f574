import { type MessageType, request, response } from '../message.ts'
import { int16, int32, string } from '../schema.ts'

export const HeartbeatRequest = request({
  apiKey: 12,
  name: 'Heartbeat',
  versions: '0-4',
  flexible: '4+',
  fields: {
    groupId: string(),
    generationId: int32(),
    memberId: string(),
    groupInstanceId: string({ versions: '3+', nullable: true, default: null }),
  },
})
export type HeartbeatRequest = MessageType<typeof HeartbeatRequest>

export const HeartbeatResponse = response({
  apiKey: 12,
  name: 'Heartbeat',
  versions: '0-4',
  flexible: '4+',
  fields: {
    throttleTimeMs: int32({ versions: '1+', ignorable: true }),
    errorCode: int16(),
  },
})
export type HeartbeatResponse = MessageType<typeof HeartbeatResponse>
