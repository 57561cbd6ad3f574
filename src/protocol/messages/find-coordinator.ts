import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int8, int16, int32, string } from '../schema.ts'

export const FindCoordinatorRequest = request({
  apiKey: 10,
  name: 'FindCoordinator',
  versions: '0-6',
  flexible: '3+',
  fields: {
    key: string({ versions: '0-3' }),
    keyType: int8({ versions: '1+' }),
    coordinatorKeys: arrayOf(string(), { versions: '4+' }),
  },
})
export type FindCoordinatorRequest = MessageType<typeof FindCoordinatorRequest>

export const FindCoordinatorResponse = response({
  apiKey: 10,
  name: 'FindCoordinator',
  versions: '0-6',
  flexible: '3+',
  fields: {
    throttleTimeMs: int32({ versions: '1+', ignorable: true }),
    errorCode: int16({ versions: '0-3' }),
    errorMessage: string({ versions: '1-3', nullable: true, ignorable: true }),
    nodeId: int32({ versions: '0-3' }),
    host: string({ versions: '0-3' }),
    port: int32({ versions: '0-3' }),
    coordinators: array(
      {
        key: string(),
        nodeId: int32(),
        host: string(),
        port: int32(),
        errorCode: int16(),
        errorMessage: string({ nullable: true }),
      },
      { versions: '4+' },
    ),
  },
})
export type FindCoordinatorResponse = MessageType<typeof FindCoordinatorResponse>
