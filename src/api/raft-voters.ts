import type { ChangeVotersResult } from '../coordination/index.ts'
import { ErrorCode } from '../protocol/index.ts'
import { errorCodeOf } from './errors.ts'

interface Answer {
  readonly errorCode: ErrorCode
  readonly errorMessage: string | null
}

/** Why a request about voters is not for this cluster; undefined when it is, or names none. */
export function clusterFault(asked: string | null, own: string): Answer | undefined {
  if (asked === null || asked === own) return undefined
  const errorMessage = `This is cluster ${own}, not the one that the request is for`
  return { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID, errorMessage }
}

export function voterAnswer(result: ChangeVotersResult): Answer {
  if (result.ok) return { errorCode: ErrorCode.NONE, errorMessage: null }
  return { errorCode: errorCodeOf(result.reason), errorMessage: result.message }
}
