import type { AlterConfigRequest, AlterConfigResult, ConfigChange } from '../coordination/index.ts'
import { ErrorCode } from '../protocol/index.ts'
import type { RequestContext } from './api.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'

/** Kinds of what has configs, as the APIs of configs number them. */
export const topicResource = 2
export const brokerResource = 4
export const brokerLoggerResource = 8
export const clientMetricsResource = 16
export const groupResource = 32

/** What a request asks to change, of one resource. */
export interface AskedResource {
  readonly resourceType: number
  readonly resourceName: string
  readonly configs: readonly { readonly name: string; readonly value: string | null }[]
}

export interface ResourceAnswer {
  readonly errorCode: ErrorCode
  readonly errorMessage: string | null
  readonly resourceType: number
  readonly resourceName: string
}

/** The changes of one resource, or why they can't be meant. */
type Changes =
  | { readonly ok: true; readonly changes: ReadonlyMap<string, ConfigChange>; readonly replaces: boolean }
  | { readonly ok: false; readonly message: string }

/**
 * Changes configs of topics and brokers, each resource by itself; answers in their order. Refused here, as by Kafka's
 * brokers, is what no controller needs to see: a resource or a key that stands twice, another broker than this one.
 */
export async function alterResources<Resource extends AskedResource>(
  resources: readonly Resource[],
  changesOf: (resource: Resource) => Changes,
  validateOnly: boolean,
  context: RequestContext,
): Promise<ResourceAnswer[]> {
  const times = new Map<string, number>()
  for (const resource of resources) times.set(nameOf(resource), (times.get(nameOf(resource)) ?? 0) + 1)
  const wanted: AlterConfigRequest[] = []
  const outcomes = resources.map((resource) => {
    if (times.get(nameOf(resource)) !== 1) return invalid('A resource may stand in a request once')
    const request = requestOf(resource, changesOf, context)
    if ('ok' in request) return request
    wanted.push(request)
    return undefined
  })
  const options = { timeoutMs: context.services.config.values.requestTimeoutMs, validateOnly }
  const results = wanted.length === 0 ? [] : await context.services.coordination.admin.alterConfigs(wanted, options)
  let next = 0
  return resources.map((resource, i) => answer(resource, outcomes[i] ?? results[next++]!))
}

/** An answer that says `errorCode` about every resource. */
export function allRefused(resources: readonly AskedResource[], errorCode: ErrorCode): ResourceAnswer[] {
  return resources.map(({ resourceType, resourceName }) => ({
    errorCode,
    errorMessage: errorMessageOf(errorCode),
    resourceType,
    resourceName,
  }))
}

/** Why `name` can't be that of the broker which is asked; undefined when it is its id. */
export function brokerNameFault(name: string, { services }: RequestContext): string | undefined {
  if (!/^\d{1,10}$/.test(name)) return `A broker is named by its id, a whole number: ${JSON.stringify(name)}`
  return Number(name) === services.brokerId ? undefined : `This is broker ${services.brokerId}, not ${name}`
}

function requestOf<Resource extends AskedResource>(
  resource: Resource,
  changesOf: (resource: Resource) => Changes,
  context: RequestContext,
): AlterConfigRequest | Extract<AlterConfigResult, { ok: false }> {
  const { resourceType, resourceName, configs } = resource
  if (new Set(configs.map(({ name }) => name)).size !== configs.length) return invalid('A config stands twice')
  const changed = changesOf(resource)
  if (!changed.ok) return invalid(changed.message)
  const { changes, replaces } = changed
  if (resourceType === topicResource) return { resourceType: 'topic', resourceName, changes, replaces }
  if (resourceType === groupResource && resourceName !== '') return unknownConfig('Groups have no configs here')
  if (resourceType === brokerResource && resourceName === '') {
    return { resourceType: 'broker', resourceName, changes, replaces }
  }
  const isLogger = resourceType === brokerLoggerResource && !replaces
  if (resourceType !== brokerResource && !isLogger) return invalid(`Resource type ${resourceType} has no configs here`)
  const message = brokerNameFault(resourceName, context)
  if (message !== undefined) return invalid(message)
  if (isLogger) return unknownConfig('There is no logger that has a level of its own')
  return { resourceType: 'broker', resourceName: String(context.services.brokerId), changes, replaces }
}

function nameOf({ resourceType, resourceName }: AskedResource): string {
  return `${resourceType}/${resourceName}`
}

function invalid(message: string) {
  return { ok: false, reason: 'invalid-request', message } as const
}

function unknownConfig(message: string) {
  return { ok: false, reason: 'invalid-config', message } as const
}

function answer({ resourceType, resourceName }: AskedResource, result: AlterConfigResult): ResourceAnswer {
  if (result.ok) return { errorCode: ErrorCode.NONE, errorMessage: null, resourceType, resourceName }
  return { errorCode: errorCodeOf(result.reason), errorMessage: result.message, resourceType, resourceName }
}
