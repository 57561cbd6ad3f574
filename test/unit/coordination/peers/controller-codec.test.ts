import { describe, expect, test } from 'vitest'
import type { Uuid } from '../../../../src/base/index.ts'
import { decodeAnswer, decodeRequest, encodeBody } from '../../../../src/coordination/peers/controller-codec.ts'
import { RpcError } from '../../../../src/rpc/index.ts'

const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid
const run = { brokerId: 1, brokerEpoch: 12 }

/** One request of each kind, with all that may be left out. */
const requests: Readonly<Record<string, object>> = {
  createTopics: {
    requests: [
      {
        name: 'orders',
        partitionCount: -1,
        replicationFactor: -1,
        configs: new Map([
          ['retention.ms', '5'],
          ['flush.ms', null],
        ]),
        assignments: new Map([[0, [1, 2]]]),
      },
    ],
    validateOnly: true,
  },
  deleteTopics: { requests: [{ name: 'orders' }, { topicId }], validateOnly: false },
  createPartitions: { requests: [{ name: 'orders', totalCount: 4, assignments: [[1, 2]] }], validateOnly: false },
  alterConfigs: {
    requests: [
      {
        resourceType: 'topic',
        resourceName: 'orders',
        changes: new Map<string, unknown>([
          ['a', 'x'],
          ['b', null],
          ['c', { append: 'x' }],
          ['d', { subtract: 'x' }],
        ]),
        replaces: true,
      },
    ],
    validateOnly: false,
  },
  registerBroker: {
    brokerId: 1,
    incarnationId: topicId,
    clusterId: 'c',
    endpoints: [{ name: 'PLAINTEXT', host: 'a', port: 9092, securityProtocol: 'PLAINTEXT' }],
    rack: null,
    logDirs: [topicId],
    features: [{ name: 'metadata.version', minLevel: 1, maxLevel: 2 }],
    previousBrokerEpoch: 7,
  },
  heartbeat: { ...run, appliedIndex: 5, wantFence: false, wantShutdown: true, offlineLogDirs: [topicId] },
  unregisterBroker: { brokerId: 3 },
  registerController: { controllerId: 1, incarnationId: topicId, clusterId: 'c', endpoints: [], features: [] },
  alterPartition: {
    ...run,
    changes: [
      {
        topicId,
        partition: 0,
        leaderEpoch: 3,
        partitionEpoch: 4,
        isr: [
          { brokerId: 1, brokerEpoch: 12 },
          { brokerId: 2, brokerEpoch: null },
        ],
        leaderRecoveryState: 'recovered',
      },
    ],
  },
  electLeaders: { electionType: 'preferred', partitions: [{ topic: 'orders', partition: 0 }] },
  alterPartitionReassignments: {
    requests: [
      { topic: 'orders', partition: 0, replicas: [1, 2] },
      { topic: 'orders', partition: 1, replicas: null },
    ],
    allowReplicationFactorChange: true,
  },
  assignReplicasToDirs: { ...run, assignments: [{ topicId, partition: 0, directory: topicId }] },
  updateFeatures: { updates: [{ feature: 'metadata.version', level: 2, upgradeType: 'upgrade' }], validateOnly: false },
  allocateProducerIds: run,
}

function decode(kind: string, body: Uint8Array) {
  return decodeRequest({ kind, clusterId: 'c', brokerId: 1, body })
}

describe('a request to a controller on another node', () => {
  test.each(Object.entries(requests))('%s is the same there', (kind, request) => {
    expect(decode(kind, encodeBody(request))).toEqual({ kind, request })
  })

  test.each(Object.entries(requests))(
    '%s without a field, or with one of another type, is refused',
    (kind, request) => {
      for (const field of Object.keys(request)) {
        const { [field]: _, ...rest } = request as Record<string, unknown>
        for (const spoilt of [
          { ...rest, [field]: Symbol.iterator.description },
          { ...rest, [field]: 1.5 },
        ]) {
          if (field === 'clusterId' && typeof spoilt[field] === 'string') continue
          if (field === 'rack' && typeof spoilt[field] === 'string') continue
          expect(() => decode(kind, encodeBody(spoilt)), `${kind} with ${field} ${spoilt[field]}`).toThrow(RpcError)
        }
        if (field !== 'offlineLogDirs') {
          expect(() => decode(kind, encodeBody(rest)), `${kind} without ${field}`).toThrow(RpcError)
        }
      }
    },
  )

  test('fields of a later version are no reason to refuse', () => {
    expect(decode('allocateProducerIds', encodeBody({ ...run, more: [1] })).kind).toBe('allocateProducerIds')
  })

  test.each([
    ['of an unknown kind', 'dropEverything', encodeBody({})],
    ['named as a method of objects', 'toString', encodeBody({})],
    ['that is no MessagePack', 'heartbeat', Buffer.from([0xc1])],
    ['that is cut off', 'heartbeat', encodeBody(requests.heartbeat).subarray(0, 9)],
    ['that is empty', 'heartbeat', Buffer.alloc(0)],
  ])('%s is refused', (_name, kind, body) => {
    expect(() => decode(kind, body)).toThrow(RpcError)
  })

  test('an answer is the same here, Maps and all', () => {
    const answer = [{ ok: true, name: 'orders', topicId, sizes: new Map([[1, 2]]), nothing: null }]
    expect(decodeAnswer(encodeBody(answer), 'createTopics')).toEqual(answer)
  })
})
