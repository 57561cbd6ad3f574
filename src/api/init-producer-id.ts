import { apis, ErrorCode } from '../protocol/index.ts'
import { defineApi } from './api.ts'

/**
 * InitProducerId, 0 to 5. (6 must not be offered: Java clients would use it, and it is not stable.)
 *
 *   2  flexible     3  the producer's current id and epoch (KIP-360)     4  PRODUCER_FENCED     5  TRANSACTION_ABORTABLE
 *
 * Without a transactional id: a new id with epoch 0, whatever the request says of a current one, as in Kafka;
 * but an id without an epoch, or an epoch without an id, is refused.
 *
 * Differs from Kafka: transactions are not built. An id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the one code
 * that every client takes as final: librdkafka tries again for a minute after any other, and there is no room for a message.
 * Most clients never get here: FindCoordinator has told them.
 */
export const initProducerId = defineApi({
  api: apis.InitProducerId,
  versions: { min: 0, max: 5 },
  brief: true,
  async handle(request, { services }) {
    if (request.transactionalId === '') return { body: refused(ErrorCode.INVALID_REQUEST) }
    if ((request.producerId === -1) !== (request.producerEpoch === -1)) {
      return { body: refused(ErrorCode.INVALID_REQUEST) }
    }
    if (request.transactionalId !== null) return { body: refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) }
    try {
      const producerId = await services.producerIds.next()
      return { body: { errorCode: ErrorCode.NONE, producerId, producerEpoch: 0 } }
    } catch (error) {
      // No controller gave a block of ids in time. This code makes every client ask again.
      services.log.warn({ error }, 'no producer id')
      return { body: refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) }
    }
  },
  fault: (_request, errorCode) => refused(errorCode),
})

function refused(errorCode: ErrorCode) {
  return { errorCode, producerId: -1, producerEpoch: -1 }
}
