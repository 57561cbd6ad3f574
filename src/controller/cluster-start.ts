import { type MetadataImage, type MetadataRecord, metadataVersion } from '../metadata/index.ts'

/** The first entry of a new cluster: which records may follow, and whose they are. Empty in a cluster that has begun. */
export function clusterStart(image: MetadataImage, clusterId: string): MetadataRecord[] {
  if (image.features.has(metadataVersion.feature)) return []
  return [
    { type: 'FeatureLevel', name: metadataVersion.feature, level: metadataVersion.latest },
    { type: 'ClusterId', clusterId },
  ]
}
