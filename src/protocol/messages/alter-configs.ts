import { type MessageType, request, response } from '../message.ts'
import { array, boolean, int8, int16, int32, string } from '../schema.ts'

export const AlterConfigsRequest = request({
  apiKey: 33,
  name: 'AlterConfigs',
  versions: '0-2',
  flexible: '2+',
  fields: {
    resources: array({
      resourceType: int8(),
      resourceName: string(),
      configs: array({
        name: string(),
        value: string({ nullable: true }),
      }),
    }),
    validateOnly: boolean(),
  },
})
export type AlterConfigsRequest = MessageType<typeof AlterConfigsRequest>

export const AlterConfigsResponse = response({
  apiKey: 33,
  name: 'AlterConfigs',
  versions: '0-2',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    responses: array({
      errorCode: int16(),
      errorMessage: string({ nullable: true }),
      resourceType: int8(),
      resourceName: string(),
    }),
  },
})
export type AlterConfigsResponse = MessageType<typeof AlterConfigsResponse>
