import type { BrokerId } from '../base/index.ts'
import { apis, ErrorCode } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorMessageOf } from './errors.ts'
import { voterAnswer, voterFault } from './raft-voters.ts'

/**
 * AddRaftVoter, 0 to 1.
 *
 *   1  the client says whether to wait for the commit
 *
 * Any broker takes it and asks the quorum's leader, which brings the node up to date first: it runs already and follows. Of its
 * listeners the first is taken, the one where it takes the streams of other nodes. The answer always waits for the commit. A node
 * that was started alone has no way to others: UNSUPPORTED_VERSION, as of a Kafka cluster whose voters are fixed.
 */
export const addRaftVoter = defineApi({
  api: apis.AddRaftVoter,
  versions: { min: 0, max: 1 },
  async handle(request, { services }) {
    const { timeoutMs, voterId, voterDirectoryId, listeners } = request
    const fault = voterFault(request, services.clusterId)
    if (fault !== undefined) return { body: fault }
    const [listener] = listeners
    if (listener === undefined) {
      return { body: { errorCode: ErrorCode.INVALID_REQUEST, errorMessage: 'The request names no listener' } }
    }
    const { host, port } = listener
    const voter = {
      id: voterId as BrokerId,
      directoryId: voterDirectoryId,
      endpoint: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    }
    const options = { timeoutMs: Math.max(0, timeoutMs) }
    return { body: voterAnswer(await services.coordination.admin.addVoter(voter, options)) }
  },
  fault: (_request, errorCode) => ({ errorCode, errorMessage: errorMessageOf(errorCode) }),
})
