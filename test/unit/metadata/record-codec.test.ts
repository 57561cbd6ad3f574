import fc from 'fast-check'
import { Packr } from 'msgpackr'
import { describe, expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch, PartitionEpoch, ProducerId } from '../../../src/base/index.ts'
import { decodeRecords, encodeRecords, MetadataFormatError, type MetadataRecord } from '../../../src/metadata/index.ts'
import { brokerEpoch, brokerId, brokerIds, registration, uuid } from './support.ts'

/** One of each record and version, and the bytes that it has for ever. A change here is a change of what is on disks. */
const golden: readonly { readonly record: MetadataRecord; readonly bytes: string }[] = [
  {
    record: { type: 'FeatureLevel', name: 'metadata.version', level: 1 },
    bytes: '0191940c00b06d657461646174612e76657273696f6e01',
  },
  { record: { type: 'ClusterId', clusterId: 'a-cluster' }, bytes: '019193cd03e800a9612d636c7573746572' },
  {
    record: registration(1, { epoch: 5, rack: 'r1', fenced: true }),
    bytes:
      '019199000001b641414141414141415141414141414141414141443651059194a9504c41494e54455854a96c6f63616c686f7374cd238500a2723191b641414141414141415141414141414141414141483051c3',
  },
  { record: { type: 'UnregisterBroker', brokerId: brokerId(1), brokerEpoch: brokerEpoch(5) }, bytes: '01919401000105' },
  {
    record: { type: 'BrokerRegistrationChange', brokerId: brokerId(1), brokerEpoch: brokerEpoch(5), fenced: false },
    bytes: '01919611000105c2c0',
  },
  {
    record: {
      type: 'BrokerRegistrationChange',
      brokerId: brokerId(1),
      brokerEpoch: brokerEpoch(5),
      inControlledShutdown: true,
    },
    bytes: '01919611000105c0c3',
  },
  {
    record: { type: 'Topic', name: 'orders', topicId: uuid(7) },
    bytes: '0191940200a66f7264657273b641414141414141415141414141414141414141414277',
  },
  {
    record: {
      type: 'Partition',
      topicId: uuid(7),
      partition: 3,
      replicas: brokerIds(1, 2, 300),
      isr: brokerIds(2, 1),
      leader: brokerId(2),
      leaderEpoch: 4 as LeaderEpoch,
      partitionEpoch: 70_000 as PartitionEpoch,
    },
    bytes: '0191990300b64141414141414141514141414141414141414141427703930102cd012c9202010204ce00011170',
  },
  {
    record: { type: 'PartitionChange', topicId: uuid(7), partition: 3, isr: brokerIds(2), leader: -1 as BrokerId },
    bytes: '0191970500b64141414141414141514141414141414141414141427703c09102ff',
  },
  {
    record: { type: 'PartitionChange', topicId: uuid(7), partition: 200, replicas: brokerIds(2, 3) },
    bytes: '0191970500b641414141414141415141414141414141414141414277ccc8920203c0c0',
  },
  {
    record: { type: 'RemoveTopic', topicId: uuid(7) },
    bytes: '0191930900b641414141414141415141414141414141414141414277',
  },
  {
    record: {
      type: 'Config',
      resourceType: 'topic',
      resourceName: 'orders',
      key: 'retention.ms',
      value: '9223372036854775807',
    },
    bytes: '019196040002a66f7264657273ac726574656e74696f6e2e6d73b339323233333732303336383534373735383037',
  },
  {
    record: { type: 'Config', resourceType: 'broker', resourceName: '', key: 'log.retention.ms', value: null },
    bytes: '019196040004a0b06c6f672e726574656e74696f6e2e6d73c0',
  },
  {
    record: {
      type: 'ProducerIds',
      brokerId: brokerId(1),
      brokerEpoch: brokerEpoch(5),
      nextProducerId: 5_000_000_000 as ProducerId,
    },
    bytes: '0191950f000105cb41f2a05f20000000',
  },
  { record: { type: 'NoOp' }, bytes: '0191921400' },
  // Version 1.
  {
    record: { ...registration(1, { epoch: 5 }), features: [{ name: 'metadata.version', minLevel: 1, maxLevel: 2 }] },
    bytes:
      '01919a000101b641414141414141415141414141414141414141443651059194a9504c41494e54455854a96c6f63616c686f7374cd238500c091b641414141414141415141414141414141414141483051c29193b06d657461646174612e76657273696f6e0102',
  },
  {
    record: {
      type: 'BrokerRegistrationChange',
      brokerId: brokerId(1),
      brokerEpoch: brokerEpoch(5),
      fenced: true,
      logDirs: [],
    },
    bytes: '01919711010105c3c090',
  },
  {
    record: {
      type: 'RegisterController',
      controllerId: brokerId(3),
      incarnationId: uuid(8),
      endpoints: [],
      features: [{ name: 'metadata.version', minLevel: 1, maxLevel: 2 }],
    },
    bytes: '0191961b0003b641414141414141415141414141414141414141414341909193b06d657461646174612e76657273696f6e0102',
  },
  {
    record: {
      type: 'Partition',
      topicId: uuid(7),
      partition: 0,
      replicas: brokerIds(1, 2),
      isr: brokerIds(1),
      leader: brokerId(1),
      leaderEpoch: 4 as LeaderEpoch,
      partitionEpoch: 5 as PartitionEpoch,
      addingReplicas: brokerIds(2),
      directories: [uuid(9), uuid(0)],
    },
    bytes:
      '01919f0301b6414141414141414151414141414141414141414142770092010291010104059102c0c0c0c092b641414141414141415141414141414141414141414351b641414141414141415141414141414141414141414141',
  },
  {
    record: {
      type: 'PartitionChange',
      topicId: uuid(7),
      partition: 0,
      leader: brokerId(-1),
      removingReplicas: [],
      elr: brokerIds(2),
      lastKnownElr: brokerIds(1),
      leaderRecoveryState: 'recovering',
    },
    bytes: '01919d0501b64141414141414141514141414141414141414141427700c0c0ffc0909102910101c0',
  },
]

const pack = (value: unknown) =>
  Buffer.concat([Buffer.of(1), new Packr({ useRecords: false, variableMapSize: true }).pack(value)])

describe('record codec', () => {
  test.each(golden.map(({ record, bytes }) => [record.type, record, bytes] as const))(
    '%s has its golden bytes',
    (_type, record, bytes) => {
      expect(encodeRecords([record]).toString('hex')).toBe(bytes)
      expect(decodeRecords(Buffer.from(bytes, 'hex'))).toEqual([record])
    },
  )

  test('an entry holds many records in order', () => {
    const records = golden.map(({ record }) => record)
    expect(decodeRecords(encodeRecords(records))).toEqual(records)
    expect(decodeRecords(encodeRecords([]))).toEqual([])
  })

  test('numbers past 32 bits keep every bit', () => {
    const nextProducerId = (2 ** 53 - 1) as ProducerId
    const record: MetadataRecord = {
      type: 'ProducerIds',
      brokerId: brokerId(1),
      brokerEpoch: brokerEpoch(2 ** 40 + 1),
      nextProducerId,
    }
    expect(decodeRecords(encodeRecords([record]))).toEqual([record])
  })

  test.each([
    ['an empty payload', Buffer.alloc(0)],
    ['a newer format', Buffer.of(2, 0x90)],
    ['no bytes after the format', Buffer.of(1)],
    ['no list', Buffer.of(1, 0x01)],
    ['an unknown type', pack([[999, 0]])],
    ['a newer version of a known type', pack([[20, 1]])],
    ['a version past the last of a type', pack([[5, 2, uuid(7), 0, null, null, null]])],
    ['an unknown recovery state', pack([[5, 1, uuid(7), 0, null, null, null, null, null, null, null, 2, null]])],
    ['a field too many', pack([[20, 0, 5]])],
    ['a field too few', pack([[2, 0, 'orders']])],
    ['a record that is no list', pack([5])],
    ['a type that is no number', pack([['Topic', 0]])],
    ['a negative broker id', pack([[1, 0, -1, 5]])],
    ['a fraction', pack([[1, 0, 1.5, 5]])],
    ['a number past 2^53', pack([[1, 0, 1, 2 ** 60]])],
    ['an integer that is a bigint', pack([[1, 0, 1, 5n]])],
    ['a topic id that is no UUID', pack([[9, 0, 'orders']])],
    ['an unknown resource type', pack([[4, 0, 3, 'a', 'b', 'c']])],
    ['an unknown security protocol', pack([[0, 0, 1, uuid(1), 1, [['P', 'h', 1, 9]], null, [], true]])],
    ['trailing bytes', Buffer.concat([pack([]), Buffer.of(0)])],
  ])('%s is refused', (_what, bytes) => {
    expect(() => decodeRecords(bytes)).toThrow(MetadataFormatError)
  })

  test('every truncation of a payload is refused', () => {
    const bytes = encodeRecords(golden.map(({ record }) => record))
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeRecords(bytes.subarray(0, length))).toThrow(MetadataFormatError)
    }
  })

  test('damaged payloads are refused or decode to records, and never throw anything else', () => {
    const bytes = encodeRecords(golden.map(({ record }) => record))
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (position, value) => {
        const damaged = Buffer.from(bytes)
        damaged[position] = value
        try {
          decodeRecords(damaged)
        } catch (error) {
          expect(error).toBeInstanceOf(MetadataFormatError)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

test('a payload has memory of its own: entries of the log stay, and a slab around each would too', () => {
  const payload = encodeRecords([{ type: 'ClusterId', clusterId: 'a-cluster' }])
  expect(payload.buffer.byteLength).toBe(payload.length)
})
