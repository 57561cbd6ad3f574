import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { type Uuid, zeroUuid } from '../../../../src/base/index.ts'
import type { Random } from '../../../../src/platform/index.ts'
import {
  defaultRaftConfig,
  type Entry,
  type HardState,
  type LogIndex,
  type Membership,
  MemoryLog,
  type Message,
  type NodeId,
  type RaftConfig,
  RaftCore,
  RaftLog,
  type Ready,
  type Snapshot,
  type Term,
  type Voter,
} from '../../../../src/raft/index.ts'
import { SeededRandom } from '../../../simulation/raft-core/random.ts'

const config: RaftConfig = { ...defaultRaftConfig, electionTicks: 10, campaignTicks: 10, heartbeatTicks: 1 }

const id = (value: number) => value as NodeId
const term = (value: number) => value as Term
const at = (value: number) => value as LogIndex

function membershipOf(count: number): Membership {
  return { voters: Array.from({ length: count }, (_, i) => ({ id: id(i + 1), directoryId: zeroUuid })) }
}

function entry(index: number, ofTerm: number, bytes = 1): Entry {
  return { index: at(index), term: term(ofTerm), type: 'data', data: Buffer.alloc(bytes, 120) }
}

/** All of `snapshot` in one message from node 2, the leader of term 5. */
function chunkOf({ data, ...of }: Snapshot): Message {
  const header = { ...of, totalBytes: data.length, dataCrc: crc32(data) }
  const envelope = { from: id(2), fromDirectoryId: zeroUuid, to: id(1), term: term(5) } as const
  return { type: 'snapshotChunk', ...envelope, header, offset: 0, data, crc: crc32(data) }
}

/** Node 1 with its disk, which `settle` writes to at once. */
class Host {
  readonly durable: MemoryLog
  readonly log: RaftLog
  readonly core: RaftCore
  readonly applied: Entry[] = []
  readonly chunks: Uint8Array[] = []
  readonly reads: number[] = []
  hardState: HardState

  constructor(
    options: {
      own?: number
      random?: Pick<Random, 'int'>
      voters?: number
      entries?: Entry[]
      term?: number
      config?: Partial<RaftConfig>
      commit?: number
    } = {},
  ) {
    const { voters = 3, entries = [] } = options
    const bootstrap: Snapshot = {
      index: at(0),
      term: term(0),
      membership: membershipOf(voters),
      data: new Uint8Array(0),
    }
    this.durable = new MemoryLog(bootstrap, entries)
    this.hardState = {
      term: term(options.term ?? entries.at(-1)?.term ?? 0),
      votedFor: null,
      votedDirectoryId: null,
      commitIndex: at(options.commit ?? 0),
    }
    this.log = new RaftLog(this.durable, this.hardState.commitIndex)
    this.core = new RaftCore({
      id: id(options.own ?? 1),
      directoryId: zeroUuid,
      config: { ...config, ...options.config },
      log: this.log,
      hardState: this.hardState,
      random: options.random ?? { int: () => 0 },
    })
  }

  /** Does what every Ready says until there is none; all messages that left. */
  settle(): Message[] {
    const sent: Message[] = []
    for (let ready = this.core.ready(); ready !== undefined; ready = this.core.ready()) sent.push(...this.finish(ready))
    return sent
  }

  finish(ready: Ready): readonly Message[] {
    if (ready.snapshot !== undefined) this.durable.install(ready.snapshot)
    this.durable.append(ready.entriesToPersist)
    if (ready.hardState !== undefined) this.hardState = ready.hardState
    this.applied.push(...ready.committedEntries)
    this.reads.push(...ready.reads.map((read) => read.id))
    for (const chunk of ready.snapshotChunks) this.chunks.push(chunk.data)
    this.core.advance()
    const last = ready.snapshotChunks.at(-1)
    if (last !== undefined && last.offset + last.data.length === last.header.totalBytes) {
      const { index, term, membership } = last.header
      this.core.snapshotAssembled(index, { index, term, membership, data: Buffer.concat(this.chunks.splice(0)) })
    }
    return ready.messages
  }

  /** Makes it leader of the next term with the votes of all. */
  lead(): this {
    this.core.campaign()
    this.settle()
    for (const { id: voter } of this.core.membership.voters) {
      if (voter !== 1)
        this.core.step({
          type: 'preVoteAnswer',
          from: voter,
          fromDirectoryId: zeroUuid,
          to: id(1),
          term: term(this.core.term + 1),
          granted: true,
        })
      if (this.core.role === 'candidate') break
    }
    this.settle()
    for (const { id: voter } of this.core.membership.voters) {
      if (voter !== 1)
        this.core.step({
          type: 'voteAnswer',
          from: voter,
          fromDirectoryId: zeroUuid,
          to: id(1),
          term: this.core.term,
          granted: true,
        })
    }
    this.settle()
    expect(this.core.role).toBe('leader')
    return this
  }

  /** `from` says that it has all up to `index`. */
  acknowledge(from: number, index: number): void {
    this.core.step({
      type: 'appendAnswer',
      from: id(from),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: this.core.term,
      index: at(index),
      rejection: null,
    })
  }

  reject(from: number, index: number, hintIndex: number, hintTerm: number): void {
    const rejection = { hintIndex: at(hintIndex), hintTerm: term(hintTerm) }
    this.core.step({
      type: 'appendAnswer',
      from: id(from),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: this.core.term,
      index: at(index),
      rejection,
    })
  }

  propose(...texts: string[]): void {
    const outcome = this.core.propose(texts.map((text) => ({ type: 'data', data: Buffer.from(text) })))
    expect(outcome.ok).toBe(true)
  }
}

describe('a candidate', () => {
  test('gives up the campaign when a higher term comes between pre-vote and vote (E8)', () => {
    const host = new Host()
    host.core.campaign()
    host.settle()
    host.core.step({
      type: 'voteAnswer',
      from: id(3),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(5),
      granted: false,
    })
    expect(host.core.role).toBe('follower')
    // The grant of the campaign before is of no use to the one that follows.
    host.core.campaign()
    host.core.step({
      type: 'preVoteAnswer',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(1),
      granted: true,
    })
    host.core.step({
      type: 'preVoteAnswer',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(5),
      granted: true,
    })
    expect([host.core.role, host.core.term]).toEqual(['preCandidate', 5])
    host.core.step({
      type: 'preVoteAnswer',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(6),
      granted: true,
    })
    expect([host.core.role, host.core.term]).toEqual(['candidate', 6])
  })

  test('does not count a refusal with a higher term as a vote (E8)', () => {
    const host = new Host()
    host.core.campaign()
    host.core.step({
      type: 'preVoteAnswer',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(9),
      granted: false,
    })
    expect([host.core.role, host.core.term]).toEqual(['follower', 9])
  })

  test('does not count votes that were meant for another', () => {
    const host = new Host()
    host.core.campaign()
    host.core.step({
      type: 'preVoteAnswer',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(3),
      term: term(1),
      granted: true,
    })
    expect(host.core.role).toBe('preCandidate')
  })

  test('counts its own vote only when it is durable, and no vote twice', () => {
    const host = new Host({ voters: 5 })
    host.core.campaign()
    host.settle()
    for (const from of [2, 3]) {
      host.core.step({
        type: 'preVoteAnswer',
        from: id(from),
        fromDirectoryId: zeroUuid,
        to: id(1),
        term: term(1),
        granted: true,
      })
    }
    const ready = host.core.ready()!
    expect(ready).toMatchObject({ hardState: { term: 1, votedFor: 1 }, mustSync: true })
    for (const from of [2, 2, 2, 3]) {
      host.core.step({
        type: 'voteAnswer',
        from: id(from),
        fromDirectoryId: zeroUuid,
        to: id(1),
        term: term(1),
        granted: true,
      })
    }
    expect(host.core.role).toBe('candidate')
    host.finish(ready)
    expect(host.core.role).toBe('leader')
  })

  test('is elected in the first round most of the time, and soon always, whatever the seed (E13)', () => {
    const ticksUntilElected = (seed: number): number => {
      const random = new SeededRandom(seed)
      const hosts = [1, 2, 3].map((own) => new Host({ own, random }))
      for (let tick = 1; ; tick++) {
        const sent: Message[] = []
        for (const { core } of hosts) core.tick()
        for (const host of hosts) sent.push(...host.settle())
        // A message arrives in the tick in which it was sent, a campaign's whole conversation included.
        for (let message = sent.shift(); message !== undefined; message = sent.shift()) {
          const target = hosts[message.to - 1]!
          target.core.step(message)
          sent.push(...target.settle())
        }
        if (hosts.some(({ core }) => core.role === 'leader')) return tick
      }
    }
    const ticks = Array.from({ length: 1000 }, (_, i) => ticksUntilElected(i + 1)).sort((a, b) => a - b)
    // One round is 10 to 19 ticks.
    expect(ticks.filter((count) => count < 20).length).toBeGreaterThan(850)
    expect(ticks.at(-1)).toBeLessThan(80)
  })
})

describe('a voter', () => {
  test('gives a pre-vote without being kept from campaigning by it (E6)', () => {
    const host = new Host()
    for (let tick = 0; tick < 9; tick++) {
      host.core.tick()
      host.core.step({
        type: 'preVote',
        from: id(2),
        fromDirectoryId: zeroUuid,
        to: id(1),
        term: term(1),
        lastIndex: at(0),
        lastTerm: term(0),
        isTransfer: false,
      })
    }
    const granted = host.settle().filter((message) => message.type === 'preVoteAnswer' && message.granted)
    expect(granted).toHaveLength(9)
    host.core.tick()
    expect(host.core.role).toBe('preCandidate')
  })

  test('votes once in a term, and for the same candidate again', () => {
    const host = new Host()
    const ask = (from: number) => {
      host.core.step({
        type: 'vote',
        from: id(from),
        fromDirectoryId: zeroUuid,
        to: id(1),
        term: term(1),
        lastIndex: at(0),
        lastTerm: term(0),
        isTransfer: false,
      })
      return host.settle().map((message) => message.type === 'voteAnswer' && message.granted)
    }
    expect([ask(2), ask(3), ask(2)]).toEqual([[true], [false], [true]])
  })

  test('compares logs by last term, then by length (E2)', () => {
    const host = new Host({ entries: [entry(1, 1), entry(2, 1), entry(3, 2)] })
    const upToDate = (index: number, ofTerm: number) => host.log.isUpToDate(at(index), term(ofTerm))
    expect([upToDate(1, 3), upToDate(3, 2), upToDate(4, 2)]).toEqual([true, true, true])
    expect([upToDate(9, 1), upToDate(2, 2)]).toEqual([false, false])
  })
})

describe('a leader', () => {
  test('counts its own copy only when it is durable (R8)', () => {
    const host = new Host().lead()
    host.acknowledge(2, 1)
    host.settle()
    host.propose('a')
    const ready = host.core.ready()!
    host.acknowledge(2, 2)
    expect(host.core.commitIndex).toBe(1)
    host.finish(ready)
    expect(host.core.commitIndex).toBe(2)
  })

  test('takes no notice of answers to the campaign that it won (E9)', () => {
    const host = new Host({ voters: 5 }).lead()
    const before = host.core.term
    for (const from of [4, 5]) {
      const envelope = { from: id(from), fromDirectoryId: zeroUuid, to: id(1) } as const
      host.core.step({ type: 'preVoteAnswer', ...envelope, term: before, granted: true })
      host.core.step({ type: 'preVoteAnswer', ...envelope, term: term(before + 1), granted: true })
      host.core.step({ type: 'voteAnswer', ...envelope, term: before, granted: true })
      host.core.step({ type: 'voteAnswer', ...envelope, term: before, granted: false })
    }
    expect([host.core.role, host.core.term]).toEqual(['leader', before])
    expect(host.settle()).toEqual([])
  })

  test('commits nothing of earlier terms before its own first entry (R1)', () => {
    const host = new Host({ entries: [entry(1, 1), entry(2, 1)] }).lead()
    host.acknowledge(2, 2)
    host.acknowledge(3, 2)
    expect(host.core.commitIndex).toBe(0)
    host.acknowledge(2, 3)
    expect(host.core.commitIndex).toBe(3)
  })

  test('ignores rejections that come late, twice or after an acceptance (R5)', () => {
    const host = new Host({ entries: Array.from({ length: 9 }, (_, i) => entry(i + 1, 1)) }).lead()
    host.reject(2, 9, 4, 1)
    host.settle()
    expect(host.core.progressOf(id(2))).toMatchObject({ state: 'probe', nextIndex: 5 })
    host.reject(2, 9, 4, 1)
    expect(host.settle()).toEqual([])
    host.acknowledge(2, 10)
    host.reject(2, 4, 0, 0)
    host.reject(2, 9, 4, 1)
    expect(host.core.progressOf(id(2))).toMatchObject({ state: 'replicate', matchIndex: 10, nextIndex: 11 })
  })

  test('does not ask for ever, without waiting, one that lost what it had acknowledged', () => {
    const host = new Host().lead()
    host.acknowledge(2, 1)
    host.propose('a')
    host.settle()
    host.reject(2, 1, 0, 0)
    host.core.step({
      type: 'heartbeatAnswer',
      readRound: 0,
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: host.core.term,
    })
    expect(host.settle().filter(({ to }) => to === 2).length).toBeLessThanOrEqual(2)
    for (let i = 0; i < 5; i++) {
      host.reject(2, 1, 0, 0)
      expect(host.settle().filter(({ to }) => to === 2)).toEqual([])
    }
  })

  test('sends the snapshot when what a follower needs is compacted, and not again and again (R10, S2)', () => {
    const host = new Host({ entries: Array.from({ length: 9 }, (_, i) => entry(i + 1, 1)), commit: 9 }).lead()
    host.durable.replaceSnapshot({ ...host.durable.snapshot, index: at(8), term: term(1), data: Buffer.from('state') })
    host.durable.compact(at(8))
    expect(host.log.term(at(7))).toBe('compacted')
    host.reject(3, 9, 0, 0)
    host.reject(3, 9, 0, 0)
    expect(host.settle()).toMatchObject([{ type: 'snapshotChunk', to: 3, header: { index: 8 } }])
    host.core.reportSnapshotFailed(id(3))
    host.core.tick()
    expect(host.settle()).toMatchObject([
      { type: 'snapshotChunk', to: 3 },
      { type: 'heartbeat' },
      { type: 'heartbeat' },
    ])
    host.acknowledge(3, 8)
    expect(host.settle()).toMatchObject([{ type: 'append', prevIndex: 8 }])
  })

  test('bounds what is in flight by count and by bytes, and counts back to zero (R11)', () => {
    const host = new Host({ config: { maxInflightCount: 4, maxInflightBytes: 100, maxBytesPerMessage: 40 } }).lead()
    const progress = () => host.core.progressOf(id(2))!
    host.acknowledge(2, 1)
    host.settle()
    for (let round = 0; round < 2000; round++) {
      host.propose('x'.repeat(30), 'y'.repeat(30), 'z'.repeat(30), 'x', 'y', 'z')
      host.settle()
      expect(progress().inflights.count).toBeLessThanOrEqual(4)
      expect(progress().inflights.bytes).toBeLessThan(140)
      const { lastIndex } = host.core
      if (round % 3 === 0) host.core.reportUnreachable(id(2))
      if (round % 5 === 0) host.reject(2, progress().nextIndex - 1, progress().matchIndex, host.core.term)
      host.acknowledge(2, lastIndex)
      host.acknowledge(3, lastIndex)
      host.settle()
      expect([progress().inflights.count, progress().inflights.bytes, host.core.uncommittedBytes]).toEqual([0, 0, 0])
    }
  })

  test('refuses proposals beyond the bound on what is not committed, but never a single one', () => {
    const host = new Host({ config: { maxUncommittedBytes: 10 } }).lead()
    const propose = (bytes: number) => host.core.propose([{ type: 'data', data: Buffer.alloc(bytes) }])
    expect(propose(50).ok).toBe(true)
    expect(propose(1)).toEqual({ ok: false, reason: 'busy' })
    host.settle()
    host.acknowledge(2, 2)
    expect(propose(5).ok).toBe(true)
    expect(propose(5).ok).toBe(true)
    expect(propose(5)).toEqual({ ok: false, reason: 'busy' })
  })

  test('sends what was proposed in one turn in one message', () => {
    const host = new Host().lead()
    host.acknowledge(2, 1)
    host.settle()
    for (const text of ['a', 'b', 'c']) host.propose(text)
    const appends = host.settle().filter(({ to }) => to === 2)
    expect(appends).toHaveLength(1)
    expect(appends[0]).toMatchObject({ type: 'append', entries: [{ index: 2 }, { index: 3 }, { index: 4 }] })
  })

  test('ignores acknowledgements of an earlier term (R7)', () => {
    const host = new Host().lead()
    host.propose('a')
    host.settle()
    host.core.step({
      type: 'appendAnswer',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(0),
      index: at(2),
      rejection: null,
    })
    expect(host.core.commitIndex).toBe(0)
  })
})

describe('a follower', () => {
  const append = (host: Host, prevIndex: number, prevTerm: number, entries: Entry[], commitIndex: number) => {
    const message: Message = {
      type: 'append',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(5),
      prevIndex: at(prevIndex),
      prevTerm: term(prevTerm),
      entries,
      commitIndex: at(commitIndex),
    }
    host.core.step(message)
    return host.settle()
  }

  test('commits no further than the message verified (R3) and acknowledges no further either (R4)', () => {
    const host = new Host({ entries: Array.from({ length: 8 }, (_, i) => entry(i + 1, 1)) })
    expect(append(host, 2, 1, [entry(3, 1)], 8)).toMatchObject([{ type: 'appendAnswer', index: 3, rejection: null }])
    expect(host.core.commitIndex).toBe(3)
    expect(host.log.lastIndex).toBe(8)
  })

  test('takes a commit index from a heartbeat only for an entry that it has', () => {
    const host = new Host({ entries: [entry(1, 1), entry(2, 1), entry(3, 2)] })
    const heartbeat = (index: number, ofTerm: number) => {
      host.core.step({
        type: 'heartbeat',
        from: id(2),
        fromDirectoryId: zeroUuid,
        to: id(1),
        term: term(5),
        commitIndex: at(index),
        commitTerm: term(ofTerm),
        readRound: 0,
      })
      return host.core.commitIndex
    }
    expect([heartbeat(3, 3), heartbeat(9, 2), heartbeat(0, 0), heartbeat(2, 1)]).toEqual([0, 0, 0, 2])
  })

  test('hands out all that is committed, however small the portions (R12)', () => {
    const host = new Host({ config: { maxCommittedBytesPerReady: 1 } })
    append(
      host,
      0,
      0,
      Array.from({ length: 20 }, (_, i) => entry(i + 1, 5, 10)),
      20,
    )
    expect(host.applied.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
    expect(host.hardState.commitIndex).toBe(20)
  })

  test('keeps its entries when a snapshot brings nothing that it lacks (S1)', () => {
    const host = new Host({ entries: Array.from({ length: 8 }, (_, i) => entry(i + 1, 1)), commit: 2 })
    const offer = (index: number, ofTerm: number) => {
      const snapshot: Snapshot = {
        index: at(index),
        term: term(ofTerm),
        membership: membershipOf(5),
        data: Buffer.from('s'),
      }
      host.core.step(chunkOf(snapshot))
      return host.settle().at(-1)
    }
    expect(offer(1, 1)).toMatchObject({ type: 'appendAnswer', index: 2 })
    expect(offer(6, 1)).toMatchObject({ type: 'appendAnswer', index: 6 })
    expect([host.log.firstIndex, host.log.lastIndex, host.core.commitIndex]).toEqual([1, 8, 6])
    // One with another entry there replaces all, membership included (S3).
    expect(offer(7, 3)).toMatchObject({ type: 'appendAnswer', index: 7 })
    expect([host.log.firstIndex, host.log.lastIndex, host.core.appliedIndex]).toEqual([8, 7, 7])
    expect(host.core.membership.voters).toHaveLength(5)
    expect(append(host, 7, 3, [entry(8, 5)], 8)).toMatchObject([{ index: 8, rejection: null }])
    expect(host.core.appliedIndex).toBe(8)
  })

  test('goes on appending while a snapshot is being written', () => {
    const host = new Host()
    const snapshot: Snapshot = { index: at(7), term: term(3), membership: membershipOf(3), data: Buffer.from('s') }
    host.core.step(chunkOf(snapshot))
    host.finish(host.core.ready()!)
    const ready = host.core.ready()!
    expect(ready.snapshot).toEqual(snapshot)
    host.core.step({
      type: 'append',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(5),
      prevIndex: at(7),
      prevTerm: term(3),
      entries: [entry(8, 5)],
      commitIndex: at(8),
    })
    expect(ready.committedEntries).toEqual([])
    host.finish(ready)
    host.settle()
    expect(host.applied.map(({ index }) => index)).toEqual([8])
  })

  test('stops when a committed entry would be replaced', () => {
    const host = new Host({ entries: [entry(1, 1), entry(2, 1), entry(3, 1)], commit: 2 })
    expect(() => host.log.append([entry(2, 4)])).toThrow('never replaced')
  })
})

test('RaftCore skips a whole term per round trip when logs differ (R6)', () => {
  // A thousand entries of term 1 here; the leader has ten terms of other entries there.
  const host = new Host({ entries: Array.from({ length: 1000 }, (_, i) => entry(i + 1, i < 5 ? 1 : 2)) })
  const theirs = new MemoryLog(
    host.durable.snapshot,
    Array.from({ length: 800 }, (_, i) => entry(i + 1, i < 5 ? 1 : 3 + Math.floor(i / 200))),
  )
  let roundTrips = 0
  let prev = 800
  for (;;) {
    roundTrips++
    host.core.step({
      type: 'append',
      from: id(2),
      fromDirectoryId: zeroUuid,
      to: id(1),
      term: term(9),
      prevIndex: at(prev),
      prevTerm: theirs.term(at(prev)) as Term,
      entries: [],
      commitIndex: at(0),
    })
    const answer = host.settle().at(-1)!
    if (answer.type !== 'appendAnswer' || answer.rejection === null) break
    prev = new RaftLog(theirs, at(0)).findConflictByTerm(answer.rejection.hintIndex, answer.rejection.hintTerm).index
  }
  expect(prev).toBe(5)
  expect(roundTrips).toBeLessThanOrEqual(3)
})

describe('a member that is told to campaign at once (E12)', () => {
  const timeoutNow = (host: Host, lastIndex: number, lastTerm: number) => {
    const envelope = { from: id(2), fromDirectoryId: zeroUuid, to: id(host.core.id), term: term(3) } as const
    host.core.step({ type: 'timeoutNow', ...envelope, lastIndex: at(lastIndex), lastTerm: term(lastTerm) })
    return host.settle()
  }
  const entries = [entry(1, 1), entry(2, 1)]

  test('does so without asking whether it may, and says that it was told', () => {
    const votes = timeoutNow(new Host({ entries }), 2, 1)
    expect(votes).toMatchObject([
      { type: 'vote', term: 4, isTransfer: true },
      { type: 'vote', term: 4, isTransfer: true },
    ])
  })

  test('does not when it lacks what the leader has, or has no vote', () => {
    expect(timeoutNow(new Host({ entries }), 3, 1)).toEqual([])
    expect(timeoutNow(new Host({ entries }), 2, 2)).toEqual([])
    expect(timeoutNow(new Host({ entries, own: 9 }), 2, 1)).toEqual([])
  })

  test('gets votes also from those who hear their leader', () => {
    const ask = (isTransfer: boolean) => {
      const host = new Host()
      const envelope = { fromDirectoryId: zeroUuid, to: id(1) } as const
      const commit = { commitIndex: at(0), commitTerm: term(0), readRound: 0 }
      host.core.step({ type: 'heartbeat', from: id(2), term: term(1), ...envelope, ...commit })
      host.settle()
      const last = { lastIndex: at(0), lastTerm: term(0), isTransfer }
      host.core.step({ type: 'vote', from: id(3), term: term(2), ...envelope, ...last })
      return host.settle()
    }
    expect(ask(false)).toEqual([])
    expect(ask(true)).toMatchObject([{ type: 'voteAnswer', granted: true }])
  })
})

describe('another disk under the same id (KIP-853)', () => {
  const otherDisk = 'another-disk' as Uuid

  test('is not given the vote that the old one got', () => {
    const host = new Host()
    const ask = (fromDirectoryId: Uuid) => {
      const last = { lastIndex: at(0), lastTerm: term(0), isTransfer: false }
      host.core.step({ type: 'vote', from: id(2), fromDirectoryId, to: id(1), term: term(1), ...last })
      return host.settle().map((message) => message.type === 'voteAnswer' && message.granted)
    }
    expect([ask(zeroUuid), ask(otherDisk), ask(zeroUuid)]).toEqual([[true], [false], [true]])
  })

  test('elects nobody, commits nothing, confirms no read, and does not keep a leader in office', () => {
    const host = new Host()
    host.core.campaign()
    host.settle()
    const from = { from: id(2), fromDirectoryId: otherDisk, to: id(1) } as const
    host.core.step({ type: 'preVoteAnswer', ...from, term: term(1), granted: true })
    expect(host.core.role).toBe('preCandidate')
    host.lead()
    host.core.step({ type: 'appendAnswer', ...from, term: host.core.term, index: at(1), rejection: null })
    expect(host.core.commitIndex).toBe(0)
    host.acknowledge(3, 1)
    expect(host.core.commitIndex).toBe(1)
    host.settle()
    expect(host.core.readIndex()).toMatchObject({ ok: true })
    host.settle()
    host.core.step({ type: 'heartbeatAnswer', ...from, term: host.core.term, readRound: 1 })
    expect(host.settle().filter(({ type }) => type === 'heartbeat')).toEqual([])
    expect(host.reads).toEqual([])
    for (let tick = 0; tick < 11; tick++) {
      host.core.step({ type: 'heartbeatAnswer', ...from, term: host.core.term, readRound: 0 })
      host.core.tick()
      host.settle()
    }
    expect(host.core.role).toBe('follower')
  })
})

describe('a leader and those without a vote', () => {
  const follow = (host: Host, from: number) => {
    const envelope = { from: id(from), fromDirectoryId: zeroUuid, to: id(1), term: term(77) } as const
    host.core.step({ type: 'follow', ...envelope, lastIndex: at(0) })
  }

  test('serves as many as it has room for, whatever their term, and forgets those that fall silent', () => {
    const host = new Host({ config: { maxObservers: 2 } }).lead()
    host.acknowledge(2, 1)
    for (const from of [10, 11, 12]) follow(host, from)
    expect([...host.core.followers.keys()]).toEqual([1, 2, 3, 10, 11])
    expect(host.core.role).toBe('leader')
    for (let tick = 0; tick < 60; tick++) {
      host.core.step({
        type: 'heartbeatAnswer',
        from: id(2),
        fromDirectoryId: zeroUuid,
        to: id(1),
        term: host.core.term,
        readRound: 0,
      })
      host.core.tick()
      host.settle()
    }
    expect([...host.core.followers.keys()]).toEqual([1, 2, 3])
    follow(host, 12)
    expect(host.core.progressOf(id(12))).toBeDefined()
  })

  test('bothers them with heartbeats less often than voters', () => {
    const host = new Host().lead()
    host.acknowledge(2, 1)
    follow(host, 10)
    host.settle()
    const sent = Array.from({ length: 9 }, () => {
      host.core.tick()
      return host.settle()
    }).flat()
    const countTo = (to: number) => sent.filter((message) => message.type === 'heartbeat' && message.to === to).length
    expect([countTo(2), countTo(10)]).toEqual([9, 1])
  })

  test('names the leader to who asks a follower', () => {
    const host = new Host()
    const commit = { commitIndex: at(0), commitTerm: term(0), readRound: 0 }
    host.core.step({ type: 'heartbeat', from: id(2), fromDirectoryId: zeroUuid, to: id(1), term: term(1), ...commit })
    host.settle()
    follow(host, 10)
    expect(host.settle()).toMatchObject([{ type: 'leaderHint', to: 10, leader: { id: 2 } }])
  })
})

describe('a change of voters', () => {
  test('is refused when more than one comes or goes, nobody is left, or one id would vote twice', () => {
    const host = new Host().lead()
    host.acknowledge(2, 1)
    host.settle()
    const { voters } = host.core.membership
    const change = (next: readonly Voter[]) => {
      const outcome = host.core.changeMembership({ voters: next })
      return outcome.ok ? 'ok' : outcome.reason
    }
    const disk = (of: number, directoryId = zeroUuid): Voter => ({ id: id(of), directoryId })
    expect(change([])).toBe('last-voter')
    expect(change(voters.slice(2))).toBe('too-many')
    expect(change([...voters, disk(4), disk(5)])).toBe('too-many')
    expect(change([...voters, disk(2, 'other' as Uuid)])).toBe('duplicate-voter')
    expect(change([...voters.slice(0, 2), disk(3, 'other' as Uuid)])).toBe('too-many')
    expect(change([...voters, disk(4)])).toBe('not-caught-up')
    expect(change(voters.slice(0, 2))).toBe('ok')
    expect(change(voters.slice(0, 2))).toBe('in-flight')
  })
})

test('RaftCore refuses reads beyond its bound', () => {
  const host = new Host({ config: { maxPendingReads: 2 } }).lead()
  expect(host.core.readIndex()).toEqual({ ok: false, reason: 'not-ready' })
  host.acknowledge(2, 1)
  host.settle()
  expect([1, 2, 3].map(() => host.core.readIndex().ok)).toEqual([true, true, false])
  expect(host.core.readIndex()).toEqual({ ok: false, reason: 'busy' })
})

test('RaftCore ignores hints that its leader crashed for a while after one that was wrong', () => {
  const host = new Host({ config: { falseHintTicks: 30 } })
  const hear = () => {
    const commit = { commitIndex: at(0), commitTerm: term(0), readRound: 0 }
    host.core.step({ type: 'heartbeat', from: id(2), fromDirectoryId: zeroUuid, to: id(1), term: term(1), ...commit })
    host.settle()
  }
  hear()
  host.core.forgetLeader(id(3))
  expect(host.core.leaderId).toBe(2)
  host.core.forgetLeader(id(2))
  expect(host.core.leaderId).toBe(null)
  hear()
  host.core.forgetLeader(id(2))
  expect(host.core.leaderId).toBe(2)
  for (let tick = 0; tick < 30; tick++) {
    host.core.tick()
    hear()
  }
  host.core.forgetLeader(id(2))
  expect(host.core.leaderId).toBe(null)
})
