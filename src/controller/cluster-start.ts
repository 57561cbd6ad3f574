import { eligibleLeaderReplicas, type MetadataImage, type MetadataRecord, metadataVersion } from '../metadata/index.ts'
import type { ControllerSettings } from './decision.ts'
import { eligibilityRecords, minInSyncRecords } from './features.ts'

/**
 * What a new controller writes before all else: in a new cluster its first entry, which records may follow, whose they are,
 * and the features that a new cluster has; later only what its configuration says and the metadata must. Mostly nothing.
 */
export function clusterStart(image: MetadataImage, clusterId: string, settings: ControllerSettings): MetadataRecord[] {
  if (image.features.has(metadataVersion.feature)) {
    const keepsElr = (image.features.get(eligibleLeaderReplicas.feature) ?? 0) > 0
    return keepsElr ? minInSyncRecords(image, settings) : []
  }
  const levels = new Map<string, number>([
    [metadataVersion.feature, metadataVersion.latest],
    [eligibleLeaderReplicas.feature, eligibleLeaderReplicas.latest],
  ])
  return [
    ...[...levels].map(([name, level]): MetadataRecord => ({ type: 'FeatureLevel', name, level })),
    { type: 'ClusterId', clusterId },
    ...eligibilityRecords(image, levels, settings),
  ]
}
