import { apis } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { distinct } from './distinct.ts'
import { errorCodeOf } from './errors.ts'

/**
 * DeleteGroups, 0 to 2.
 *
 *   2  flexible
 *
 * Deletes groups without members, with all that they committed; one that has members is NON_EMPTY_GROUP.
 */
export const deleteGroups = defineApi({
  api: apis.DeleteGroups,
  versions: { min: 0, max: 2 },
  async handle({ groupsNames }, { services }) {
    const deleted = await services.groups.deleteGroups(distinct(groupsNames, (groupId) => groupId))
    const results = deleted.map(({ groupId, reason }) => ({
      groupId,
      errorCode: reason === null ? 0 : errorCodeOf(reason),
    }))
    return { body: { results } }
  },
  fault: ({ groupsNames }, errorCode) => ({ results: groupsNames.map((groupId) => ({ groupId, errorCode })) }),
})
