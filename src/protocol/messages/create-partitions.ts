import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int16, int32, string } from '../schema.ts'

export const CreatePartitionsRequest = request({
  apiKey: 37,
  name: 'CreatePartitions',
  versions: '0-3',
  flexible: '2+',
  fields: {
    topics: array({
      name: string(),
      count: int32(),
      assignments: array(
        {
          brokerIds: arrayOf(int32()),
        },
        { nullable: true },
      ),
    }),
    timeoutMs: int32(),
    validateOnly: boolean(),
  },
})
export type CreatePartitionsRequest = MessageType<typeof CreatePartitionsRequest>

export const CreatePartitionsResponse = response({
  apiKey: 37,
  name: 'CreatePartitions',
  versions: '0-3',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    results: array({
      name: string(),
      errorCode: int16(),
      errorMessage: string({ nullable: true, default: null }),
    }),
  },
})
export type CreatePartitionsResponse = MessageType<typeof CreatePartitionsResponse>
