import type { FeatureUpdate } from '../coordination/index.ts'
import {
  apis,
  ErrorCode,
  type MessageInput,
  type UpdateFeaturesRequest,
  type UpdateFeaturesResponse,
} from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'

/**
 * UpdateFeatures, 0 to 2.
 *
 *   1  the kind of update, also only to try it     2  one error for all of it
 *
 * Any broker takes it. All of a request is done, or none: with the first that can't be, every feature of it is refused. Level 0
 * removes a feature. The levels of metadata.version are Rookery's own, not Kafka's.
 */
export const updateFeatures = defineApi({
  api: apis.UpdateFeatures,
  versions: { min: 0, max: 2 },
  async handle(request, context) {
    const { apiVersion } = context
    // Of a feature that stands twice the last word counts.
    const updates = new Map<string, FeatureUpdate>()
    for (const asked of request.featureUpdates) {
      const upgradeType = upgradeTypeOf(asked, apiVersion)
      if (upgradeType === undefined) {
        const message = `There is no upgrade type ${asked.upgradeType}`
        return { body: answer(request, ErrorCode.INVALID_UPDATE_VERSION, whole(message), apiVersion) }
      }
      updates.set(asked.feature, { feature: asked.feature, level: asked.maxVersionLevel, upgradeType })
    }
    const options = { timeoutMs: Math.max(0, request.timeoutMs), validateOnly: request.validateOnly }
    const result = await context.services.coordination.admin.updateFeatures([...updates.values()], options)
    if (result.ok) return { body: answer(request, ErrorCode.NONE, null, apiVersion) }
    const message = whole(`${result.feature}: ${result.message}`)
    return { body: answer(request, errorCodeOf(result.reason), message, apiVersion) }
  },
  fault: (request, errorCode, apiVersion) => answer(request, errorCode, errorMessageOf(errorCode), apiVersion),
})

type AskedUpdate = UpdateFeaturesRequest['featureUpdates'][number]

function upgradeTypeOf(
  { allowDowngrade, upgradeType }: AskedUpdate,
  apiVersion: number,
): FeatureUpdate['upgradeType'] | undefined {
  if (apiVersion === 0) return allowDowngrade ? 'safe-downgrade' : 'upgrade'
  return upgradeTypes[upgradeType]
}

const upgradeTypes: Readonly<Record<number, FeatureUpdate['upgradeType']>> = {
  1: 'upgrade',
  2: 'safe-downgrade',
  3: 'unsafe-downgrade',
}

function whole(message: string): string {
  return `The update failed for all features since the following feature had an error: ${message}`
}

function answer(
  { featureUpdates }: UpdateFeaturesRequest,
  errorCode: ErrorCode,
  errorMessage: string | null,
  apiVersion: number,
): MessageInput<typeof UpdateFeaturesResponse> {
  if (apiVersion >= 2) return { errorCode, errorMessage }
  // As in Kafka, they tell of success only, with the name of the code as the message.
  const isDone = errorCode === ErrorCode.NONE
  const results = isDone ? featureUpdates.map(({ feature }) => ({ feature, errorCode, errorMessage: 'NONE' })) : []
  return { errorCode, errorMessage, results }
}
