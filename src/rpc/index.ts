/**
 * rpc: messages between nodes, by gRPC, and nothing else.
 *
 *   ports.ts         the contract: calls and streams of byte strings (`RpcNetwork`)
 *   errors.ts        what it throws
 *   grpc-network.ts  gRPC's implementation, which loads gRPC: import it only where there are several nodes
 *
 * What the byte strings mean is in `proto/node.proto` and in `coordination/`; the service's shape is here. Runs on the event loop.
 *
 * Invariants:
 * - Messages of one stream arrive in order, each once, until it closes. A stream closes once, with the reason where there is one.
 * - A process that is gone closes its streams at once; 'connection-refused' afterwards says for certain that nothing listens.
 * - A peer's message is taken up to 64 MiB; a larger one closes its stream only.
 *
 * Source: grpc-node's channel options; its issues 2785 and 2620 for why a watchdog above must be able to start afresh.
 */
export { RpcError, type RpcFailure } from './errors.ts'
export { createGrpcNetwork } from './grpc-network.ts'
export type {
  CallMethod,
  RpcChannel,
  RpcListener,
  RpcListenOptions,
  RpcNetwork,
  RpcService,
  RpcStream,
  RpcStreamHandlers,
  RpcTarget,
  StreamMethod,
} from './ports.ts'
