import { join } from 'node:path'
import { loadSync } from '@grpc/proto-loader'
import { messageOf } from '../base/index.ts'
import { RpcError } from './errors.ts'
import type { MessageCodec, NodeMessages } from './messages.ts'

const protoFile = join(import.meta.dirname, '../../proto/node.proto')

/** Reads `proto/node.proto`: about 40 ms. */
export function readNodeMessages(): NodeMessages {
  const definition = loadSync(protoFile, { longs: Number, enums: String, defaults: true, oneofs: true })
  const service = definition['rookery.v1.Node'] as Readonly<Record<string, MethodCodecs>>
  const { Converse, Describe, Ask } = service
  return {
    peerMessage: codec('PeerMessage', Converse!.requestSerialize, Converse!.requestDeserialize),
    describeRequest: codec('DescribeRequest', Describe!.requestSerialize, Describe!.requestDeserialize),
    nodeDescription: codec('NodeDescription', Describe!.responseSerialize, Describe!.responseDeserialize),
    controllerRequest: codec('ControllerRequest', Ask!.requestSerialize, Ask!.requestDeserialize),
    controllerAnswer: codec('ControllerAnswer', Ask!.responseSerialize, Ask!.responseDeserialize),
  }
}

interface MethodCodecs {
  readonly requestSerialize: (message: object) => Buffer
  readonly requestDeserialize: (bytes: Buffer) => object
  readonly responseSerialize: (message: object) => Buffer
  readonly responseDeserialize: (bytes: Buffer) => object
}

function codec<Message extends object>(
  name: string,
  encode: (message: object) => Buffer,
  decode: (bytes: Buffer) => object,
): MessageCodec<Message> {
  return {
    encode,
    decode(bytes) {
      try {
        return decode(bytes) as Message
      } catch (error) {
        throw new RpcError('invalid-message', `Not a ${name}: ${messageOf(error)}`, { cause: error })
      }
    },
  }
}
