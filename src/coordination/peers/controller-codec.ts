import { Packr } from 'msgpackr'
import { messageOf } from '../../base/index.ts'
import { type ControllerRequest, RpcError } from '../../rpc/index.ts'
import type { ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
import { arrayOf, either, flag, mapOf, nullable, oneOf, type Shape, struct, text, uuid, whole } from './shapes.ts'

/** Objects travel as records and Maps as maps, so that each comes out as what it was. Every message is whole in itself. */
const packr = new Packr({ useRecords: true, mapsAsObjects: false, variableMapSize: true })

const topicPartition = struct({ topic: text, partition: whole })
const endpoint = struct({ name: text, host: text, port: whole, securityProtocol: text })
const feature = struct({ name: text, minLevel: whole, maxLevel: whole })
const run = { brokerId: whole, brokerEpoch: whole }
const configChange = nullable(either(text, struct({ append: text }), struct({ subtract: text })))

const voterAtEndpoint = struct({ id: whole, directoryId: uuid, endpoint: text, timeoutMs: whole })

/** What each request must look like. */
const shapes: Readonly<Record<ControllerRequestKind, Shape>> = {
  createTopics: struct({
    requests: arrayOf(
      struct(
        { name: text, partitionCount: whole, replicationFactor: whole, configs: mapOf(text, nullable(text)) },
        { assignments: mapOf(whole, arrayOf(whole)) },
      ),
    ),
    validateOnly: flag,
  }),
  deleteTopics: struct({
    requests: arrayOf(either(struct({ name: text }), struct({ topicId: uuid }))),
    validateOnly: flag,
  }),
  createPartitions: struct({
    requests: arrayOf(struct({ name: text, totalCount: whole }, { assignments: arrayOf(arrayOf(whole)) })),
    validateOnly: flag,
  }),
  alterConfigs: struct({
    requests: arrayOf(
      struct(
        { resourceType: oneOf('topic', 'broker'), resourceName: text, changes: mapOf(text, configChange) },
        { replaces: flag },
      ),
    ),
    validateOnly: flag,
  }),
  registerBroker: struct({
    brokerId: whole,
    incarnationId: uuid,
    clusterId: text,
    endpoints: arrayOf(endpoint),
    rack: nullable(text),
    logDirs: arrayOf(uuid),
    features: arrayOf(feature),
    previousBrokerEpoch: nullable(whole),
  }),
  heartbeat: struct(
    { ...run, appliedIndex: whole, wantFence: flag, wantShutdown: flag },
    { offlineLogDirs: arrayOf(uuid) },
  ),
  unregisterBroker: struct({ brokerId: whole }),
  registerController: struct({
    controllerId: whole,
    incarnationId: uuid,
    clusterId: text,
    endpoints: arrayOf(endpoint),
    features: arrayOf(feature),
  }),
  alterPartition: struct({
    ...run,
    changes: arrayOf(
      struct({
        topicId: uuid,
        partition: whole,
        leaderEpoch: whole,
        partitionEpoch: whole,
        isr: arrayOf(struct({ brokerId: whole, brokerEpoch: nullable(whole) })),
        leaderRecoveryState: text,
      }),
    ),
  }),
  electLeaders: struct({ electionType: oneOf('preferred', 'unclean'), partitions: nullable(arrayOf(topicPartition)) }),
  alterPartitionReassignments: struct({
    requests: arrayOf(struct({ topic: text, partition: whole, replicas: nullable(arrayOf(whole)) })),
    allowReplicationFactorChange: flag,
  }),
  listPartitionReassignments: struct({ partitions: nullable(arrayOf(topicPartition)) }),
  assignReplicasToDirs: struct({
    ...run,
    assignments: arrayOf(struct({ topicId: uuid, partition: whole, directory: uuid })),
  }),
  updateFeatures: struct({
    updates: arrayOf(struct({ feature: text, level: whole, upgradeType: text })),
    validateOnly: flag,
  }),
  allocateProducerIds: struct(run),
  describeQuorum: struct({}),
  addVoter: voterAtEndpoint,
  updateVoter: voterAtEndpoint,
  removeVoter: struct({ id: whole, directoryId: uuid, timeoutMs: whole }),
}

function isRequestKind(kind: string): kind is ControllerRequestKind {
  return Object.hasOwn(shapes, kind)
}

export function encodeBody(body: unknown): Buffer {
  return packr.pack(body)
}

/** The request that a peer sent, of a form that decisions can take. Throws `RpcError` ('invalid-message'). */
export function decodeRequest({ kind, body }: ControllerRequest): {
  readonly kind: ControllerRequestKind
  readonly request: ControllerRequests[ControllerRequestKind]['request']
} {
  if (!isRequestKind(kind))
    throw new RpcError('invalid-message', `Controllers do not know the request ${kind.slice(0, 40)}`)
  const request = unpack(body, kind)
  if (!shapes[kind](request)) throw new RpcError('invalid-message', `Not a request ${kind}`)
  return { kind, request: request as ControllerRequests[ControllerRequestKind]['request'] }
}

/** A controller's answer: it is believed, as the controller decides anyway. Throws `RpcError` ('invalid-message'). */
export function decodeAnswer(body: Uint8Array, kind: string): unknown {
  return unpack(body, kind)
}

function unpack(body: Uint8Array, kind: string): unknown {
  try {
    return packr.unpack(body)
  } catch (error) {
    throw new RpcError('invalid-message', `What came for ${kind} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}
