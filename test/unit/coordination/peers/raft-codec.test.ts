import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { uuidFromBytes } from '../../../../src/base/index.ts'
import { fromWire, toWire } from '../../../../src/coordination/peers/raft-codec.ts'
import type { Entry, Message, Voter } from '../../../../src/raft/index.ts'
import { loadNodeMessages, type RaftMessage, RpcError } from '../../../../src/rpc/index.ts'

const { peerMessage } = await loadNodeMessages()

const index = fc.oneof(fc.nat(1000), fc.constant(Number.MAX_SAFE_INTEGER))
const nodeId = fc.integer({ min: 0, max: 2 ** 31 - 1 })
const uuid = fc.uint8Array({ minLength: 16, maxLength: 16 }).map(uuidFromBytes)
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
const crc = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const voter = fc
  .record({ id: nodeId, directoryId: uuid, endpoint: fc.constantFrom(undefined, 'b:9093', '[::1]:1') })
  .map(({ endpoint, ...rest }) => (endpoint === undefined ? rest : { ...rest, endpoint }) as Voter)
const header = fc.record({
  index,
  term: index,
  membership: fc.record({ voters: fc.array(voter, { maxLength: 3 }) }),
  totalBytes: fc.integer({ min: 1000, max: 2 ** 40 }),
  dataCrc: crc,
})

const bodies = {
  preVote: { lastIndex: index, lastTerm: index, isTransfer: fc.boolean() },
  vote: { lastIndex: index, lastTerm: index, isTransfer: fc.boolean() },
  preVoteAnswer: { granted: fc.boolean() },
  voteAnswer: { granted: fc.boolean() },
  append: {
    prevIndex: fc.nat(1_000_000),
    prevTerm: index,
    commitIndex: index,
    entries: fc.array(fc.record({ term: index, type: fc.constantFrom('noop', 'data', 'config'), data: bytes }), {
      maxLength: 4,
    }),
  },
  appendAnswer: { index, rejection: fc.option(fc.record({ hintIndex: index, hintTerm: index })) },
  heartbeat: { commitIndex: index, commitTerm: index, readRound: index },
  heartbeatAnswer: { readRound: index },
  snapshotChunk: { header, offset: fc.nat(900), data: bytes, crc },
  snapshotChunkAnswer: { index, nextOffset: index },
  timeoutNow: { lastIndex: index, lastTerm: index },
  follow: { lastIndex: index },
  leaderHint: { leader: voter },
} as const

const message = fc.oneof(
  ...Object.entries<Readonly<Record<string, fc.Arbitrary<unknown>>>>(bodies).map(([type, fields]) =>
    fc
      .record({ from: nodeId, fromDirectoryId: uuid, to: nodeId, term: index, ...fields })
      .map((each) => withIndexes({ ...each, type } as unknown as Message)),
  ),
)

/** Entries follow on `prevIndex`. */
function withIndexes(each: Message): Message {
  if (each.type !== 'append') return each
  const entries = each.entries.map((entry, i) => ({ ...entry, index: each.prevIndex + 1 + i }) as Entry)
  return { ...each, entries }
}

function overTheWire(each: Message): Message {
  return fromWire(peerMessage.decode(peerMessage.encode({ raft: toWire(each) })).raft!)
}

describe("Raft's messages", () => {
  test('are the same at the other end, of every kind', () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(message, (each) => {
        seen.add(each.type)
        expect(overTheWire(each)).toEqual(each)
      }),
      { numRuns: 2000 },
    )
    expect([...seen].sort()).toEqual(Object.keys(bodies).sort())
  })

  const good: RaftMessage = { from: 1, fromDirectoryId: 'AAAAAAAAAAAAAAAAAAAAAQ', to: 2, term: 3 }
  test.each<[string, RaftMessage]>([
    ['no body', good],
    ['a node below zero', { ...good, from: -1, body: 'follow', follow: { lastIndex: 1 } }],
    ['an index that is no safe integer', { ...good, body: 'follow', follow: { lastIndex: 2 ** 60 } }],
    ['a directory id that is none', { ...good, fromDirectoryId: 'x', body: 'follow', follow: { lastIndex: 1 } }],
    [
      'an entry of a type to come',
      {
        ...good,
        body: 'append',
        append: {
          prevIndex: 0,
          prevTerm: 0,
          commitIndex: 0,
          entries: [{ term: 1, type: 'RAFT_ENTRY_TYPE_UNKNOWN', data: Buffer.alloc(0) }],
        },
      },
    ],
    [
      'a chunk of no snapshot',
      { ...good, body: 'snapshotChunk', snapshotChunk: { offset: 0, data: Buffer.alloc(1), crc: 0 } },
    ],
    [
      'a chunk past its snapshot',
      {
        ...good,
        body: 'snapshotChunk',
        snapshotChunk: {
          header: { index: 1, term: 1, voters: [], totalBytes: 5, dataCrc: 0 },
          offset: 5,
          data: Buffer.alloc(1),
          crc: 0,
        },
      },
    ],
    ['a hint at nobody', { ...good, body: 'leaderHint', leaderHint: {} }],
  ])('with %s are refused', (_name, wire) => {
    expect(() => fromWire(wire)).toThrow(RpcError)
  })

  test('whatever bytes a peer sends, they are a message or a refusal', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (random) => {
        try {
          const { raft } = peerMessage.decode(Buffer.from(random))
          if (raft !== undefined) fromWire(raft)
        } catch (error) {
          expect(error).toBeInstanceOf(RpcError)
        }
      }),
      { numRuns: 3000 },
    )
  })

  test('with any byte changed are a message or a refusal', () => {
    fc.assert(
      fc.property(message, fc.nat(), fc.nat(255), (each, at, value) => {
        const encoded = peerMessage.encode({ raft: toWire(each) })
        encoded[at % encoded.length] = value
        try {
          const { raft } = peerMessage.decode(encoded)
          if (raft !== undefined) fromWire(raft)
        } catch (error) {
          expect(error).toBeInstanceOf(RpcError)
        }
      }),
      { numRuns: 2000 },
    )
  })
})
