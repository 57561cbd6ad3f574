import { type MessageType, request, response } from '../message.ts'
import { bytes, int16, int64, string } from '../schema.ts'

export const SaslAuthenticateRequest = request({
  apiKey: 36,
  name: 'SaslAuthenticate',
  versions: '0-2',
  flexible: '2+',
  fields: {
    authBytes: bytes(),
  },
})
export type SaslAuthenticateRequest = MessageType<typeof SaslAuthenticateRequest>

export const SaslAuthenticateResponse = response({
  apiKey: 36,
  name: 'SaslAuthenticate',
  versions: '0-2',
  flexible: '2+',
  fields: {
    errorCode: int16(),
    errorMessage: string({ nullable: true }),
    authBytes: bytes(),
    sessionLifetimeMs: int64({ versions: '1+', ignorable: true }),
  },
})
export type SaslAuthenticateResponse = MessageType<typeof SaslAuthenticateResponse>
