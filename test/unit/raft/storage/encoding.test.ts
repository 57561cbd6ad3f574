import { describe, expect, test } from 'vitest'
import { zeroUuid } from '../../../../src/base/index.ts'
import type { LogIndex, NodeId, Term } from '../../../../src/raft/index.ts'
import {
  chunkKey,
  decodeEntry,
  decodeHardState,
  decodeManifest,
  decodePartialHeader,
  encodeChunk,
  encodeEntry,
  encodeHardState,
  encodeManifest,
  encodePartialHeader,
  entryKey,
  seal,
  unseal,
} from '../../../../src/raft/storage/encoding.ts'
import { entry, hardState } from './store-fixture.ts'

const index = 2 ** 33 + 5
const manifest = {
  index: 7 as LogIndex,
  term: 3 as Term,
  membership: { voters: [{ id: 1 as NodeId, directoryId: zeroUuid }] },
  chainCrc: 0xdeadbeef,
  dataBytes: 5,
  dataCrc: 0x01020304,
  chunkCount: 1,
}

const header = {
  index: 7 as LogIndex,
  term: 3 as Term,
  membership: { voters: [{ id: 1 as NodeId, directoryId: zeroUuid, endpoint: 'a:9093' }] },
  totalBytes: 5,
  dataCrc: 0x01020304,
}

/** What version 1 writes. These bytes are on disks: a change here needs a new version, not new golden bytes. */
const golden: Readonly<Record<string, readonly [Buffer, string]>> = {
  'the key of an entry': [entryKey(index as LogIndex), '6c0000000200000005'],
  'the key of a chunk': [chunkKey(7 as LogIndex, 2), '73000000000000000700000002'],
  'a data entry': [
    encodeEntry(entry(index, 3, 'data'), 0xcafebabe),
    'ebe7303d9601cb42000000002800000301cecafebabec40464617461',
  ],
  'a noop entry': [encodeEntry(entry(1, 1, '', 'noop'), 0), '731081f4960101010000c400'],
  'a hard state': [encodeHardState(hardState(4, 2, 300)), 'a08a680e94010402cd012c'],
  'a hard state without a vote': [encodeHardState(hardState(4, null, 0)), 'ce354406940104ff00'],
  'a config entry': [encodeEntry(entry(2, 1, 'who', 'config'), 7), 'f296ea0a960102010207c40377686f'],
  'a hard state with the disk that got the vote': [
    encodeHardState({ ...hardState(4, 2, 300), votedDirectoryId: zeroUuid }),
    '3ec04f1995020402cd012cb641414141414141414141414141414141414141414141',
  ],
  'a manifest with an endpoint': [
    encodeManifest({
      ...manifest,
      membership: {
        voters: [...manifest.membership.voters, { id: 2 as NodeId, directoryId: zeroUuid, endpoint: 'b:1' }],
      },
    }),
    'b78685fe98020703929301b641414141414141414141414141414141414141414141a09302b641414141414141414141414141414141414141414141a3623a31cedeadbeef05ce0102030401',
  ],
  'the header of a partial snapshot': [
    encodePartialHeader(header),
    'dd80a93396010703919301b641414141414141414141414141414141414141414141a6613a3930393305ce01020304',
  ],
  'a manifest': [
    encodeManifest(manifest),
    'd3f4954d98010703919201b641414141414141414141414141414141414141414141cedeadbeef05ce0102030401',
  ],
  'a chunk': [encodeChunk(Buffer.from('state'), 0), 'c3ee71459201c4057374617465'],
}

describe('the encoding of', () => {
  test.each(Object.entries(golden))('%s is what version 1 wrote', (_name, [bytes, hex]) => {
    expect(bytes.toString('hex')).toBe(hex)
  })
})

describe('decoding', () => {
  test('gives back what was encoded', () => {
    const stored = decodeEntry(encodeEntry(entry(index, 3, 'data'), 0xcafebabe), 'it')
    expect(stored).toMatchObject({ entry: { index, term: 3, type: 'data' }, previousCrc: 0xcafebabe })
    expect(Buffer.from(stored.entry.data).toString()).toBe('data')
    expect(decodeHardState(encodeHardState(hardState(4, null, 9)))).toEqual(hardState(4, null, 9))
    expect(decodeManifest(encodeManifest(manifest))).toEqual(manifest)
    const voted = { ...hardState(4, 2, 9), votedDirectoryId: zeroUuid }
    expect(decodeHardState(encodeHardState(voted))).toEqual(voted)
    expect(decodePartialHeader(encodePartialHeader(header))).toEqual(header)
    const { membership } = header
    expect(decodeManifest(encodeManifest({ ...manifest, membership }))).toEqual({ ...manifest, membership })
  })

  test('refuses a newer version, an unknown entry type and fields of the wrong kind', () => {
    expect(() => unseal(seal([2, 1]), 'it')).toThrow('Version 2 of it is not known')
    expect(() => decodeHardState(seal([3, 1, 1, 1, 'disk']))).toThrow('Version 3 of the hard state is not known')
    expect(() => decodeEntry(seal([1, 1, 1, 9, 0, Buffer.alloc(0)]), 'it')).toThrow('Type 9 of it is not known')
    expect(() => decodeEntry(seal([1, 1, 1, 1, 0, 'text']), 'it')).toThrow('Field 5 of it is not valid')
    expect(() => decodeHardState(seal([1, -3, 0, 0]))).toThrow('not valid')
    expect(() => decodeHardState(seal([1, 2 ** 60, 0, 0]))).toThrow('not valid')
    expect(() => decodeManifest(seal([1, 1, 1, [[1]], 0, 0, 0, 0]))).toThrow('not valid')
    expect(() => unseal(seal([]), 'it')).toThrow('not valid')
    expect(() => unseal(Buffer.alloc(3), 'it')).toThrow('Checksum')
  })
})
