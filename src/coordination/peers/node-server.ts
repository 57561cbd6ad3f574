import type {
  CallMethod,
  NodeDescription,
  NodeMessages,
  RpcService,
  RpcStream,
  RpcStreamHandlers,
  StreamMethod,
} from '../../rpc/index.ts'
import type { AcceptedStreams } from './accepted-streams.ts'

export interface NodeServerOptions {
  readonly messages: NodeMessages
  readonly accepted: AcceptedStreams
  readonly describe: () => NodeDescription
  /** Bytes of a `ControllerRequest` to those of its `ControllerAnswer`. Throws `RpcError`. */
  readonly ask: (request: Buffer) => Promise<Uint8Array>
}

/** What a node answers on its CONTROLLER listener. */
export class NodeServer implements RpcService {
  readonly #options: NodeServerOptions

  constructor(options: NodeServerOptions) {
    this.#options = options
  }

  async call(method: CallMethod, request: Buffer): Promise<Uint8Array> {
    const { messages, describe, ask } = this.#options
    if (method === 'Ask') return await ask(request)
    messages.describeRequest.decode(request)
    return messages.nodeDescription.encode(describe())
  }

  stream(method: StreamMethod, stream: RpcStream, remote: string): RpcStreamHandlers {
    return this.#options.accepted.accept(method, stream, remote)
  }

  onRefused(remote: string, reason: string): void {
    this.#options.accepted.refused(remote, reason)
  }
}
