import type { BrokerId } from '../base/index.ts'
import {
  eligibleLeaderReplicas,
  MetadataDeltaBuilder,
  type MetadataImage,
  type MetadataRecord,
} from '../metadata/index.ts'
import { type ConfigRules, type ControllerSettings, type Decision, maxRecordsPerRequest } from './decision.ts'
import { PartitionRules } from './partition-change.ts'
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
  context: {
    readonly settings: ControllerSettings
    readonly configRules: ConfigRules
    readonly validateOnly: boolean
  },
): Decision<readonly AlterConfigResult[]> {
  // A resource counts too: a million that change nothing are no reasonable request.
  if (requests.reduce((count, request) => count + recordCount(image, request), 0) > maxRecordsPerRequest) {
    const refusal = invalid(`The request asks for more than ${maxRecordsPerRequest} resources and configs at once`)
    return { records: [], response: requests.map(() => refusal) }
  }
  const counts = new Map<string, number>()
  for (const request of requests) counts.set(resourceOf(request), (counts.get(resourceOf(request)) ?? 0) + 1)
  const records: MetadataRecord[] = []
  const response = requests.map((request): AlterConfigResult => {
    if ((counts.get(resourceOf(request)) ?? 0) > 1) return invalid(`${resourceOf(request)} is in the request twice`)
    const configs = changedConfigs(image, request, context.configRules)
    if ('ok' in configs) return configs
    const refusal =
      eligibilityRefusal(image, request) ??
      configRefusal(request, configs, context.configRules) ??
      resourceRefusal(image, request)
    if (refusal !== undefined) return refusal
    records.push(...changedRecords(image, request, configs))
    return { ok: true }
  })
  if (context.validateOnly) return { records: [], response }
  // The partitions come first: where several entries are needed, who is no longer eligible is so before the limit falls.
  return { records: [...partitionChanges(image, records, context.settings), ...records], response }
}

/** Configs that say who may lead. */
const minInSyncReplicas = 'min.insync.replicas'
const electionKeys: ReadonlySet<string> = new Set([minInSyncReplicas, 'unclean.leader.election.enable'])

/** Partitions that get another leader or other eligible replicas when the configs have changed. */
function partitionChanges(
  image: MetadataImage,
  records: readonly MetadataRecord[],
  settings: ControllerSettings,
): MetadataRecord[] {
  const concerning = records.filter((record) => record.type === 'Config' && electionKeys.has(record.key))
  if (concerning.length === 0) return []
  const builder = new MetadataDeltaBuilder(image)
  for (const record of concerning) builder.replay(record)
  const { image: after, delta } = builder.finish(image.index + 1, image.term)
  const concernsAll = delta.changedConfigs.brokers.size > 0
  const named = [...delta.changedConfigs.topics].map((name) => after.topics.byName(name))
  const rules = new PartitionRules(after, settings)
  const changes: MetadataRecord[] = []
  for (const topic of concernsAll ? after.topics.all() : named) {
    for (const partition of topic?.partitions ?? []) {
      const change = topic === undefined ? undefined : rules.change(topic, partition, {})
      if (change !== undefined) changes.push(change)
    }
  }
  return changes
}

/** Who is eligible rests on one min.insync.replicas for the whole cluster, which all nodes see change at once. */
function eligibilityRefusal(image: MetadataImage, request: AlterConfigRequest): Refusal | undefined {
  if (request.resourceType !== 'broker' || !keepsElr(image)) return undefined
  if (request.resourceName === '' || (request.changes.get(minInSyncReplicas) ?? null) === null) return undefined
  const message = `${minInSyncReplicas} can't be set for one broker while there are eligible leader replicas`
  return refuse('invalid-config', message)
}

function keepsElr(image: MetadataImage): boolean {
  return (image.features.get(eligibleLeaderReplicas.feature) ?? 0) > 0
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
