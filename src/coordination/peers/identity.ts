import { isUuid, type Uuid } from '../../base/index.ts'
import type { Hello } from '../../rpc/index.ts'

/** Who a node is to its peers. */
export interface NodeIdentity {
  /** '' until the node's folders are formatted. */
  readonly clusterId: string
  readonly nodeId: number
  /** Of its metadata log. */
  readonly directoryId: Uuid
  /** Of this run of the process. */
  readonly incarnationId: Uuid
}

export const protocolVersion = 1

export function helloTo(toNodeId: number, own: NodeIdentity): Hello {
  return { protocolVersion, ...own, toNodeId }
}

/** Why `hello` is not from a node that this one talks to; undefined when it is. For people: it is logged at both ends. */
export function refusalOf(hello: Hello, own: NodeIdentity): string | undefined {
  if (hello.protocolVersion !== protocolVersion) {
    return `Protocol version ${hello.protocolVersion} is not known, only ${protocolVersion}`
  }
  if (hello.clusterId !== '' && own.clusterId !== '' && hello.clusterId !== own.clusterId) {
    return `Node ${hello.nodeId} is of cluster ${hello.clusterId}, node ${own.nodeId} of cluster ${own.clusterId}`
  }
  if (hello.nodeId === own.nodeId) {
    return `Two nodes have node.id ${own.nodeId}: each needs its own`
  }
  if (hello.toNodeId !== own.nodeId) {
    return `This is node ${own.nodeId}, and node ${hello.nodeId} takes it for node ${hello.toNodeId}: its controller.quorum.voters is wrong`
  }
  if (!isUuid(hello.directoryId) || !isUuid(hello.incarnationId)) {
    return `Node ${hello.nodeId} does not say which directory and run it is`
  }
  return undefined
}
