import { describe, expect, test } from 'vitest'
import { type Uuid, zeroUuid } from '../../../src/base/index.ts'
import { ownProtocols } from '../../../src/group/member.ts'
import { type GroupRecord, groupRecordCodec } from '../../../src/group/records.ts'
import type { JoinGroupRequest } from '../../../src/group/types.ts'

// Bytes printed by Apache Kafka 4.4.0's own classes (GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue and
// MessageUtil of kafka-group-coordinator and kafka-clients).
const groupKey = '000200086d792d67726f7570'
const offsetKey = '000100086d792d67726f757000066f726465727300000007'
const groupValue =
  '00030008636f6e73756d657200000005000572616e67650008636c69656e742d310000018bcfe56800000000020008636c69656e742d310008' +
  '696e7374616e63650006636c69656e74000a2f3132372e302e302e310000ea6000002710000000030102030000000204050008636c69656e742d' +
  '32ffff0006636c69656e74000a2f3132372e302e302e31000493e00000afc80000000000000000'
const groupValue0 =
  '00000008636f6e73756d657200000005000572616e67650008636c69656e742d31000000020008636c69656e742d310006636c69656e74000a2f' +
  '3132372e302e302e3100002710000000030102030000000204050008636c69656e742d320006636c69656e74000a2f3132372e302e302e310000' +
  'afc80000000000000000'
const groupValue4 =
  '000409636f6e73756d6572000000050672616e676509636c69656e742d310000018bcfe568000309636c69656e742d3109696e7374616e636507' +
  '636c69656e740b2f3132372e302e302e310000ea6000002710040102030304050009636c69656e742d320007636c69656e740b2f3132372e302e' +
  '302e31000493e00000afc801010000'
const emptyGroupValue = '00030008636f6e73756d657200000006ffffffff0000018bcfe5680100000000'

const members = [
  {
    memberId: 'client-1',
    groupInstanceId: 'instance',
    clientId: 'client',
    clientHost: '/127.0.0.1',
    rebalanceTimeout: 60_000,
    sessionTimeout: 10_000,
    subscription: Buffer.from([1, 2, 3]),
    assignment: Buffer.from([4, 5]),
  },
  {
    memberId: 'client-2',
    groupInstanceId: null,
    clientId: 'client',
    clientHost: '/127.0.0.1',
    rebalanceTimeout: 300_000,
    sessionTimeout: 45_000,
    subscription: Buffer.alloc(0),
    assignment: Buffer.alloc(0),
  },
]
const group = {
  protocolType: 'consumer',
  generation: 5,
  protocol: 'range',
  leader: 'client-1',
  currentStateTimestamp: 1_700_000_000_000,
  members,
}
const offset = {
  offset: 1_234_567_890_123,
  leaderEpoch: 9,
  metadata: 'note',
  commitTimestampMs: 1_700_000_000_000,
  expireTimestampMs: -1,
  topicId: zeroUuid,
}
const topicId = 'abcdefghijklmnopqrstug' as Uuid

const groupRecord = (value: typeof group | null): GroupRecord => ({ kind: 'group', groupId: 'my-group', value })
const offsetRecord = (value: typeof offset | null): GroupRecord => ({
  kind: 'offset',
  groupId: 'my-group',
  topic: 'orders',
  partition: 7,
  value,
})
const bytes = (hex: string) => Buffer.from(hex, 'hex')

describe('The records of __consumer_offsets are those of Kafka', () => {
  test.each<[string, GroupRecord, string, string | null]>([
    ['a generation', groupRecord(group), groupKey, groupValue],
    [
      'a generation of nobody',
      groupRecord({
        ...group,
        generation: 6,
        protocol: null as never,
        leader: null as never,
        currentStateTimestamp: 1_700_000_000_001,
        members: [],
      }),
      groupKey,
      emptyGroupValue,
    ],
    ['a group that is gone', groupRecord(null), groupKey, null],
    ['an offset', offsetRecord(offset), offsetKey, '00040000011f71fb04cb00000009056e6f74650000018bcfe5680000'],
    [
      'an offset of a topic id',
      offsetRecord({ ...offset, topicId }),
      offsetKey,
      '00040000011f71fb04cb00000009056e6f74650000018bcfe5680001001069b71d79f8218a39259a7a29aabb2dba',
    ],
    [
      'an offset with its own retention',
      offsetRecord({ ...offset, leaderEpoch: -1, expireTimestampMs: 1_700_000_086_400 }),
      offsetKey,
      '00010000011f71fb04cb00046e6f74650000018bcfe568000000018bcfe6b980',
    ],
    ['an offset that is gone', offsetRecord(null), offsetKey, null],
  ])('%s', (_name, record, key, value) => {
    const encoded = groupRecordCodec.encode(record)
    expect(encoded.key.toString('hex')).toBe(key)
    expect(encoded.value?.toString('hex') ?? null).toBe(value)
    expect(groupRecordCodec.decode(bytes(key), value === null ? null : bytes(value))).toEqual(record)
  })

  test('also as older and newer versions wrote them', () => {
    const old = {
      ...group,
      currentStateTimestamp: -1,
      members: members.map((member) => ({ ...member, groupInstanceId: null, rebalanceTimeout: -1 })),
    }
    expect(groupRecordCodec.decode(bytes(groupKey), bytes(groupValue0))).toEqual(groupRecord(old))
    expect(groupRecordCodec.decode(bytes(groupKey), bytes(groupValue4))).toEqual(groupRecord(group))
    const value0 = bytes('00000000011f71fb04cb00046e6f74650000018bcfe56800')
    const value3 = bytes('00030000011f71fb04cb0000000900046e6f74650000018bcfe56800')
    const key0 = bytes(offsetKey.replace(/^0001/, '0000'))
    expect(groupRecordCodec.decode(key0, value0)).toEqual(offsetRecord({ ...offset, leaderEpoch: -1 }))
    expect(groupRecordCodec.decode(bytes(offsetKey), value3)).toEqual(offsetRecord(offset))
  })
})

describe('A record that is not understood', () => {
  test('of another kind (of the consumer protocol, say) is passed over', () => {
    expect(groupRecordCodec.decode(bytes('000300086d792d67726f7570'), bytes('0000'))).toBeUndefined()
  })

  test('of a newer version is an error, as passing over it would lose a group', () => {
    expect(() => groupRecordCodec.decode(bytes(groupKey), bytes('0009'))).toThrow(/GroupMetadataValue has version 9/)
    expect(() => groupRecordCodec.decode(bytes(offsetKey), bytes('ffff'))).toThrow(/OffsetCommitValue has version -1/)
  })

  test('that is cut short is an error at every length', () => {
    for (const [key, value] of [
      [groupKey, groupValue],
      [offsetKey, '00040000011f71fb04cb00000009056e6f74650000018bcfe5680000'],
    ] as const) {
      for (let length = 0; length < value.length / 2; length++) {
        expect(() => groupRecordCodec.decode(bytes(key), bytes(value).subarray(0, length))).toThrow()
      }
      for (let length = 0; length < key.length / 2; length++) {
        expect(() => groupRecordCodec.decode(bytes(key).subarray(0, length), null)).toThrow()
      }
    }
  })

  test('keeps no slice of the batch it came in', () => {
    const value = bytes(groupValue)
    const record = groupRecordCodec.decode(bytes(groupKey), value)
    value.fill(0)
    expect(record).toEqual(groupRecord(group))
  })
})

test('what a group keeps has memory of its own, and keeps no more', () => {
  const bytes = Buffer.from([1, 2, 3])
  const decoded = groupRecordCodec.decode(Buffer.from(groupKey, 'hex'), Buffer.from(groupValue, 'hex'))
  const [member] = decoded!.kind === 'group' ? decoded!.value!.members : []
  const [protocol] = ownProtocols({ protocols: [{ name: 'range', metadata: bytes }] } as unknown as JoinGroupRequest)
  expect(member!.subscription).toEqual(bytes)
  expect(protocol!.metadata).toEqual(bytes)
  for (const kept of [member!.subscription, member!.assignment, protocol!.metadata]) {
    expect(kept.buffer.byteLength).toBe(kept.length)
  }
})
