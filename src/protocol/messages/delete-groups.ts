import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int16, int32, string } from '../schema.ts'

export const DeleteGroupsRequest = request({
  apiKey: 42,
  name: 'DeleteGroups',
  versions: '0-3',
  flexible: '2+',
  fields: {
    groupsNames: arrayOf(string()),
  },
})
export type DeleteGroupsRequest = MessageType<typeof DeleteGroupsRequest>

export const DeleteGroupsResponse = response({
  apiKey: 42,
  name: 'DeleteGroups',
  versions: '0-3',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    results: array({
      groupId: string(),
      errorCode: int16(),
      errorMessage: string({ versions: '3+', nullable: true, default: null, ignorable: true }),
    }),
  },
})
export type DeleteGroupsResponse = MessageType<typeof DeleteGroupsResponse>
