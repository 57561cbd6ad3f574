import { messageOf } from '../../base/index.ts'
import { type NodeDescription, type NodeMessages, RpcError, type RpcNetwork, type RpcTarget } from '../../rpc/index.ts'

export type Described =
  | { readonly description: NodeDescription; readonly fault: undefined }
  /** For people. */
  | { readonly description: undefined; readonly fault: string }

/** Asks who listens at `target`, by a channel of its own. Never rejects: it may not be up yet, or not so far. */
export async function describeNode(
  { network, messages }: { readonly network: RpcNetwork; readonly messages: NodeMessages },
  target: RpcTarget,
  nodeId: number,
  timeoutMs: number,
): Promise<Described> {
  const channel = network.connect(target)
  try {
    const request = messages.describeRequest.encode({ clusterId: '', nodeId })
    const description = messages.nodeDescription.decode(await channel.call('Describe', request, timeoutMs))
    return { description, fault: undefined }
  } catch (error) {
    const isRefused = error instanceof RpcError && error.reason === 'connection-refused'
    return { description: undefined, fault: isRefused ? 'nothing listens there' : messageOf(error) }
  } finally {
    channel.close()
  }
}
