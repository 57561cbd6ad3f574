import type { DescribeGroupResponse } from '../group/index.ts'
import { apis, type DescribeGroupsResponse, ErrorCode, type MessageInput } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { groupOperations, operationsNotAsked } from './authorized-operations.ts'
import { distinct } from './distinct.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'
import { inTurns } from './in-turns.ts'

/**
 * DescribeGroups, 0 to 6.
 *
 *   3  authorized operations     4  static members     5  flexible     6  an unknown group is an error
 *
 * Trips clients: up to 5 an unknown group is no error but a group in state Dead.
 */
export const describeGroups = defineApi({
  api: apis.DescribeGroups,
  versions: { min: 0, max: 6 },
  async handle(request, { apiVersion, services }) {
    const described = await inTurns(
      distinct(request.groups, (groupId) => groupId),
      services.platform.timers,
      async (groupId) => (await services.groups.describeGroups([groupId]))[0]!,
    )
    const operations = request.includeAuthorizedOperations ? groupOperations : operationsNotAsked
    return { body: { groups: described.map((group) => groupAnswer(group, operations, apiVersion)) } }
  },
  fault: (request, errorCode, apiVersion) => ({
    groups: request.groups.map((groupId) => refused(groupId, errorCode, '', apiVersion)),
  }),
})

type GroupAnswer = MessageInput<typeof DescribeGroupsResponse>['groups'][number]

function groupAnswer(group: DescribeGroupResponse, authorizedOperations: number, apiVersion: number): GroupAnswer {
  if (!group.ok) {
    if (group.reason !== 'group-id-not-found') return refused(group.groupId, errorCodeOf(group.reason), '', apiVersion)
    return refused(group.groupId, apiVersion >= 6 ? ErrorCode.GROUP_ID_NOT_FOUND : ErrorCode.NONE, 'Dead', apiVersion)
  }
  return {
    errorCode: ErrorCode.NONE,
    groupId: group.groupId,
    groupState: group.state,
    protocolType: group.protocolType,
    protocolData: group.protocolName,
    members: group.members.map(({ memberId, groupInstanceId, clientId, clientHost, metadata, assignment }) => ({
      memberId,
      groupInstanceId,
      clientId,
      clientHost,
      memberMetadata: metadata,
      memberAssignment: assignment,
    })),
    ...(apiVersion >= 3 ? { authorizedOperations } : {}),
  }
}

function refused(groupId: string, errorCode: ErrorCode, groupState: string, apiVersion: number): GroupAnswer {
  return {
    errorCode,
    groupId,
    groupState,
    protocolType: '',
    protocolData: '',
    members: [],
    ...(apiVersion >= 6 ? { errorMessage: errorMessageOf(errorCode) } : {}),
  }
}
