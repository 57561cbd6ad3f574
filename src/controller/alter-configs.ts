import type { BrokerId } from '../base/index.ts'
import type { MetadataImage, MetadataRecord } from '../metadata/index.ts'
import { type ConfigRules, type Decision, maxRecordsPerEntry } from './decision.ts'
import type { AlterConfigRequest, AlterConfigResult, ConfigChange } from './requests.ts'
import { topicNameFault } from './topic-name.ts'

type Refusal = Extract<AlterConfigResult, { ok: false }>

/**
 * Each resource by itself: all of its changes or none. The configs that result must be valid together. Checks in Kafka's
 * order: lists, the resource's name, the configs, and only then whether the topic exists.
 */
export function alterConfigs(
  image: MetadataImage,
  requests: readonly AlterConfigRequest[],
  context: { readonly configRules: ConfigRules; readonly validateOnly: boolean },
): Decision<readonly AlterConfigResult[]> {
  // A resource counts too: a million that change nothing are no reasonable request.
  if (requests.reduce((count, request) => count + recordCount(image, request), 0) > maxRecordsPerEntry) {
    const refusal = invalid(`The request asks for more than ${maxRecordsPerEntry} resources and configs at once`)
    return { records: [], response: requests.map(() => refusal) }
  }
  const counts = new Map<string, number>()
  for (const request of requests) counts.set(resourceOf(request), (counts.get(resourceOf(request)) ?? 0) + 1)
  const records: MetadataRecord[] = []
  const response = requests.map((request): AlterConfigResult => {
    if ((counts.get(resourceOf(request)) ?? 0) > 1) return invalid(`${resourceOf(request)} is in the request twice`)
    const configs = changedConfigs(image, request, context.configRules)
    if ('ok' in configs) return configs
    const refusal = configRefusal(request, configs, context.configRules) ?? resourceRefusal(image, request)
    if (refusal !== undefined) return refusal
    records.push(...changedRecords(image, request, configs))
    return { ok: true }
  })
  return { records: context.validateOnly ? [] : records, response }
}

/** At most. */
function recordCount(image: MetadataImage, { resourceType, resourceName, changes, replaces }: AlterConfigRequest) {
  return 1 + changes.size + (replaces ? image.configs.of(resourceType, resourceName).size : 0)
}

function resourceOf({ resourceType, resourceName }: AlterConfigRequest): string {
  return `${resourceType} ${JSON.stringify(resourceName)}`
}

/** The resource's configs as they would be. */
function changedConfigs(
  image: MetadataImage,
  { resourceType, resourceName, changes, replaces }: AlterConfigRequest,
  rules: ConfigRules,
): ReadonlyMap<string, string> | Refusal {
  const before = image.configs.of(resourceType, resourceName)
  const configs = new Map(replaces ? [] : before)
  for (const [key, change] of changes) {
    if (change === null) configs.delete(key)
    else if (typeof change === 'string') configs.set(key, change)
    else {
      const elements = before.has(key) ? elementsOf(before.get(key)!) : rules.listDefault(resourceType, key)
      if (elements === undefined || rules.listDefault(resourceType, key) === undefined) {
        return refuse('invalid-config', `${key} is no list: elements can't be added or taken out`)
      }
      configs.set(key, changedList(elements, change).join(','))
    }
  }
  return configs
}

function changedList(elements: readonly string[], change: Exclude<ConfigChange, string | null>): readonly string[] {
  if ('append' in change) return [...new Set([...elements, ...elementsOf(change.append)])]
  const removed = new Set(elementsOf(change.subtract))
  return elements.filter((element) => !removed.has(element))
}

function elementsOf(text: string): string[] {
  return text
    .split(',')
    .map((element) => element.trim())
    .filter((element) => element !== '')
}

function configRefusal(
  { resourceType, resourceName }: AlterConfigRequest,
  configs: ReadonlyMap<string, string>,
  rules: ConfigRules,
): Refusal | undefined {
  if (resourceType === 'broker') {
    const fault = rules.brokerFault(configs)
    return fault === undefined ? undefined : invalid(fault.message)
  }
  if (resourceName === '') return invalid('There are no configs for all topics')
  const nameFault = topicNameFault(resourceName)
  if (nameFault !== undefined) return refuse('invalid-topic', nameFault)
  const fault = rules.topicFault(configs)
  return fault === undefined ? undefined : refuse('invalid-config', fault.message)
}

function resourceRefusal(image: MetadataImage, request: AlterConfigRequest): Refusal | undefined {
  const { resourceType, resourceName } = request
  if (resourceType === 'topic') {
    if (image.topics.byName(resourceName) !== undefined) return undefined
    return refuse('unknown-topic', `Topic ${resourceName} does not exist`)
  }
  if (resourceName === '') return undefined
  if (!/^(0|[1-9]\d{0,9})$/.test(resourceName)) return invalid(`${resourceOf(request)} is no broker id`)
  if (image.cluster.broker(Number(resourceName) as BrokerId) !== undefined) return undefined
  return invalid(`Broker ${resourceName} is not registered`)
}

/** What differs, and nothing else. */
function changedRecords(
  image: MetadataImage,
  { resourceType, resourceName }: AlterConfigRequest,
  configs: ReadonlyMap<string, string>,
): MetadataRecord[] {
  const before = image.configs.of(resourceType, resourceName)
  const record = (key: string, value: string | null): MetadataRecord => ({
    type: 'Config',
    resourceType,
    resourceName,
    key,
    value,
  })
  const records: MetadataRecord[] = []
  for (const [key, value] of configs) if (before.get(key) !== value) records.push(record(key, value))
  for (const key of before.keys()) if (!configs.has(key)) records.push(record(key, null))
  return records
}

function invalid(message: string): Refusal {
  return refuse('invalid-request', message)
}

function refuse(reason: Refusal['reason'], message: string): Refusal {
  return { ok: false, reason, message }
}
