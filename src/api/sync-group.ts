import { apis, ErrorCode } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf } from './errors.ts'

/**
 * SyncGroup, 0 to 5.
 *
 *   3  static members     4  flexible     5  the protocol must be named, is checked, and told
 *
 * Trips clients: the answer waits for the leader's assignment.
 */
export const syncGroup = defineApi({
  api: apis.SyncGroup,
  versions: { min: 0, max: 5 },
  brief: true,
  async handle(request, { apiVersion, services }) {
    const isNamed = request.protocolType !== null && request.protocolName !== null
    if (apiVersion >= 5 && !isNamed) return { body: refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) }
    const synced = await services.groups.syncGroup(request)
    if (!synced.ok) return { body: refused(errorCodeOf(synced.reason)) }
    const { protocolType, protocolName, assignment } = synced
    return { body: { errorCode: 0, protocolType, protocolName, assignment } }
  },
  fault: (_request, errorCode) => refused(errorCode),
})

function refused(errorCode: ErrorCode) {
  return { errorCode, assignment: Buffer.alloc(0) }
}
