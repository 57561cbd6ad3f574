import { expect, test } from 'vitest'
import {
  ConsumerProtocolSubscription,
  decodeRecordKey,
  decodeVersioned,
  encodeRecordKey,
  encodeVersioned,
  GroupMetadataKey,
  GroupMetadataValue,
  MalformedRequestError,
  OffsetCommitKey,
  OffsetCommitValue,
  readRecordType,
} from '../../../src/protocol/index.ts'

test('keys begin with their record type', () => {
  const offset = encodeRecordKey(OffsetCommitKey, { group: 'g', topic: 't', partition: 3 })
  expect(offset.toString('hex')).toBe('0001' + '000167' + '000174' + '00000003')
  expect(readRecordType(offset)).toBe(1)
  expect(decodeRecordKey(OffsetCommitKey, offset)).toEqual({ group: 'g', topic: 't', partition: 3 })
  const group = encodeRecordKey(GroupMetadataKey, { group: 'g' })
  expect(group.toString('hex')).toBe('0002' + '000167')
  expect(decodeRecordKey(GroupMetadataKey, group)).toEqual({ group: 'g' })
  expect(() => readRecordType(Buffer.alloc(1))).toThrow(MalformedRequestError)
  expect(() => decodeRecordKey(GroupMetadataKey, Buffer.alloc(1))).toThrow(MalformedRequestError)
})

test('values begin with their version', () => {
  const value = { offset: 42, leaderEpoch: 5, metadata: 'm', commitTimestamp: 1000 }
  const bytes = encodeVersioned(OffsetCommitValue, 3, value)
  expect(bytes.toString('hex')).toBe('0003' + '000000000000002a' + '00000005' + '00016d' + '00000000000003e8')
  expect(decodeVersioned(OffsetCommitValue, bytes)).toMatchObject(value)
  const group = { protocolType: 'consumer', generation: 1, protocol: null, leader: null, members: [] }
  for (let version = 0; version <= 4; version++) {
    expect(decodeVersioned(GroupMetadataValue, encodeVersioned(GroupMetadataValue, version, group))).toMatchObject(
      group,
    )
  }
})

test('a version that is not known is refused, or read as the newest where that is right', () => {
  const bytes = encodeVersioned(ConsumerProtocolSubscription, 3, { topics: ['t'], rackId: 'r' })
  bytes.writeInt16BE(9)
  const longer = Buffer.concat([bytes, Buffer.from('more')])
  expect(() => decodeVersioned(ConsumerProtocolSubscription, longer)).toThrow('has no version 9')
  const value = decodeVersioned(ConsumerProtocolSubscription, longer, { newerAsNewest: true })
  expect(value).toMatchObject({ topics: ['t'], userData: null, rackId: 'r' })
  bytes.writeInt16BE(-1)
  expect(() => decodeVersioned(ConsumerProtocolSubscription, bytes, { newerAsNewest: true })).toThrow(
    MalformedRequestError,
  )
})
