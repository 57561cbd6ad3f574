import type { MemberIdentity } from '../group/index.ts'
import { apis, type LeaveGroupRequest } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf } from './errors.ts'

/**
 * LeaveGroup, 0 to 5.
 *
 *   3  many members, an error for each (before it is one, whose error stands at the top)     4  flexible     5  why
 */
export const leaveGroup = defineApi({
  api: apis.LeaveGroup,
  versions: { min: 0, max: 5 },
  brief: true,
  async handle(request, { apiVersion, services }) {
    const left = await services.groups.leaveGroup({ groupId: request.groupId, members: membersOf(request, apiVersion) })
    if (!left.ok) return { body: { errorCode: errorCodeOf(left.reason) } }
    const members = left.members.map(({ memberId, groupInstanceId, reason }) => ({
      memberId,
      groupInstanceId,
      errorCode: reason === null ? 0 : errorCodeOf(reason),
    }))
    return { body: apiVersion >= 3 ? { errorCode: 0, members } : { errorCode: members[0]!.errorCode } }
  },
  fault: (_request, errorCode) => ({ errorCode }),
})

function membersOf(request: LeaveGroupRequest, apiVersion: number): readonly MemberIdentity[] {
  return apiVersion >= 3 ? request.members : [{ memberId: request.memberId, groupInstanceId: null }]
}
