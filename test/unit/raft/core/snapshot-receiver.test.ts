import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { zeroUuid } from '../../../../src/base/index.ts'
import { SnapshotReceiver } from '../../../../src/raft/core/snapshot-receiver.ts'
import type { LogIndex, NodeId, SnapshotChunkMessage, Term } from '../../../../src/raft/core/types.ts'

const whole = Buffer.from('0123456789')

function chunk(offset: number, end: number, of: { index?: number; term?: number; data?: Buffer } = {}) {
  const { index = 7, term = 3, data = whole } = of
  const bytes = data.subarray(offset, end)
  const message: SnapshotChunkMessage = {
    type: 'snapshotChunk',
    from: 1 as NodeId,
    fromDirectoryId: zeroUuid,
    to: 2 as NodeId,
    term: term as Term,
    header: {
      index: index as LogIndex,
      term: 2 as Term,
      membership: { voters: [] },
      totalBytes: data.length,
      dataCrc: crc32(data),
    },
    offset,
    data: bytes,
    crc: crc32(bytes),
  }
  return message
}

const textOf = (receiver: SnapshotReceiver) =>
  receiver
    .takeChunks()
    .map(({ data }) => Buffer.from(data).toString())
    .join('|')

describe('SnapshotReceiver', () => {
  test('takes chunks in order and says when all are there', () => {
    const receiver = new SnapshotReceiver(undefined)
    expect([receiver.accept(chunk(0, 4)), receiver.accept(chunk(4, 8)), receiver.accept(chunk(8, 10))]).toEqual([
      4,
      8,
      undefined,
    ])
    expect(textOf(receiver)).toBe('0123|4567|89')
    expect(receiver.isComplete(7 as LogIndex)).toBe(true)
  })

  test('takes no chunk twice, none out of order, none that is damaged or too long', () => {
    const receiver = new SnapshotReceiver(undefined)
    expect(receiver.accept(chunk(4, 8))).toBe(0)
    expect(receiver.accept(chunk(0, 4))).toBe(4)
    expect(receiver.accept(chunk(0, 4))).toBe(4)
    expect(receiver.accept(chunk(8, 10))).toBe(4)
    expect(receiver.accept({ ...chunk(4, 8), crc: 1 })).toBe(4)
    expect(
      receiver.accept({ ...chunk(4, 8), data: Buffer.from('45678999999'), crc: crc32(Buffer.from('45678999999')) }),
    ).toBe(4)
    expect(receiver.accept(chunk(4, 4))).toBe(4)
    expect(receiver.accept(chunk(4, 10))).toBe(undefined)
    // A copy of the last one, after which nothing more is asked for.
    expect(receiver.accept(chunk(4, 10))).toBe(undefined)
    expect(textOf(receiver)).toBe('0123|456789')
  })

  test('goes on with the same bytes after a restart and with another leader', () => {
    const receiver = new SnapshotReceiver({ header: chunk(0, 4).header, nextOffset: 4 })
    expect(receiver.accept(chunk(0, 4, { term: 4 }))).toBe(4)
    expect(receiver.accept(chunk(4, 8, { term: 4 }))).toBe(8)
    expect(textOf(receiver)).toBe('4567')
  })

  test('starts over with a newer snapshot, and with one of other bytes', () => {
    const receiver = new SnapshotReceiver(undefined)
    receiver.accept(chunk(0, 4))
    expect(receiver.accept(chunk(4, 8, { index: 9 }))).toBe(0)
    expect(receiver.accept(chunk(0, 4, { index: 9 }))).toBe(4)
    expect(receiver.accept(chunk(4, 8, { index: 9, data: Buffer.from('abcdefghij') }))).toBe(0)
    receiver.accept(chunk(0, 10, { index: 9, data: Buffer.from('abcdefghij') }))
    expect(textOf(receiver)).toBe('abcdefghij')
  })

  test("lets no late chunk of a leader throw away its newer snapshot, but takes another leader's older one", () => {
    const receiver = new SnapshotReceiver(undefined)
    receiver.accept(chunk(0, 4, { index: 9 }))
    expect(receiver.accept(chunk(0, 4, { index: 7 }))).toBe(0)
    expect(receiver.accept(chunk(4, 8, { index: 9 }))).toBe(8)
    expect(receiver.accept(chunk(0, 4, { index: 7, term: 4 }))).toBe(4)
    expect(receiver.isComplete(9 as LogIndex)).toBe(false)
  })

  test('asks anew for a whole one that was kept over a restart and not installed', () => {
    const receiver = new SnapshotReceiver({ header: chunk(0, 4).header, nextOffset: 10 })
    expect(receiver.accept(chunk(8, 10))).toBe(0)
  })

  test('takes an empty snapshot', () => {
    const receiver = new SnapshotReceiver(undefined)
    expect(receiver.accept(chunk(0, 0, { data: Buffer.alloc(0) }))).toBe(undefined)
    expect(receiver.takeChunks()).toHaveLength(1)
    receiver.dropUpTo(6 as LogIndex)
    expect(receiver.isComplete(7 as LogIndex)).toBe(true)
    receiver.dropUpTo(7 as LogIndex)
    expect(receiver.isComplete(7 as LogIndex)).toBe(false)
  })
})
