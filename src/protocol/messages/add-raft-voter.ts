import { type MessageType, request, response } from '../message.ts'
import { array, boolean, int16, int32, string, uint16, uuid } from '../schema.ts'

export const AddRaftVoterRequest = request({
  apiKey: 80,
  name: 'AddRaftVoter',
  versions: '0-1',
  flexible: '0+',
  fields: {
    clusterId: string({ nullable: true }),
    timeoutMs: int32(),
    voterId: int32(),
    voterDirectoryId: uuid(),
    listeners: array({
      name: string(),
      host: string(),
      port: uint16(),
    }),
    ackWhenCommitted: boolean({ versions: '1+', default: true }),
  },
})
export type AddRaftVoterRequest = MessageType<typeof AddRaftVoterRequest>

export const AddRaftVoterResponse = response({
  apiKey: 80,
  name: 'AddRaftVoter',
  versions: '0-1',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    errorMessage: string({ nullable: true, ignorable: true }),
  },
})
export type AddRaftVoterResponse = MessageType<typeof AddRaftVoterResponse>
