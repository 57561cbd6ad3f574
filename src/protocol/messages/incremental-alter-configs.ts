import { type MessageType, request, response } from '../message.ts'
import { array, boolean, int8, int16, int32, string } from '../schema.ts'

export const IncrementalAlterConfigsRequest = request({
  apiKey: 44,
  name: 'IncrementalAlterConfigs',
  versions: '0-1',
  flexible: '1+',
  fields: {
    resources: array({
      resourceType: int8(),
      resourceName: string(),
      configs: array({
        name: string(),
        configOperation: int8(),
        value: string({ nullable: true }),
      }),
    }),
    validateOnly: boolean(),
  },
})
export type IncrementalAlterConfigsRequest = MessageType<typeof IncrementalAlterConfigsRequest>

export const IncrementalAlterConfigsResponse = response({
  apiKey: 44,
  name: 'IncrementalAlterConfigs',
  versions: '0-1',
  flexible: '1+',
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
export type IncrementalAlterConfigsResponse = MessageType<typeof IncrementalAlterConfigsResponse>
