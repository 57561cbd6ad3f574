import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int16, int32, string, uuid } from '../schema.ts'

export const DeleteTopicsRequest = request({
  apiKey: 20,
  name: 'DeleteTopics',
  versions: '1-6',
  flexible: '4+',
  fields: {
    topics: array(
      {
        name: string({ nullable: true, default: null }),
        topicId: uuid(),
      },
      { versions: '6+' },
    ),
    topicNames: arrayOf(string(), { versions: '1-5', ignorable: true }),
    timeoutMs: int32(),
  },
})
export type DeleteTopicsRequest = MessageType<typeof DeleteTopicsRequest>

export const DeleteTopicsResponse = response({
  apiKey: 20,
  name: 'DeleteTopics',
  versions: '1-6',
  flexible: '4+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    responses: array({
      name: string({ nullable: '6+' }),
      topicId: uuid({ versions: '6+', ignorable: true }),
      errorCode: int16(),
      errorMessage: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
    }),
  },
})
export type DeleteTopicsResponse = MessageType<typeof DeleteTopicsResponse>
