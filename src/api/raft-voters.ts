import { type Uuid, zeroUuid } from '../base/index.ts'
import type { ChangeVotersResult } from '../coordination/index.ts'
import { ErrorCode } from '../protocol/index.ts'
import { errorCodeOf } from './errors.ts'

interface Answer {
  readonly errorCode: ErrorCode
  readonly errorMessage: string | null
}

interface AskedVoter {
  readonly clusterId: string | null
  readonly voterId: number
  readonly voterDirectoryId: Uuid
}

/** Why a request about a voter can't be meant for this cluster; undefined when it can. One without a cluster id is for any. */
export function voterFault({ clusterId, voterId, voterDirectoryId }: AskedVoter, own: string): Answer | undefined {
  if (clusterId !== null && clusterId !== own) {
    const errorMessage = `This is cluster ${own}, not the one that the request is for`
    return { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID, errorMessage }
  }
  if (voterId >= 0 && voterDirectoryId !== zeroUuid) return undefined
  return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage: 'A voter has an id and the id of its directory' }
}

export function voterAnswer(result: ChangeVotersResult): Answer {
  if (result.ok) return { errorCode: ErrorCode.NONE, errorMessage: null }
  return { errorCode: errorCodeOf(result.reason), errorMessage: result.message }
}
