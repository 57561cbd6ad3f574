import { type MessageType, request, response } from '../message.ts'
import { array, boolean, int16, int32, int64, string } from '../schema.ts'

export const ApiVersionsRequest = request({
  apiKey: 18,
  name: 'ApiVersions',
  versions: '0-5',
  flexible: '3+',
  fields: {
    clientSoftwareName: string({ versions: '3+', ignorable: true }),
    clientSoftwareVersion: string({ versions: '3+', ignorable: true }),
    clusterId: string({ versions: '5+', nullable: true, default: null, ignorable: true }),
    nodeId: int32({ versions: '5+', default: -1, ignorable: true }),
  },
})
export type ApiVersionsRequest = MessageType<typeof ApiVersionsRequest>

export const ApiVersionsResponse = response({
  apiKey: 18,
  name: 'ApiVersions',
  versions: '0-5',
  flexible: '3+',
  fields: {
    errorCode: int16(),
    apiKeys: array({
      apiKey: int16(),
      minVersion: int16(),
      maxVersion: int16(),
    }),
    throttleTimeMs: int32({ versions: '1+', ignorable: true }),
    supportedFeatures: array(
      {
        name: string(),
        minVersion: int16(),
        maxVersion: int16(),
      },
      { versions: '3+', ignorable: true, tag: 0 },
    ),
    finalizedFeaturesEpoch: int64({ versions: '3+', default: -1, ignorable: true, tag: 1 }),
    finalizedFeatures: array(
      {
        name: string(),
        maxVersionLevel: int16(),
        minVersionLevel: int16(),
      },
      { versions: '3+', ignorable: true, tag: 2 },
    ),
    zkMigrationReady: boolean({ versions: '3+', ignorable: true, tag: 3 }),
  },
})
export type ApiVersionsResponse = MessageType<typeof ApiVersionsResponse>
