import { type MessageType, request, response } from '../message.ts'
import { int16, int32, string } from '../schema.ts'

export const UnregisterBrokerRequest = request({
  apiKey: 64,
  name: 'UnregisterBroker',
  versions: '0',
  flexible: '0+',
  fields: {
    brokerId: int32(),
  },
})
export type UnregisterBrokerRequest = MessageType<typeof UnregisterBrokerRequest>

export const UnregisterBrokerResponse = response({
  apiKey: 64,
  name: 'UnregisterBroker',
  versions: '0',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    errorMessage: string({ nullable: true }),
  },
})
export type UnregisterBrokerResponse = MessageType<typeof UnregisterBrokerResponse>
