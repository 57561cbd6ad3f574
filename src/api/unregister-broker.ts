import type { BrokerId } from '../base/index.ts'
import { apis, ErrorCode } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'

/**
 * UnregisterBroker, 0.
 *
 * Any broker takes it, of any broker. For one that is gone for good: its replicas stay assigned to it until they are reassigned.
 * One that lives registers again, with replicas that count as lost.
 */
export const unregisterBroker = defineApi({
  api: apis.UnregisterBroker,
  versions: { min: 0, max: 0 },
  async handle({ brokerId }, { services }) {
    const options = { timeoutMs: services.config.values.requestTimeoutMs }
    const result = await services.coordination.admin.unregisterBroker(brokerId as BrokerId, options)
    if (result.ok) return { body: { errorCode: ErrorCode.NONE, errorMessage: null } }
    return { body: { errorCode: errorCodeOf(result.reason), errorMessage: result.message } }
  },
  fault: (_request, errorCode) => ({ errorCode, errorMessage: errorMessageOf(errorCode) }),
})
