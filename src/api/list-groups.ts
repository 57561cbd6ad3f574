import { apis } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf } from './errors.ts'

/**
 * ListGroups, 0 to 5.
 *
 *   3  flexible     4  states, and a filter on them     5  types, and a filter on them
 *
 * The groups that this broker coordinates: a client that wants all asks every broker.
 */
export const listGroups = defineApi({
  api: apis.ListGroups,
  versions: { min: 0, max: 5 },
  async handle({ statesFilter, typesFilter }, { services }) {
    const listed = await services.groups.listGroups({ states: statesFilter, types: typesFilter })
    if (!listed.ok) return { body: { errorCode: errorCodeOf(listed.reason), groups: [] } }
    const groups = listed.groups.map(({ groupId, protocolType, state, type }) => ({
      groupId,
      protocolType,
      groupState: state,
      groupType: type,
    }))
    return { body: { errorCode: 0, groups } }
  },
  fault: (_request, errorCode) => ({ errorCode, groups: [] }),
})
