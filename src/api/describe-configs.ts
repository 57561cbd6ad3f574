import {
  configSource,
  type DescribedConfig,
  describeBrokerConfig,
  describeClusterDefaults,
  describeTopicConfig,
} from '../config/index.ts'
import {
  apis,
  type DescribeConfigsRequest,
  type DescribeConfigsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import {
  brokerLoggerResource,
  brokerNameFault,
  brokerResource,
  clientMetricsResource,
  groupResource,
  topicResource,
} from './config-resources.ts'
import { errorMessageOf } from './errors.ts'
import { isLegalTopicName } from './topic-names.ts'

/**
 * DescribeConfigs, 1 to 4.
 *
 *   1  sources and synonyms     3  types, documentation     4  flexible
 *
 * Every key with the value that counts, not only those that were set: clients read all, change some and write all back. No
 * keys asked, null or none, is all keys. A broker describes itself only, by its own id; '' is what is set for all brokers
 * of the cluster. A resource that stands twice is answered once, with the keys of both. Groups, client metrics and loggers have
 * no settings here: they are described as having none.
 */
export const describeConfigs = defineApi({
  api: apis.DescribeConfigs,
  versions: { min: 1, max: 4 },
  handle: (request, context) => ({
    body: { results: askedResources(request).map((resource) => describe(resource, request, context)) },
  }),
  fault: (request, errorCode) => ({
    results: request.resources.map((resource) => refused(resource, errorCode, errorMessageOf(errorCode))),
  }),
})

interface Resource {
  readonly resourceType: number
  readonly resourceName: string
}
interface AskedResource extends Resource {
  /** Undefined: all. */
  readonly keys: ReadonlySet<string> | undefined
}
type ResourceAnswer = MessageInput<typeof DescribeConfigsResponse>['results'][number]

/** Each once: an answer is so large that a small request which names one topic a million times would need all memory. */
function askedResources({ resources }: DescribeConfigsRequest): readonly AskedResource[] {
  const asked = new Map<string, Resource & { keys: Set<string> | undefined }>()
  for (const { resourceType, resourceName, configurationKeys } of resources) {
    const keys = configurationKeys === null || configurationKeys.length === 0 ? undefined : new Set(configurationKeys)
    const name = `${resourceType}/${resourceName}`
    const before = asked.get(name)
    if (before === undefined) asked.set(name, { resourceType, resourceName, keys })
    else if (keys === undefined) before.keys = undefined
    else for (const key of keys) before.keys?.add(key)
  }
  return [...asked.values()]
}

function describe(resource: AskedResource, request: DescribeConfigsRequest, context: RequestContext): ResourceAnswer {
  const described = settingsOf(resource, context)
  if ('errorCode' in described) return described
  const { includeSynonyms, includeDocumentation } = request
  const { keys } = resource
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: '',
    resourceType: resource.resourceType,
    resourceName: resource.resourceName,
    configs: described.settings
      .filter(({ name }) => keys === undefined || keys.has(name))
      .map((setting) => ({
        name: setting.name,
        value: setting.value,
        readOnly: setting.readOnly,
        // As in Kafka, that of the first place which is listed.
        configSource: setting.synonyms[0]?.source ?? configSource.default,
        isSensitive: setting.sensitive,
        synonyms: includeSynonyms ? setting.synonyms : [],
        configType: setting.type,
        documentation: includeDocumentation ? setting.documentation : null,
      })),
  }
}

function settingsOf(
  resource: AskedResource,
  context: RequestContext,
): { readonly settings: readonly DescribedConfig[] } | ResourceAnswer {
  const { resourceType, resourceName } = resource
  const { topics, configs } = context.services.coordination.image
  const config = context.services.dynamicConfig.at(configs)
  if (resourceType === topicResource) {
    if (!isLegalTopicName(resourceName)) return refused(resource, ErrorCode.INVALID_TOPIC_EXCEPTION, 'No topic name')
    if (topics.byName(resourceName) === undefined) {
      return refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `There is no topic ${resourceName}`)
    }
    return { settings: describeTopicConfig(configs.of('topic', resourceName), config) }
  }
  if (resourceType === brokerLoggerResource) {
    const fault = brokerNameFault(resourceName, context)
    return fault === undefined ? { settings: [] } : refused(resource, ErrorCode.INVALID_REQUEST, fault)
  }
  if (resourceType === clientMetricsResource || resourceType === groupResource) {
    if (resourceName !== '') return { settings: [] }
    return refused(resource, ErrorCode.INVALID_REQUEST, 'The name is empty')
  }
  if (resourceType !== brokerResource) {
    return refused(resource, ErrorCode.INVALID_REQUEST, `Resource type ${resourceType} has no settings here`)
  }
  if (resourceName === '') return { settings: describeClusterDefaults(config) }
  const fault = brokerNameFault(resourceName, context)
  if (fault !== undefined) return refused(resource, ErrorCode.INVALID_REQUEST, fault)
  return { settings: describeBrokerConfig(config) }
}

function refused({ resourceType, resourceName }: Resource, errorCode: ErrorCode, errorMessage: string | null) {
  return { errorCode, errorMessage, resourceType, resourceName, configs: [] }
}
