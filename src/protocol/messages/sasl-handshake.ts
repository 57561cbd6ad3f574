import { type MessageType, request, response } from '../message.ts'
import { arrayOf, int16, string } from '../schema.ts'

export const SaslHandshakeRequest = request({
  apiKey: 17,
  name: 'SaslHandshake',
  versions: '0-1',
  fields: {
    mechanism: string(),
  },
})
export type SaslHandshakeRequest = MessageType<typeof SaslHandshakeRequest>

export const SaslHandshakeResponse = response({
  apiKey: 17,
  name: 'SaslHandshake',
  versions: '0-1',
  fields: {
    errorCode: int16(),
    mechanisms: arrayOf(string()),
  },
})
export type SaslHandshakeResponse = MessageType<typeof SaslHandshakeResponse>
