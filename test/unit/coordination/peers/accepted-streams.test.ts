import { describe, expect, test } from 'vitest'
import type { Uuid } from '../../../../src/base/index.ts'
import { AcceptedStreams } from '../../../../src/coordination/peers/accepted-streams.ts'
import { helloTo, type NodeIdentity } from '../../../../src/coordination/peers/identity.ts'
import {
  loadNodeMessages,
  type PeerMessage,
  type RpcError,
  type RpcStreamHandlers,
  type StreamMethod,
} from '../../../../src/rpc/index.ts'
import { silentLogger } from '../../../../src/telemetry/index.ts'
import { ManualTime } from '../../../support/manual-time.ts'

const { peerMessage, ...others } = await loadNodeMessages()
const messages = { peerMessage, ...others }
const [directory, otherDirectory, run, laterRun] = ['Q', 'g', 'w', 'A'].map(
  (end) => `AAAAAAAAAAAAAAAAAAAAA${end}` as Uuid,
)
const self: NodeIdentity = { clusterId: 'c1', nodeId: 1, directoryId: directory!, incarnationId: run! }
const peer: NodeIdentity = { clusterId: 'c1', nodeId: 2, directoryId: otherDirectory!, incarnationId: run! }

function setUp() {
  const time = new ManualTime()
  const raft: unknown[] = []
  const streams = new AcceptedStreams({
    platform: { clock: time, timers: time },
    messages,
    logger: silentLogger,
    identity: () => self,
    onRaft: (message) => raft.push(message),
  })
  const open = (method: StreamMethod = 'Converse') => {
    const sent: PeerMessage[] = []
    const state: { refusal?: RpcError | undefined; isCancelled: boolean } = { isCancelled: false }
    const handlers: RpcStreamHandlers = streams.accept(
      method,
      {
        send: (bytes) => sent.push(peerMessage.decode(Buffer.from(bytes))) > 0,
        end() {},
        cancel(error) {
          state.isCancelled = true
          state.refusal = error
        },
      },
      '127.0.0.1:5',
    )
    const say = (message: PeerMessage) => handlers.onMessage(peerMessage.encode(message))
    return { sent, state, handlers, say }
  }
  return { time, raft, streams, open }
}

const raftMessage = { from: 2, fromDirectoryId: otherDirectory!, to: 1, term: 3, follow: { lastIndex: 1 } }

describe('a stream that a peer opens', () => {
  test('is greeted, answers signs of life, and carries messages both ways', () => {
    const { time, raft, streams, open } = setUp()
    const { sent, say, handlers } = open()
    expect(streams.send(2, Buffer.alloc(0))).toBe(false)
    expect(streams.lastHeardMs(2)).toBeUndefined()
    say({ hello: helloTo(1, peer) })
    expect(sent[0]?.hello).toEqual(helloTo(2, self))
    say({ ping: {} })
    expect(sent[1]?.content).toBe('pong')
    say({ raft: raftMessage })
    expect(raft).toMatchObject([{ from: 2, body: 'follow' }])
    expect(streams.send(2, peerMessage.encode({ raft: { ...raftMessage, from: 1, to: 2 } }))).toBe(true)
    expect(sent[2]?.raft).toMatchObject({ from: 1, to: 2 })
    time.advance(700)
    const saidMs = time.monotonic()
    say({ ping: {} })
    time.advance(300)
    expect(streams.lastHeardMs(2)).toBe(saidMs)
    handlers.onClose(undefined)
    expect(streams.lastHeardMs(2)).toBeUndefined()
  })

  test('takes the place of the one that the same run of the peer opened before, whose end may never come', () => {
    const { streams, open } = setUp()
    const first = open()
    first.say({ hello: helloTo(1, peer) })
    const snapshots = open('SendSnapshot')
    snapshots.say({ hello: helloTo(1, peer) })
    const second = open()
    second.say({ hello: helloTo(1, peer) })
    expect([first, snapshots, second].map(({ state }) => state.isCancelled)).toEqual([true, false, false])
    streams.send(2, peerMessage.encode({ raft: { ...raftMessage, from: 1, to: 2 } }))
    expect(second.sent[1]?.raft).toMatchObject({ to: 2 })
    expect(snapshots.sent).toHaveLength(1)
    first.handlers.onClose(undefined)
    expect(streams.isOpenTo(2)).toBe(true)
    second.handlers.onClose(undefined)
    expect(streams.isOpenTo(2)).toBe(false)
  })

  test.each<[string, Partial<NodeIdentity>, string]>([
    ['another cluster', { clusterId: 'c2' }, 'of cluster c2'],
    ['the same id', { nodeId: 1 }, 'Two nodes have node.id 1'],
    ['no directory', { directoryId: '' as Uuid }, 'does not say which directory'],
  ])('of %s is refused with a sentence', (_name, changes, expected) => {
    const { open } = setUp()
    const { state, say, sent } = open()
    say({ hello: helloTo(1, { ...peer, ...changes }) })
    expect(state.refusal).toMatchObject({ reason: 'refused-by-peer', message: expect.stringContaining(expected) })
    expect(sent).toEqual([])
  })

  test('to the wrong node is refused with what is wrong', () => {
    const { open } = setUp()
    const { state, say } = open()
    say({ hello: helloTo(3, peer) })
    expect(state.refusal?.message).toContain('controller.quorum.voters is wrong')
  })

  test('of a node that does not know its cluster yet is taken', () => {
    const { open } = setUp()
    const { sent, say } = open()
    say({ hello: helloTo(1, { ...peer, clusterId: '' }) })
    expect(sent).toHaveLength(1)
  })

  test('that says nothing, something else first, or garbage is closed', () => {
    const { time, open } = setUp()
    const silent = open()
    time.advance(1000)
    expect(silent.state.refusal).toMatchObject({ reason: 'invalid-message' })
    const rude = open()
    rude.say({ ping: {} })
    expect(rude.state.refusal).toMatchObject({ reason: 'invalid-message' })
    const broken = open()
    broken.handlers.onMessage(Buffer.from([0xff, 0xff]))
    expect(broken.state.refusal).toMatchObject({ reason: 'invalid-message' })
  })

  test('carries nothing in the name of another node or disk', () => {
    const { raft, open } = setUp()
    for (const forged of [{ from: 3 }, { fromDirectoryId: directory! }]) {
      const { state, say } = open()
      say({ hello: helloTo(1, peer) })
      say({ raft: { ...raftMessage, ...forged } })
      expect(state.refusal).toMatchObject({ reason: 'invalid-message' })
    }
    expect(raft).toEqual([])
  })

  test('of another run of a node that lives is refused, and takes the place of one that went silent', () => {
    const { time, streams, open } = setUp()
    const first = open()
    first.say({ hello: helloTo(1, peer) })
    time.advance(1000)
    const second = open()
    second.say({ hello: helloTo(1, { ...peer, incarnationId: laterRun! }) })
    expect(second.state.refusal?.message).toContain('Another node with node.id 2 is connected')
    time.advance(600)
    const third = open()
    third.say({ hello: helloTo(1, { ...peer, incarnationId: laterRun! }) })
    expect([first.state.isCancelled, third.state.isCancelled]).toEqual([true, false])
    expect(streams.send(2, peerMessage.encode({ pong: {} }))).toBe(true)
    expect(third.sent.at(-1)?.content).toBe('pong')
    third.handlers.onClose(undefined)
    expect(streams.send(2, peerMessage.encode({ pong: {} }))).toBe(false)
  })
})
