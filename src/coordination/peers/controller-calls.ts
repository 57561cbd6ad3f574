import { assert, type BrokerId } from '../../base/index.ts'
import type { ControllerAnswer } from '../../controller/index.ts'
import type { NodeMessages, RpcChannel, RpcNetwork, RpcTarget } from '../../rpc/index.ts'
import { RpcError } from '../../rpc/index.ts'
import type { ControllerChannel, ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
import { decodeAnswer, decodeRequest, encodeBody } from './controller-codec.ts'

export interface ControllerCallsOptions {
  readonly network: RpcNetwork
  readonly messages: NodeMessages
  readonly brokerId: BrokerId
  readonly clusterId: () => string
}

/** Requests of this broker to a controller on another node. */
export class ControllerCalls {
  readonly #options: ControllerCallsOptions
  #target: RpcTarget | undefined
  #channel: RpcChannel | undefined

  constructor(options: ControllerCallsOptions) {
    this.#options = options
  }

  /** Throws `RpcError`: it isn't known then whether the request got there. */
  async ask<Kind extends ControllerRequestKind>(
    target: RpcTarget,
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    timeoutMs: number,
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>> {
    const { messages, brokerId, clusterId } = this.#options
    const bytes = messages.controllerRequest.encode({
      kind,
      clusterId: clusterId(),
      brokerId,
      body: encodeBody(request),
    })
    const answer = messages.controllerAnswer.decode(await this.#channelTo(target).call('Ask', bytes, timeoutMs))
    const { refusal, index, body } = answer
    if (refusal !== undefined && refusal !== null) {
      if (refusal.reason === 'CONTROLLER_REFUSAL_REASON_OVERLOADED') {
        return { ok: false, reason: 'overloaded', mayBeStored: false }
      }
      return { ok: false, reason: 'not-controller', mayBeStored: refusal.mayBeStored }
    }
    return { ok: true, index, response: decodeAnswer(body, kind) as ControllerRequests[Kind]['response'] }
  }

  /** What is under way fails; the next request connects anew. */
  disconnect(): void {
    this.#channel?.close()
    this.#channel = undefined
  }

  #channelTo(target: RpcTarget): RpcChannel {
    if (this.#target?.host !== target.host || this.#target.port !== target.port) this.disconnect()
    this.#target = target
    this.#channel ??= this.#options.network.connect(target)
    return this.#channel
  }
}

/** Answers such a request: `controller` is this node's own, active or not. Throws `RpcError` for what makes no sense. */
export async function answerController(
  bytes: Buffer,
  messages: NodeMessages,
  controller: ControllerChannel,
  clusterId: string,
): Promise<Uint8Array> {
  const message = messages.controllerRequest.decode(bytes)
  if (message.clusterId !== '' && message.clusterId !== clusterId) {
    throw new RpcError(
      'refused-by-peer',
      `Broker ${message.brokerId} is of cluster ${message.clusterId}, not of ${clusterId}`,
    )
  }
  const { kind, request } = decodeRequest(message)
  const answer = await controller.ask(kind, request)
  if (answer.ok) return messages.controllerAnswer.encode({ index: answer.index, body: encodeBody(answer.response) })
  const isOverloaded = answer.reason === 'overloaded'
  assert(isOverloaded || answer.reason === 'not-controller', 'a controller refuses for one of two reasons')
  const reason = isOverloaded ? 'CONTROLLER_REFUSAL_REASON_OVERLOADED' : 'CONTROLLER_REFUSAL_REASON_NOT_CONTROLLER'
  const refusal = { reason, mayBeStored: answer.mayBeStored } as const
  return messages.controllerAnswer.encode({ index: 0, body: Buffer.alloc(0), refusal })
}
