import { type MessageType, request, response } from '../message.ts'
import { array, boolean, int8, int16, int32, string } from '../schema.ts'

export const UpdateFeaturesRequest = request({
  apiKey: 57,
  name: 'UpdateFeatures',
  versions: '0-2',
  flexible: '0+',
  fields: {
    timeoutMs: int32({ default: 60_000 }),
    featureUpdates: array({
      feature: string(),
      maxVersionLevel: int16(),
      allowDowngrade: boolean({ versions: '0' }),
      upgradeType: int8({ versions: '1+', default: 1 }),
    }),
    validateOnly: boolean({ versions: '1+', default: false }),
  },
})
export type UpdateFeaturesRequest = MessageType<typeof UpdateFeaturesRequest>

export const UpdateFeaturesResponse = response({
  apiKey: 57,
  name: 'UpdateFeatures',
  versions: '0-2',
  flexible: '0+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    errorMessage: string({ nullable: true }),
    results: array(
      {
        feature: string(),
        errorCode: int16(),
        errorMessage: string({ nullable: true }),
      },
      { versions: '0-1', ignorable: true },
    ),
  },
})
export type UpdateFeaturesResponse = MessageType<typeof UpdateFeaturesResponse>
