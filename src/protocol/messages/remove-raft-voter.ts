import { type MessageType, request, response } from '../message.ts'
import { int16, int32, string, uuid } from '../schema.ts'

export const RemoveRaftVoterRequest = request({
  apiKey: 81,
  name: 'RemoveRaftVoter',
  versions: '0',
  flexible: '0+',
  fields: {
    clusterId: string({ nullable: true }),
    voterId: int32(),
    voterDirectoryId: uuid(),
  },
})
export type RemoveRaftVoterRequest = MessageType<typeof RemoveRaftVoterRequest>

export const RemoveRaftVoterResponse = response({
  apiKey: 81,
  name: 'RemoveRaftVoter',
  versions: '0',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    errorMessage: string({ nullable: true, ignorable: true }),
  },
})
export type RemoveRaftVoterResponse = MessageType<typeof RemoveRaftVoterResponse>
