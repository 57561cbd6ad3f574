import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int8, int16, int32, string } from '../schema.ts'

export const ListConfigResourcesRequest = request({
  apiKey: 74,
  name: 'ListConfigResources',
  versions: '0-1',
  flexible: '0+',
  fields: {
    resourceTypes: arrayOf(int8(), { versions: '1+' }),
  },
})
export type ListConfigResourcesRequest = MessageType<typeof ListConfigResourcesRequest>

export const ListConfigResourcesResponse = response({
  apiKey: 74,
  name: 'ListConfigResources',
  versions: '0-1',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    configResources: array({
      resourceName: string(),
      resourceType: int8({ versions: '1+', default: 16, ignorable: true }),
    }),
  },
})
export type ListConfigResourcesResponse = MessageType<typeof ListConfigResourcesResponse>
