import type { BrokerId } from '../base/index.ts'
import { type BrokerImage, noLeader } from '../metadata/index.ts'
import type { RequestContext } from './api.ts'

export interface NodeEndpoint {
  readonly nodeId: BrokerId
  readonly host: string
  readonly port: number
  readonly rack: string | null
}

/**
 * Where this client reaches a broker: its endpoint on the listener that the request came in on; undefined when it has none
 * there. A broker that listens on every address and advertises none is where this client found it: the address that it
 * dialled, which is known only here.
 */
export function endpointOf(broker: BrokerImage, context: RequestContext): NodeEndpoint | undefined {
  const endpoint = broker.endpoints.find(({ name }) => name === context.connection.listenerName)
  if (endpoint === undefined) return undefined
  const isHere = broker.brokerId === context.services.brokerId
  const host = isHere && isEveryAddress(endpoint.host) ? context.connection.localAddress : endpoint.host
  return { nodeId: broker.brokerId, host, port: endpoint.port, rack: broker.rack }
}

function isEveryAddress(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::'
}

/** Brokers that clients may talk to, by id: registered, not fenced, and on the client's listener. */
export function liveEndpoints(context: RequestContext): NodeEndpoint[] {
  const endpoints: NodeEndpoint[] = []
  for (const broker of context.services.coordination.image.cluster.brokers()) {
    const endpoint = broker.fenced ? undefined : endpointOf(broker, context)
    if (endpoint !== undefined) endpoints.push(endpoint)
  }
  return endpoints
}

/**
 * The broker that a client sends admin requests to. Every broker takes them, so any live one does; the active controller,
 * where clients can reach it, saves them the way.
 */
export function controllerIdOf(endpoints: readonly NodeEndpoint[], context: RequestContext): BrokerId {
  const { controllerId } = context.services.coordination.state
  const controller = endpoints.find(({ nodeId }) => nodeId === controllerId) ?? endpoints[0]
  return controller?.nodeId ?? noLeader
}

/** Collects, for an answer that turns clients away, which brokers they are turned to (KIP-951). */
export class LeaderHints {
  readonly #context: RequestContext
  readonly #endpoints = new Map<BrokerId, NodeEndpoint>()

  constructor(context: RequestContext) {
    this.#context = context
  }

  /** The partition's leader as this broker knows it; undefined when it knows none. */
  leaderOf(topic: string, partition: number): { leaderId: BrokerId; leaderEpoch: number } | undefined {
    const { topics, cluster } = this.#context.services.coordination.image
    const found = topics.byName(topic)?.partitions[partition]
    if (found === undefined) return undefined
    const broker = cluster.broker(found.leader)
    const endpoint = broker === undefined ? undefined : endpointOf(broker, this.#context)
    if (endpoint !== undefined) this.#endpoints.set(found.leader, endpoint)
    return { leaderId: found.leader, leaderEpoch: found.leaderEpoch }
  }

  /** Of the leaders asked for, each once. */
  get nodeEndpoints(): readonly NodeEndpoint[] {
    return [...this.#endpoints.values()]
  }
}
