import type { BrokerId } from '../base/index.ts'
import { apis } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorMessageOf } from './errors.ts'
import { voterAnswer, voterFault } from './raft-voters.ts'

/**
 * RemoveRaftVoter, 0.
 *
 * Any broker takes it and asks the quorum's leader, which may be the one that goes. Both the id and the directory id have to
 * be the voter's: a node whose disk was wiped is not the voter that it was. The last voter stays; a node that was started alone
 * is a quorum that doesn't change: UNSUPPORTED_VERSION. Unlike in Kafka a removal is refused that would leave a quorum of which
 * most are away.
 */
export const removeRaftVoter = defineApi({
  api: apis.RemoveRaftVoter,
  versions: { min: 0, max: 0 },
  async handle(request, { services }) {
    const { voterId, voterDirectoryId } = request
    const fault = voterFault(request, services.clusterId)
    if (fault !== undefined) return { body: fault }
    const voter = { id: voterId as BrokerId, directoryId: voterDirectoryId }
    const options = { timeoutMs: services.config.values.requestTimeoutMs }
    return { body: voterAnswer(await services.coordination.admin.removeVoter(voter, options)) }
  },
  fault: (_request, errorCode) => ({ errorCode, errorMessage: errorMessageOf(errorCode) }),
})
