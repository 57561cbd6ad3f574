import {
  eligibleLeaderReplicas,
  type MetadataImage,
  type MetadataRecord,
  metadataVersion,
  type SupportedFeature,
  supportedFeatures,
} from '../metadata/index.ts'
import type { ControllerSettings, Decision } from './decision.ts'
import type { FeatureUpdate, UpdateFeaturesResult } from './requests.ts'

type Refusal = Extract<UpdateFeaturesResult, { ok: false }>

/**
 * Changes the levels of features (KIP-584, KIP-778): all that are asked for, or none. A level must be supported by this
 * node, by every registered broker, fenced or not, and by every registered controller.
 */
export function updateFeatures(
  image: MetadataImage,
  updates: readonly FeatureUpdate[],
  context: { readonly settings: ControllerSettings; readonly validateOnly: boolean },
): Decision<UpdateFeaturesResult> {
  const levels = new Map(image.features)
  const seen = new Set<string>()
  const records: MetadataRecord[] = []
  for (const update of updates) {
    const { feature, level } = update
    const refusal = seen.has(feature)
      ? refuse(feature, 'invalid-request', `Feature ${feature} is in the request twice`)
      : levelRefusal(image, update)
    if (refusal !== undefined) return { records: [], response: refusal }
    seen.add(feature)
    if ((levels.get(feature) ?? 0) !== level) records.push({ type: 'FeatureLevel', name: feature, level })
    levels.set(feature, level)
  }
  const needsVersion = (levels.get(metadataVersion.feature) ?? 0) < metadataVersion.severalBrokers
  if (
    seen.has(eligibleLeaderReplicas.feature) &&
    needsVersion &&
    (levels.get(eligibleLeaderReplicas.feature) ?? 0) > 0
  ) {
    const message = `It depends on ${metadataVersion.feature} level ${metadataVersion.severalBrokers}`
    return { records: [], response: refuse(eligibleLeaderReplicas.feature, 'invalid-update-version', message) }
  }
  records.push(...eligibilityRecords(image, levels, context.settings))
  // metadata.version first: what follows may be written only from it on.
  records.sort((a, b) => rank(a) - rank(b))
  return { records: context.validateOnly ? [] : records, response: { ok: true } }
}

/** Records that must be written when eligible leader replicas come, or go. When they go, nobody is eligible any more. */
export function eligibilityRecords(
  image: MetadataImage,
  levels: ReadonlyMap<string, number>,
  settings: ControllerSettings,
): MetadataRecord[] {
  const before = (image.features.get(eligibleLeaderReplicas.feature) ?? 0) > 0
  const after = (levels.get(eligibleLeaderReplicas.feature) ?? 0) > 0
  if (before === after) return []
  if (after) return [...brokersWithoutMinInSync(image), ...minInSyncRecords(image, settings)]
  const records: MetadataRecord[] = []
  for (const { topicId, partitions } of image.topics.all()) {
    for (const { partition, elr, lastKnownElr } of partitions) {
      if (elr.length === 0 && lastKnownElr.length === 0) continue
      records.push({ type: 'PartitionChange', topicId, partition, elr: [], lastKnownElr: [] })
    }
  }
  return records
}

/**
 * A replica is eligible because the high watermark stood still below min.insync.replicas. So the controller goes by what
 * the metadata say of it, which is what all leaders go by, and by 1 where they say nothing, which makes nobody eligible.
 * This makes them say what this node's own configuration says.
 */
export function minInSyncRecords(image: MetadataImage, settings: ControllerSettings): MetadataRecord[] {
  if (settings.defaultMinInSyncReplicas === 1 || image.configs.of('broker', '').has(minInSyncReplicas)) return []
  const value = `${settings.defaultMinInSyncReplicas}`
  return [{ type: 'Config', resourceType: 'broker', resourceName: '', key: minInSyncReplicas, value }]
}

const minInSyncReplicas = 'min.insync.replicas'

function brokersWithoutMinInSync(image: MetadataImage): MetadataRecord[] {
  const records: MetadataRecord[] = []
  for (const { brokerId } of image.cluster.brokers()) {
    const resourceName = `${brokerId}`
    if (!image.configs.of('broker', resourceName).has(minInSyncReplicas)) continue
    records.push({ type: 'Config', resourceType: 'broker', resourceName, key: minInSyncReplicas, value: null })
  }
  return records
}

/** Why a node that supports `features` can't be in this cluster; undefined when it can. */
export function supportFault(image: MetadataImage, features: readonly SupportedFeature[]): string | undefined {
  for (const [name, level] of image.features) {
    if (level === 0) continue
    const supported = features.find((feature) => feature.name === name)
    if (supported === undefined) {
      // Registrations of before there were features say nothing of the level that they all have.
      if (name === metadataVersion.feature && level < metadataVersion.severalBrokers) continue
      return `The node does not know feature ${name}, which is at level ${level}`
    }
    if (level < supported.minLevel || level > supported.maxLevel) {
      return `The node supports feature ${name} from level ${supported.minLevel} to ${supported.maxLevel}, and it is at ${level}`
    }
  }
  return undefined
}

function levelRefusal(image: MetadataImage, { feature, level, upgradeType }: FeatureUpdate): Refusal | undefined {
  const current = image.features.get(feature) ?? 0
  const invalid = (message: string) => refuse(feature, 'invalid-update-version', message)
  if (!Number.isInteger(level) || level < 0 || level > 32_767) return invalid(`Level ${level}: allowed is 0 to 32767`)
  if (feature === metadataVersion.feature && level === 0) return invalid(`${feature} can't be removed`)
  if (level > current && upgradeType !== 'upgrade') {
    return invalid(`The feature is at level ${current}: ${level} is no downgrade`)
  }
  if (level < current && upgradeType === 'upgrade') {
    return invalid(
      "Can't downgrade the version of this feature without setting the upgrade type to safe or unsafe downgrade",
    )
  }
  const fault = levelFault(image, feature, level)
  if (fault !== undefined) return invalid(fault)
  if (level === current || feature !== metadataVersion.feature || upgradeType === 'upgrade') return undefined
  return invalid(
    upgradeType === 'unsafe-downgrade'
      ? 'Unsafe metadata downgrade is not supported in this version'
      : 'Refusing to perform the requested downgrade because it might delete metadata information',
  )
}

function levelFault(image: MetadataImage, feature: string, level: number): string | undefined {
  const own = supportedFeatures.find(({ name }) => name === feature)
  if (own === undefined) return `No feature ${feature} is known`
  if (level < own.minLevel || level > own.maxLevel) {
    return `The controller supports ${feature} from level ${own.minLevel} to ${own.maxLevel}, not ${level}`
  }
  if (level === 0) return undefined
  // One node was all there could be before: the controller and the only broker are the same process.
  if ((image.features.get(metadataVersion.feature) ?? 0) < metadataVersion.severalBrokers) return undefined
  for (const { brokerId, features } of image.cluster.brokers()) {
    const fault = nodeFault(features, feature, level)
    if (fault !== undefined) return `Broker ${brokerId} ${fault}`
  }
  for (const { controllerId, features } of image.cluster.controllers()) {
    const fault = nodeFault(features, feature, level)
    if (fault !== undefined) return `Controller ${controllerId} ${fault}`
  }
  return undefined
}

function nodeFault(features: readonly SupportedFeature[], feature: string, level: number): string | undefined {
  const supported = features.find(({ name }) => name === feature)
  if (supported === undefined) {
    // Registered before the cluster kept what its brokers support; a broker says it again when it starts.
    if (features.length === 0) return 'has not said what it supports; restart it with a version that does'
    return `does not support ${feature}`
  }
  if (level >= supported.minLevel && level <= supported.maxLevel) return undefined
  return `supports ${feature} from level ${supported.minLevel} to ${supported.maxLevel}, not ${level}`
}

function rank(record: MetadataRecord): number {
  if (record.type !== 'FeatureLevel') return 2
  return record.name === metadataVersion.feature ? 0 : 1
}

function refuse(feature: string, reason: Refusal['reason'], message: string): Refusal {
  return { ok: false, feature, reason, message }
}
