import { eligibleLeaderReplicas, type MetadataImage, type MetadataRecord, metadataVersion } from '../metadata/index.ts'
import type { ControllerSettings } from './decision.ts'
import { eligibilityRecords } from './features.ts'

/**
 * The first entry of a new cluster: which records may follow, whose they are, and the features that a new cluster has.
 * Empty in a cluster that has begun.
 */
export function clusterStart(image: MetadataImage, clusterId: string, settings: ControllerSettings): MetadataRecord[] {
  if (image.features.has(metadataVersion.feature)) return []
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
