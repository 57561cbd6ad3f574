import { type DescribedConfig, describeBrokerConfig, describeTopicConfig } from '../config/index.ts'
import {
  apis,
  type DescribeConfigsRequest,
  type DescribeConfigsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { distinct } from './distinct.ts'
import { errorMessageOf } from './errors.ts'
import { isLegalTopicName } from './topic-names.ts'

/**
 * DescribeConfigs, 1 to 4.
 *
 *   1  sources and synonyms     3  types, documentation     4  flexible
 *
 * Every key with the value that counts, not only those that were set: clients read all, change some and write all back. No
 * keys asked (null or an empty list) is all keys. A broker describes itself only, by its own id; '' is the cluster's default, of which
 * nothing can be set yet.
 */
export const describeConfigs = defineApi({
  api: apis.DescribeConfigs,
  versions: { min: 1, max: 4 },
  handle: (request, context) => ({
    body: {
      results: distinct(request.resources, ({ resourceType, resourceName }) => `${resourceType}/${resourceName}`).map(
        (resource) => describe(resource, request, context),
      ),
    },
  }),
  fault: (request, errorCode) => ({
    results: request.resources.map((resource) => refused(resource, errorCode, errorMessageOf(errorCode))),
  }),
})

type Resource = DescribeConfigsRequest['resources'][number]
type ResourceAnswer = MessageInput<typeof DescribeConfigsResponse>['results'][number]

const topicResource = 2
const brokerResource = 4

function describe(resource: Resource, request: DescribeConfigsRequest, context: RequestContext): ResourceAnswer {
  const { resourceType, resourceName, configurationKeys } = resource
  const { config, coordination, brokerId } = context.services
  let settings: readonly DescribedConfig[]
  if (resourceType === topicResource) {
    if (!isLegalTopicName(resourceName)) return refused(resource, ErrorCode.INVALID_TOPIC_EXCEPTION, 'No topic name')
    const { topics, configs } = coordination.image
    if (topics.byName(resourceName) === undefined) {
      return refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `There is no topic ${resourceName}`)
    }
    settings = describeTopicConfig(configs.of('topic', resourceName), config)
  } else if (resourceType === brokerResource) {
    if (resourceName !== '' && resourceName !== String(brokerId)) {
      return refused(resource, ErrorCode.INVALID_REQUEST, `This is broker ${brokerId}, it describes itself only`)
    }
    settings = resourceName === '' ? [] : describeBrokerConfig(config)
  } else {
    return refused(resource, ErrorCode.INVALID_REQUEST, `Resource type ${resourceType} has no settings here`)
  }
  const keys = new Set(configurationKeys)
  const asked = keys.size === 0 ? settings : settings.filter(({ name }) => keys.has(name))
  const { includeSynonyms, includeDocumentation } = request
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    resourceType,
    resourceName,
    configs: asked.map((setting) => ({
      name: setting.name,
      value: setting.value,
      readOnly: setting.readOnly,
      configSource: setting.source,
      isSensitive: setting.sensitive,
      synonyms: includeSynonyms ? setting.synonyms : [],
      configType: setting.type,
      documentation: includeDocumentation ? setting.documentation : null,
    })),
  }
}

function refused({ resourceType, resourceName }: Resource, errorCode: ErrorCode, errorMessage: string | null) {
  return { errorCode, errorMessage, resourceType, resourceName, configs: [] }
}
