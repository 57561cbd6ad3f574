import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int8, int16, int32, string, uuid } from '../schema.ts'

export const CreateTopicsRequest = request({
  apiKey: 19,
  name: 'CreateTopics',
  versions: '2-7',
  flexible: '5+',
  fields: {
    topics: array({
      name: string(),
      numPartitions: int32(),
      replicationFactor: int16(),
      assignments: array({
        partitionIndex: int32(),
        brokerIds: arrayOf(int32()),
      }),
      configs: array({
        name: string(),
        value: string({ nullable: true }),
      }),
    }),
    timeoutMs: int32({ default: 60000 }),
    validateOnly: boolean({ default: false }),
  },
})
export type CreateTopicsRequest = MessageType<typeof CreateTopicsRequest>

export const CreateTopicsResponse = response({
  apiKey: 19,
  name: 'CreateTopics',
  versions: '2-7',
  flexible: '5+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    topics: array({
      name: string(),
      topicId: uuid({ versions: '7+', ignorable: true }),
      errorCode: int16(),
      errorMessage: string({ nullable: true }),
      topicConfigErrorCode: int16({ versions: '5+', ignorable: true, tag: 0 }),
      numPartitions: int32({ versions: '5+', default: -1, ignorable: true }),
      replicationFactor: int16({ versions: '5+', default: -1, ignorable: true }),
      configs: array(
        {
          name: string(),
          value: string({ nullable: true }),
          readOnly: boolean(),
          configSource: int8({ default: -1 }),
          isSensitive: boolean(),
        },
        { versions: '5+', nullable: true, ignorable: true },
      ),
    }),
  },
})
export type CreateTopicsResponse = MessageType<typeof CreateTopicsResponse>
