import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int8, int16, int32, string } from '../schema.ts'

export const DescribeConfigsRequest = request({
  apiKey: 32,
  name: 'DescribeConfigs',
  versions: '1-4',
  flexible: '4+',
  fields: {
    resources: array({
      resourceType: int8(),
      resourceName: string(),
      configurationKeys: arrayOf(string(), { nullable: true }),
    }),
    includeSynonyms: boolean({ default: false }),
    includeDocumentation: boolean({ versions: '3+' }),
  },
})
export type DescribeConfigsRequest = MessageType<typeof DescribeConfigsRequest>

export const DescribeConfigsResponse = response({
  apiKey: 32,
  name: 'DescribeConfigs',
  versions: '1-4',
  flexible: '4+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    results: array({
      errorCode: int16(),
      errorMessage: string({ nullable: true }),
      resourceType: int8(),
      resourceName: string(),
      configs: array({
        name: string(),
        value: string({ nullable: true }),
        readOnly: boolean(),
        configSource: int8({ default: -1 }),
        isSensitive: boolean(),
        synonyms: array({
          name: string(),
          value: string({ nullable: true }),
          source: int8(),
        }),
        configType: int8({ versions: '3+', ignorable: true }),
        documentation: string({ versions: '3+', nullable: true, ignorable: true }),
      }),
    }),
  },
})
export type DescribeConfigsResponse = MessageType<typeof DescribeConfigsResponse>
