import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int16, int32, string } from '../schema.ts'

export const ListGroupsRequest = request({
  apiKey: 16,
  name: 'ListGroups',
  versions: '0-5',
  flexible: '3+',
  fields: {
    statesFilter: arrayOf(string(), { versions: '4+' }),
    typesFilter: arrayOf(string(), { versions: '5+' }),
  },
})
export type ListGroupsRequest = MessageType<typeof ListGroupsRequest>

export const ListGroupsResponse = response({
  apiKey: 16,
  name: 'ListGroups',
  versions: '0-5',
  flexible: '3+',
  fields: {
    throttleTimeMs: int32({ versions: '1+', ignorable: true }),
    errorCode: int16(),
    groups: array({
      groupId: string(),
      protocolType: string(),
      groupState: string({ versions: '4+', ignorable: true }),
      groupType: string({ versions: '5+', ignorable: true }),
    }),
  },
})
export type ListGroupsResponse = MessageType<typeof ListGroupsResponse>
