import { apis, ErrorCode } from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'

/**
 * ListConfigResources, 0 and 1.
 *
 *   1  of every kind (in 0 of client metrics only), and a filter on it
 *
 * What settings can be of: topics and brokers. Client metrics and groups have no settings here, so there are none of them.
 */
export const listConfigResources = defineApi({
  api: apis.ListConfigResources,
  versions: { min: 0, max: 1 },
  handle({ resourceTypes }, context) {
    if (context.apiVersion === 0) return { body: { errorCode: ErrorCode.NONE, configResources: [] } }
    const asked = new Set(resourceTypes.length === 0 ? listed.keys() : resourceTypes)
    if (![...asked].every((type) => listed.has(type))) {
      return { body: { errorCode: ErrorCode.UNSUPPORTED_VERSION, configResources: [] } }
    }
    const configResources = [...listed].flatMap(([resourceType, namesOf]) =>
      asked.has(resourceType) ? namesOf(context).map((resourceName) => ({ resourceName, resourceType })) : [],
    )
    return { body: { errorCode: ErrorCode.NONE, configResources } }
  },
  fault: (_request, errorCode) => ({ errorCode, configResources: [] }),
})

type NamesOf = (context: RequestContext) => readonly string[]

const none: NamesOf = () => []
const topics: NamesOf = ({ services }) => [...services.coordination.image.topics.all()].map(({ name }) => name)
const brokers: NamesOf = ({ services }) =>
  [...services.coordination.image.cluster.brokers()].flatMap(({ brokerId, fenced }) => (fenced ? [] : `${brokerId}`))

/** Names by Kafka's number of the kind, in its order: group, client metrics, broker logger, broker, topic. */
const listed: ReadonlyMap<number, NamesOf> = new Map([
  [32, none],
  [16, none],
  [8, brokers],
  [4, brokers],
  [2, topics],
])
