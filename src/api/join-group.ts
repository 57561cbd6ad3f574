import { apis, type ErrorCode, type JoinGroupResponse, type MessageInput } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf } from './errors.ts'

/**
 * JoinGroup, 0 to 9.
 *
 *   1  rebalance timeout (in 0 it is the session timeout)     6  flexible
 *   2  throttle time                                          7  the type of protocol in the answer
 *   4  a new member is given its id first (KIP-394)           8  why it joins
 *   5  static members                                         9  a leader may keep its assignment
 *
 * Trips clients: the answer waits until the whole group has joined, with everything behind it on the connection. Only the
 * leader's answer has members. With an error the protocol's name is null from 7 on, and '' before.
 */
export const joinGroup = defineApi({
  api: apis.JoinGroup,
  versions: { min: 0, max: 9 },
  brief: true,
  async handle(request, { apiVersion, clientId, connection, services }) {
    const { groupId, memberId, groupInstanceId, sessionTimeoutMs, rebalanceTimeoutMs, protocolType, protocols } =
      request
    const joined = await services.groups.joinGroup({
      groupId,
      memberId,
      groupInstanceId,
      clientId: clientId ?? '',
      clientHost: `/${connection.remoteAddress}`,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      protocolType,
      protocols,
      requireKnownMemberId: apiVersion >= 4,
      supportsSkippingAssignment: apiVersion >= 9,
      reason: request.reason,
    })
    if (!joined.ok) return { body: refused(errorCodeOf(joined.reason), joined.memberId, apiVersion) }
    const { generationId, protocolName, leader, members, skipAssignment } = joined
    return {
      body: {
        errorCode: 0,
        generationId,
        protocolType: joined.protocolType,
        protocolName,
        leader,
        memberId: joined.memberId,
        members,
        ...(apiVersion >= 9 ? { skipAssignment } : {}),
      },
    }
  },
  fault: (request, errorCode, apiVersion) => refused(errorCode, request.memberId, apiVersion),
})

function refused(errorCode: ErrorCode, memberId: string, apiVersion: number): MessageInput<typeof JoinGroupResponse> {
  return { errorCode, protocolName: apiVersion >= 7 ? null : '', leader: '', memberId, members: [] }
}
