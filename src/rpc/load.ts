import type { TlsConfig } from '../config/index.ts'
import type { Files } from '../platform/index.ts'
import type { NodeMessages } from './messages.ts'
import type { RpcNetwork } from './ports.ts'
import type { TlsIdentity } from './tls.ts'

/** gRPC, without TLS unless it is given. Loads it, the first time: about 100 ms. */
export async function loadGrpcNetwork(tls?: TlsIdentity): Promise<RpcNetwork> {
  const { createGrpcNetwork } = await import('./grpc-network.ts')
  return createGrpcNetwork(tls)
}

/** What `readTls` of `tls.ts` does, loaded when there is TLS. */
export async function loadTls(
  config: TlsConfig,
  surroundings: { readonly files: Files; readonly nowMs: number; readonly listens: boolean },
): Promise<TlsIdentity> {
  const { readTls } = await import('./tls.ts')
  return await readTls(config, surroundings)
}

let messages: NodeMessages | undefined

/** The bytes of `proto/node.proto`. Loads protobuf and reads the file, the first time: about 70 ms. */
export async function loadNodeMessages(): Promise<NodeMessages> {
  const { readNodeMessages } = await import('./message-codecs.ts')
  messages ??= readNodeMessages()
  return messages
}
