import { apis } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf } from './errors.ts'

/** Heartbeat, 0 to 4: 3 static members, 4 flexible. REBALANCE_IN_PROGRESS tells a member to join again; it counts as alive. */
export const heartbeat = defineApi({
  api: apis.Heartbeat,
  versions: { min: 0, max: 4 },
  brief: true,
  async handle(request, { services }) {
    const beat = await services.groups.heartbeat(request)
    return { body: { errorCode: beat.ok ? 0 : errorCodeOf(beat.reason) } }
  },
  fault: (_request, errorCode) => ({ errorCode }),
})
