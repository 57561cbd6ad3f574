import { apis, type DescribeClusterResponse, ErrorCode, type MessageInput } from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { clusterOperations, operationsNotAsked } from './authorized-operations.ts'
import { controllerIdOf, endpointOf, liveEndpoints } from './endpoints.ts'
import { errorMessageOf } from './errors.ts'

/**
 * DescribeCluster, 0 to 2.
 *
 *   1  brokers (1) or controllers (2)     2  fenced brokers too
 *
 * This is a broker's endpoint: who asks for controllers gets MISMATCHED_ENDPOINT_TYPE.
 */
export const describeCluster = defineApi({
  api: apis.DescribeCluster,
  versions: { min: 0, max: 2 },
  handle(request, context) {
    const { endpointType } = request
    if (endpointType !== brokers) {
      const isKnown = endpointType === controllers
      const errorCode = isKnown ? ErrorCode.MISMATCHED_ENDPOINT_TYPE : ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
      return { body: refused(errorCode) }
    }
    const live = liveEndpoints(context)
    return {
      body: {
        errorCode: ErrorCode.NONE,
        clusterId: context.services.clusterId,
        controllerId: controllerIdOf(live, context),
        brokers: brokerAnswers(request.includeFencedBrokers, context),
        clusterAuthorizedOperations: request.includeClusterAuthorizedOperations
          ? clusterOperations
          : operationsNotAsked,
      },
    }
  },
  fault: (_request, errorCode) => refused(errorCode),
})

const brokers = 1
const controllers = 2

type Body = MessageInput<typeof DescribeClusterResponse>

function brokerAnswers(includeFenced: boolean, context: RequestContext): Body['brokers'] {
  return [...context.services.coordination.image.cluster.brokers()].flatMap((broker) => {
    const endpoint = broker.fenced && !includeFenced ? undefined : endpointOf(broker, context)
    if (endpoint === undefined) return []
    const { nodeId, host, port, rack } = endpoint
    const isFenced = context.apiVersion >= 2 ? { isFenced: broker.fenced } : {}
    return [{ brokerId: nodeId, host, port, rack, ...isFenced }]
  })
}

function refused(errorCode: ErrorCode): Body {
  return { errorCode, errorMessage: errorMessageOf(errorCode), clusterId: '', brokers: [] }
}
