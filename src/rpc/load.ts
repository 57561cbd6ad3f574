import type { NodeMessages } from './messages.ts'
import type { RpcNetwork } from './ports.ts'

/** gRPC without TLS. Loads it, the first time: about 100 ms. */
export async function loadGrpcNetwork(): Promise<RpcNetwork> {
  const { createGrpcNetwork } = await import('./grpc-network.ts')
  return createGrpcNetwork()
}

let messages: NodeMessages | undefined

/** The bytes of `proto/node.proto`. Loads protobuf and reads the file, the first time: about 70 ms. */
export async function loadNodeMessages(): Promise<NodeMessages> {
  const { readNodeMessages } = await import('./message-codecs.ts')
  messages ??= readNodeMessages()
  return messages
}
