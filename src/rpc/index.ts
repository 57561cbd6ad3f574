/**
 * rpc: messages between nodes, by gRPC, and nothing else.
 *
 *   ports.ts         the contract: calls and streams of byte strings (`RpcNetwork`)
 *   errors.ts        what it throws
 *   messages.ts      the types of `proto/node.proto`; message-codecs.ts: their bytes
 *   grpc-network.ts  gRPC's implementation
 *   connections.ts   where it is listened, with TLS or without, and who is refused before gRPC hears of it
 *   tls.ts           keys and certificates: read and checked (`TlsIdentity`)
 *   load.ts          loads what is needed: a node alone has no use for gRPC
 *
 * What the byte strings mean is in `proto/node.proto` and in `coordination/`; the service's shape is here. Runs on the event loop.
 *
 * Invariants:
 * - Messages of one stream arrive in order, each once, until it closes. A stream closes once, with the reason where there is one.
 * - A process that is gone closes its streams at once; 'connection-refused' afterwards says for certain that nothing listens.
 * - Where there is TLS, no byte of a caller reaches gRPC before its certificate is accepted. No session is taken up again: each
 *   connection shows its certificate anew.
 * - A peer's message is taken up to 64 MiB; a larger one closes its stream only.
 *
 * Source: grpc-node's channel options; its issues 2785 and 2620 for why a watchdog above must be able to start afresh.
 */
export { RpcError, type RpcFailure } from './errors.ts'
export { loadGrpcNetwork, loadNodeMessages, loadTls } from './load.ts'
export type {
  ControllerAnswer,
  ControllerRequest,
  DescribeRequest,
  Hello,
  MessageCodec,
  NodeDescription,
  NodeMessages,
  PeerMessage,
  RaftBodies,
  RaftEntry,
  RaftMessage,
  RaftSnapshotHeader,
  RaftVoter,
} from './messages.ts'
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
export type { TlsIdentity } from './tls.ts'
