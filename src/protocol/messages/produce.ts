import { type MessageType, request, response } from '../message.ts'
import { array, int16, int32, int64, records, string, struct, uuid } from '../schema.ts'

export const ProduceRequest = request({
  apiKey: 0,
  name: 'Produce',
  versions: '3-13',
  flexible: '9+',
  fields: {
    transactionalId: string({ nullable: true, default: null }),
    acks: int16(),
    timeoutMs: int32(),
    topicData: array({
      name: string({ versions: '3-12', ignorable: true }),
      topicId: uuid({ versions: '13+', ignorable: true }),
      partitionData: array({
        index: int32(),
        records: records(),
      }),
    }),
  },
})
export type ProduceRequest = MessageType<typeof ProduceRequest>

export const ProduceResponse = response({
  apiKey: 0,
  name: 'Produce',
  versions: '3-13',
  flexible: '9+',
  fields: {
    responses: array({
      name: string({ versions: '3-12', ignorable: true }),
      topicId: uuid({ versions: '13+', ignorable: true }),
      partitionResponses: array({
        index: int32(),
        errorCode: int16(),
        baseOffset: int64(),
        logAppendTimeMs: int64({ default: -1 }),
        logStartOffset: int64({ versions: '5+', default: -1, ignorable: true }),
        recordErrors: array(
          {
            batchIndex: int32(),
            batchIndexErrorMessage: string({ nullable: true, default: null }),
          },
          { versions: '8+', ignorable: true },
        ),
        errorMessage: string({ versions: '8+', nullable: true, default: null, ignorable: true }),
        currentLeader: struct(
          {
            leaderId: int32({ default: -1 }),
            leaderEpoch: int32({ default: -1 }),
          },
          { versions: '10+', tag: 0 },
        ),
      }),
    }),
    throttleTimeMs: int32({ default: 0 }),
    nodeEndpoints: array(
      {
        nodeId: int32(),
        host: string(),
        port: int32(),
        rack: string({ nullable: true, default: null }),
      },
      { versions: '10+', tag: 0 },
    ),
  },
})
export type ProduceResponse = MessageType<typeof ProduceResponse>
