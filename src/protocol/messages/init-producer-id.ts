import { type MessageType, request, response } from '../message.ts'
import { boolean, int16, int32, int64, string } from '../schema.ts'

export const InitProducerIdRequest = request({
  apiKey: 22,
  name: 'InitProducerId',
  versions: '0-6',
  flexible: '2+',
  fields: {
    transactionalId: string({ nullable: true }),
    transactionTimeoutMs: int32(),
    producerId: int64({ versions: '3+', default: -1 }),
    producerEpoch: int16({ versions: '3+', default: -1 }),
    enable2Pc: boolean({ versions: '6+' }),
    keepPreparedTxn: boolean({ versions: '6+' }),
  },
})
export type InitProducerIdRequest = MessageType<typeof InitProducerIdRequest>

export const InitProducerIdResponse = response({
  apiKey: 22,
  name: 'InitProducerId',
  versions: '0-6',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    producerId: int64({ default: -1 }),
    producerEpoch: int16(),
    ongoingTxnProducerId: int64({ versions: '6+', default: -1 }),
    ongoingTxnProducerEpoch: int16({ versions: '6+', default: -1 }),
  },
})
export type InitProducerIdResponse = MessageType<typeof InitProducerIdResponse>
