import type { BrokerId } from '../base/index.ts'
import type { MetadataImage, MetadataRecord } from '../metadata/index.ts'
import { type ConfigRules, type Decision, maxRecordsPerEntry } from './decision.ts'
import type { AlterConfigRequest, AlterConfigResult } from './requests.ts'
import { topicNameFault } from './topic-name.ts'

/** Each resource by itself: all of its changes or none. The configs that result must be valid together. */
export function alterConfigs(
  image: MetadataImage,
  requests: readonly AlterConfigRequest[],
  context: { readonly configRules: ConfigRules; readonly validateOnly: boolean },
): Decision<readonly AlterConfigResult[]> {
  if (requests.reduce((count, { changes }) => count + changes.size, 0) > maxRecordsPerEntry) {
    const refusal = invalid(`The request changes more than ${maxRecordsPerEntry} configs at once`)
    return { records: [], response: requests.map(() => refusal) }
  }
  const counts = new Map<string, number>()
  for (const request of requests) counts.set(resourceOf(request), (counts.get(resourceOf(request)) ?? 0) + 1)
  const records: MetadataRecord[] = []
  const response = requests.map((request): AlterConfigResult => {
    if ((counts.get(resourceOf(request)) ?? 0) > 1) return invalid(`${resourceOf(request)} is in the request twice`)
    const refusal = resourceRefusal(image, request) ?? configRefusal(image, request, context.configRules)
    if (refusal !== undefined) return refusal
    records.push(...changedRecords(image, request))
    return { ok: true }
  })
  return { records: context.validateOnly ? [] : records, response }
}

function resourceOf({ resourceType, resourceName }: AlterConfigRequest): string {
  return `${resourceType} ${JSON.stringify(resourceName)}`
}

function resourceRefusal(image: MetadataImage, request: AlterConfigRequest): AlterConfigResult | undefined {
  const { resourceType, resourceName } = request
  if (resourceType === 'topic') {
    const fault = topicNameFault(resourceName)
    if (fault !== undefined) return invalid(fault)
    if (image.topics.byName(resourceName) !== undefined) return undefined
    return { ok: false, reason: 'unknown-topic', message: `Topic ${resourceName} does not exist` }
  }
  if (resourceName === '') return undefined
  if (!/^(0|[1-9]\d{0,9})$/.test(resourceName)) return invalid(`${resourceOf(request)} is no broker id`)
  if (image.cluster.broker(Number(resourceName) as BrokerId) !== undefined) return undefined
  return invalid(`Broker ${resourceName} is not registered`)
}

function configRefusal(
  image: MetadataImage,
  { resourceType, resourceName, changes }: AlterConfigRequest,
  rules: ConfigRules,
): AlterConfigResult | undefined {
  const configs = new Map(image.configs.of(resourceType, resourceName))
  for (const [key, value] of changes) {
    if (value === null) configs.delete(key)
    else configs.set(key, value)
  }
  const fault = resourceType === 'topic' ? rules.topicFault(configs) : rules.brokerFault(configs, resourceName === '')
  return fault === undefined ? undefined : { ok: false, reason: 'invalid-config', message: fault.message }
}

function changedRecords(
  image: MetadataImage,
  { resourceType, resourceName, changes }: AlterConfigRequest,
): MetadataRecord[] {
  const before = image.configs.of(resourceType, resourceName)
  const records: MetadataRecord[] = []
  for (const [key, value] of changes) {
    if ((before.get(key) ?? null) !== value) records.push({ type: 'Config', resourceType, resourceName, key, value })
  }
  return records
}

function invalid(message: string): AlterConfigResult {
  return { ok: false, reason: 'invalid-request', message }
}
