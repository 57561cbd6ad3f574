import { describe, expect, test } from 'vitest'
import { zeroUuid } from '../../../src/base/index.ts'
import {
  type LogIndex,
  type Message,
  type NodeId,
  openMemoryStorage,
  RaftNode,
  type RaftReceiver,
  type RaftStorage,
  type RaftTransport,
  type Term,
} from '../../../src/raft/index.ts'
import { SeededRandom } from '../../simulation/raft-core/random.ts'
import { directoryOf, logger, Quorum, textsOf } from './quorum.ts'

describe('a node that is the only voter', () => {
  test('leads when start() resolves, and commits', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    expect(alone.node.state).toMatchObject({ role: 'leader', term: 1, leaderId: 1, commitIndex: 1, appliedIndex: 1 })
    expect(alone.leaderships).toEqual([{ isLeader: true, term: 1 }])
    expect(quorum.simulation.nowMs).toBeLessThan(20)
    expect(await quorum.propose(alone, 'a')).toEqual({ ok: true, index: 2, term: 1 })
    expect(textsOf(alone.committed)).toEqual(['a'])
    await quorum.stopAll()
  })

  test('commits what is proposed during a sync with the next one', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    const syncs: number[] = []
    const { persist } = alone.storage
    alone.storage.persist = function (this: RaftStorage, ready) {
      syncs.push(ready.entriesToPersist.length)
      return persist.call(this, ready)
    }
    const first = alone.node.proposeNow(Buffer.from('first'))
    await Promise.resolve()
    await Promise.resolve()
    const rest = Array.from({ length: 50 }, (_, i) => alone.node.proposeNow(Buffer.from(`${i}`)))
    const results = [first, ...rest].map((proposed) => (proposed.ok ? proposed.committed : undefined))
    const settled = await quorum.simulation.run(Promise.all(results))
    expect(settled.every((result) => result?.ok)).toBe(true)
    expect(syncs).toEqual([1, 50])
    expect(rest.map((proposed) => proposed.ok && proposed.index)).toEqual(Array.from({ length: 50 }, (_, i) => i + 3))
    await quorum.stopAll()
  })

  test('finds everything again after a power loss, from the snapshot on', async () => {
    const quorum = new Quorum(1)
    const before = await quorum.start(1, { keptEntries: 2 })
    for (let i = 0; i < 10; i++) await quorum.propose(before, `entry ${i}`)
    await quorum.simulation.run(before.node.takeSnapshot(8 as LogIndex, Buffer.from('state at 8')))
    quorum.crash(1)
    const after = await quorum.restart(1)
    expect(after.snapshots.map(({ index, data }) => [index, Buffer.from(data).toString()])).toEqual([[8, 'state at 8']])
    expect(textsOf(after.committed)).toEqual(['entry 7', 'entry 8', 'entry 9'])
    expect(after.committed.map(({ index }) => index)).toEqual([9, 10, 11, 12])
    expect(after.node.state).toMatchObject({ role: 'leader', term: 2, appliedIndex: 12 })
    await quorum.stopAll()
  })

  test('answers waiting proposals with "stopped" when it stops', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    const waiting = alone.node.propose(Buffer.from('x'))
    await quorum.simulation.run(alone.node.stop())
    expect(await waiting).toEqual({ ok: false, reason: 'stopped' })
    expect(await alone.node.propose(Buffer.from('y'))).toEqual({ ok: false, reason: 'stopped' })
    expect(alone.leaderships.at(-1)).toEqual({ isLeader: false, term: 1 })
    expect(alone.node.state.role).toBe('follower')
  })

  test('stops once, whether it was started or not', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    await quorum.simulation.run(Promise.all([alone.node.stop(), alone.node.stop()]))
    await quorum.simulation.run(alone.node.stop())
    const { platform } = quorum.host(1)
    const storage = await openMemoryStorage({ timers: platform.timers, bootstrap: quorum.membership })
    const never = new RaftNode({
      id: 1 as NodeId,
      directoryId: directoryOf(1),
      storage,
      transport: undefined,
      platform,
      logger,
    })
    await never.stop()
    expect(never.state.role).toBe('follower')
  })

  test.each(['write', 'sync'])('stops for good when a %s fails (D1, D2, E11)', async (operation) => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    await quorum.propose(alone, 'a')
    quorum.host(1).disk.failNext({ operation, code: operation === 'write' ? 'EIO' : 'ENOSPC', path: /store\.log/ })
    expect(await quorum.propose(alone, 'b')).toEqual({ ok: false, reason: 'stopped' })
    expect(alone.faults).toHaveLength(1)
    expect(String(alone.faults[0])).toContain('RaftStorageError')
    expect(alone.leaderships.at(-1)).toEqual({ isLeader: false, term: 1 })
    await quorum.simulation.runFor(10_000)
    expect(alone.node.state).toMatchObject({ role: 'follower', leaderId: null, appliedIndex: 2 })
    await quorum.stopAll()
    // The entry was never acknowledged; what was before it is there.
    quorum.crash(1)
    const after = await quorum.restart(1)
    expect(textsOf(after.committed)[0]).toBe('a')
    await quorum.stopAll()
  })

  test('waits on a full disk, in office, and goes on when there is room', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    alone.node.waitForRoom()
    await quorum.propose(alone, 'a')
    const { disk } = quorum.host(1)
    let fullDisks = 0
    alone.node.onFullDisk(() => fullDisks++)
    disk.capacityBytes = disk.usedBytes + 10
    const waiting = ['b', 'c'].map((text) => alone.node.propose(Buffer.from(text)))
    await quorum.simulation.runFor(60_000)
    expect(alone.node.state).toMatchObject({ role: 'leader', term: 1, appliedIndex: 2 })
    expect([alone.node.waitsForRoom, fullDisks]).toEqual([true, 1])
    disk.capacityBytes = 2 ** 40
    expect(await quorum.simulation.run(Promise.all(waiting))).toMatchObject([{ ok: true }, { ok: true }])
    expect(alone.node.waitsForRoom).toBe(false)
    expect(await quorum.propose(alone, 'd')).toMatchObject({ ok: true, term: 1 })
    expect(alone.faults).toEqual([])
    quorum.crash(1)
    const after = await quorum.restart(1)
    expect(textsOf(after.committed)).toEqual(['a', 'b', 'c', 'd'])
    await quorum.stopAll()
  })

  test('waits for room for the quorum-state file, too, and for a snapshot', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    alone.node.waitForRoom()
    const { disk } = quorum.host(1)
    disk.failNext({ operation: 'write', code: 'ENOSPC', path: /quorum-state/, times: 3 })
    await quorum.propose(alone, 'a')
    await quorum.simulation.runFor(10_000)
    expect([alone.node.waitsForRoom, alone.faults]).toEqual([false, []])
    disk.capacityBytes = disk.usedBytes + 300_000
    const taken = alone.node.takeSnapshot(alone.node.state.appliedIndex, Buffer.alloc(2_000_000, 'a'))
    await quorum.simulation.runFor(5000)
    expect(alone.node.waitsForRoom).toBe(true)
    const waiting = alone.node.propose(Buffer.from('b'))
    disk.capacityBytes = 2 ** 40
    await quorum.simulation.run(taken)
    expect(await quorum.simulation.run(waiting)).toMatchObject({ ok: true })
    quorum.crash(1)
    const after = await quorum.restart(1)
    expect(after.snapshots.at(-1)?.data.length).toBe(2_000_000)
    expect(textsOf(after.committed)).toEqual(['b'])
    await quorum.stopAll()
  })

  test('is stopped, or crashes, while it waits for room, and comes back with what it had', async () => {
    for (const end of ['stop', 'crash']) {
      const quorum = new Quorum(1)
      const alone = await quorum.start(1)
      alone.node.waitForRoom()
      await quorum.propose(alone, 'a')
      const { disk } = quorum.host(1)
      disk.capacityBytes = disk.usedBytes
      const waiting = alone.node.propose(Buffer.from('b'))
      void alone.node.takeSnapshot(alone.node.state.appliedIndex, Buffer.from('a')).catch(() => undefined)
      await quorum.simulation.runFor(5000)
      expect(alone.node.waitsForRoom).toBe(true)
      if (end === 'stop') {
        await quorum.simulation.run(alone.node.stop())
        expect([await waiting, alone.faults]).toEqual([{ ok: false, reason: 'stopped' }, []])
      }
      quorum.crash(1)
      quorum.host(1).restart()
      // A start writes, and doesn't wait.
      await expect(quorum.start(1)).rejects.toThrow(/full/)
      disk.capacityBytes = 2 ** 40
      quorum.crash(1)
      expect(textsOf((await quorum.restart(1)).committed)[0]).toBe('a')
      await quorum.stopAll()
    }
  })

  test('stops for good when the quorum-state file cannot be written, which no proposal waits for', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    quorum.host(1).disk.failNext({ operation: 'rename', code: 'EIO' })
    expect(await quorum.propose(alone, 'a')).toMatchObject({ ok: true })
    await quorum.simulation.runFor(1000)
    expect(alone.faults).toHaveLength(1)
    await quorum.stopAll()
  })

  test('stops for good when a listener throws (D5)', async () => {
    const quorum = new Quorum(1)
    const alone = await quorum.start(1)
    alone.node.onCommitted(() => {
      throw new Error('cannot apply')
    })
    expect(await quorum.propose(alone, 'a')).toEqual({ ok: false, reason: 'stopped' })
    expect(alone.faults).toEqual([new Error('cannot apply')])
    await quorum.stopAll()
  })
})

describe('three nodes', () => {
  test('elect one leader, which commits; the others refuse proposals and deliver the same', async () => {
    const quorum = new Quorum(3)
    await quorum.startAll()
    const leader = await quorum.leader()
    expect(await quorum.propose(leader, 'a')).toMatchObject({ ok: true })
    const others = [...quorum.running.values()].filter((each) => each !== leader)
    for (const other of others) {
      expect(await quorum.propose(other, 'x')).toEqual({ ok: false, reason: 'not-leader' })
      await quorum.simulation.runUntil(() => textsOf(other.committed).length === 1)
      expect(other.committed).toEqual(
        leader.committed.map((entry) => ({ ...entry, data: Uint8Array.from(entry.data) })),
      )
      expect(other.node.state).toMatchObject({ role: 'follower', leaderId: leader.id })
    }
    await quorum.stopAll()
  })

  test('end on a full disk, so that the others go on, and come back with what they had', async () => {
    const quorum = new Quorum(3)
    await quorum.startAll()
    const leader = await quorum.leader()
    leader.node.waitForRoom()
    await quorum.propose(leader, 'a')
    const { disk } = quorum.host(leader.id)
    disk.capacityBytes = disk.usedBytes
    expect(await quorum.propose(leader, 'b')).toEqual({ ok: false, reason: 'stopped' })
    expect(leader.faults).toMatchObject([
      { message: expect.stringContaining('is full, and this node ends'), isDiskFull: true },
    ])
    quorum.crash(leader.id)
    const next = await quorum.leader()
    expect(await quorum.propose(next, 'c')).toMatchObject({ ok: true })
    disk.capacityBytes = 2 ** 40
    const back = await quorum.restart(leader.id)
    await quorum.simulation.runUntil(() => textsOf(back.committed).includes('c'))
    expect(textsOf(back.committed)[0]).toBe('a')
    await quorum.stopAll()
  })

  test('lose no acknowledged entry to power losses at any moment, of one node or of all', async () => {
    for (let seed = 1; seed <= 25; seed++) {
      const quorum = new Quorum(3, seed)
      const random = new SeededRandom(seed)
      await quorum.startAll()
      const acknowledged: string[] = []
      const proposed: string[] = []
      for (let round = 0; round < 8; round++) {
        const leader = await quorum.leader()
        for (let i = random.int(8); i >= 0; i--) {
          const text = `${round}:${i}`
          proposed.push(text)
          void leader.node.propose(Buffer.from(text)).then((result) => {
            if (result.ok) acknowledged.push(text)
          })
          if (random.chance(0.5)) await quorum.simulation.runFor(random.float() * 2)
        }
        if (random.chance(0.3)) {
          const { appliedIndex } = leader.node.state
          void leader.node.takeSnapshot(appliedIndex, Buffer.from(leader.state.join(' ')))
          await quorum.simulation.runFor(random.float() * 3)
        }
        const victims = random.chance(0.3) ? [1, 2, 3] : [random.pick([leader.id, 1, 2, 3])]
        for (const victim of victims) if (quorum.running.has(victim)) quorum.crash(victim)
        await quorum.simulation.runFor(random.int(3000))
        for (const { id } of quorum.membership.voters) if (!quorum.running.has(id)) await quorum.restart(id)
      }
      const leader = await quorum.leader()
      const found = leader.state
      expect(new Set(found).size, `seed ${seed}: each once`).toBe(found.length)
      expect(acknowledged.length).toBeGreaterThan(5)
      for (const text of acknowledged) expect(found, `seed ${seed}`).toContain(text)
      const order = found.map((text) => proposed.indexOf(text))
      expect(order).toEqual([...order].sort((x, y) => x - y))
      await quorum.stopAll()
    }
  })

  test('a leader that is cut off steps down, tells so, and its open proposals are lost', async () => {
    const quorum = new Quorum(3)
    await quorum.startAll()
    const old = await quorum.leader()
    for (const { id } of quorum.membership.voters) quorum.hub.cut(old.id, id)
    const lost = old.node.propose(Buffer.from('lost'))
    const cutAt = quorum.simulation.nowMs
    expect(await quorum.simulation.run(lost)).toEqual({ ok: false, reason: 'leadership-lost' })
    expect(quorum.simulation.nowMs - cutAt).toBeLessThanOrEqual(1100)
    expect(old.leaderships.map(({ isLeader }) => isLeader)).toEqual([true, false])
    const next = await quorum.leader()
    expect(next.id).not.toBe(old.id)
    await quorum.propose(next, 'kept')
    quorum.hub.heal()
    await quorum.simulation.runUntil(() => textsOf(old.committed).includes('kept'))
    expect(textsOf(old.committed)).toEqual(['kept'])
    await quorum.stopAll()
  })

  test('a follower whose entries are compacted gets the snapshot', async () => {
    const quorum = new Quorum(3)
    for (const id of [1, 2]) await quorum.start(id, { keptEntries: 0 })
    const leader = await quorum.leader()
    for (let i = 0; i < 20; i++) await quorum.propose(leader, `entry ${i}`)
    const { appliedIndex } = leader.node.state
    await quorum.simulation.run(leader.node.takeSnapshot(appliedIndex, Buffer.alloc(700_000, 5)))
    const late = await quorum.start(3)
    await quorum.simulation.runUntil(() => late.snapshots.length > 0)
    expect(late.snapshots[0]).toMatchObject({ index: appliedIndex, membership: quorum.membership })
    await quorum.propose(leader, 'after')
    await quorum.simulation.runUntil(() => textsOf(late.committed).includes('after'))
    expect(late.committed.map(({ index }) => index)).toEqual([appliedIndex + 1])
    // And it is on its disk.
    quorum.crash(3)
    const again = await quorum.restart(3)
    expect(again.snapshots[0]!.data.length).toBe(700_000)
    await quorum.stopAll()
  })

  test('a restarted follower does not disturb, fifty times (E10)', async () => {
    const quorum = new Quorum(3)
    await quorum.startAll()
    const leader = await quorum.leader()
    const follower = [1, 2, 3].find((id) => id !== leader.id)!
    for (let i = 0; i < 50; i++) {
      await quorum.simulation.runFor(i * 40)
      quorum.crash(follower)
      await quorum.restart(follower)
    }
    await quorum.simulation.runFor(5000)
    expect(leader.leaderships).toHaveLength(1)
    expect(leader.node.state.role).toBe('leader')
    await quorum.stopAll()
  })

  test('change their leader once at most when one loses only its link to it, for ten minutes (E4)', async () => {
    const quorum = new Quorum(3)
    await quorum.startAll()
    const leader = await quorum.leader()
    quorum.hub.cut(leader.id, [1, 2, 3].find((id) => id !== leader.id) as NodeId)
    await quorum.simulation.runFor(600_000)
    const terms = [...quorum.running.values()].map(({ node }) => node.state.term - leader.leaderships[0]!.term)
    expect(Math.max(...terms)).toBeLessThanOrEqual(1)
    await quorum.stopAll()
  })

  test('of five, the one that still reaches a majority leads, and stays (E4)', async () => {
    const quorum = new Quorum(5)
    await quorum.startAll()
    const old = await quorum.leader()
    const others = [...quorum.running.keys()].filter((id) => id !== old.id) as NodeId[]
    const [hub, ...rims] = others as [NodeId, ...NodeId[]]
    // All reach the hub, and nobody anybody else.
    for (const a of [old.id, ...rims]) for (const b of [old.id, ...rims]) if (a !== b) quorum.hub.cut(a, b)
    await quorum.simulation.runFor(600_000)
    const led = [...quorum.running.values()].map(({ id, leaderships }) => [id, leaderships.at(-1)?.isLeader ?? false])
    expect(led.filter(([, isLeader]) => isLeader)).toEqual([[hub, true]])
    expect(quorum.running.get(hub)!.leaderships).toHaveLength(1)
    await quorum.stopAll()
  })

  test('keep their leader for half an hour without faults', async () => {
    const quorum = new Quorum(3)
    await quorum.startAll()
    const leader = await quorum.leader()
    await quorum.simulation.runFor(30 * 60_000)
    expect(leader.leaderships).toHaveLength(1)
    await quorum.stopAll()
  })
})

describe('a node whose event loop stood still (E14)', () => {
  /** A follower of node 2 in a world where time jumps. */
  async function stalled() {
    let nowMs = 1000
    let timer: (() => void) | undefined
    const deferred: (() => void)[] = []
    const platform = {
      clock: { now: () => nowMs, monotonic: () => nowMs },
      timers: {
        set: (_delayMs: number, callback: () => void) => {
          timer = callback
          return { cancel: () => undefined }
        },
        defer: (callback: () => void) => {
          deferred.push(callback)
        },
      },
      random: { float: () => 0, int: () => 0, uuid: () => zeroUuid, bytes: (length: number) => Buffer.alloc(length) },
    }
    const { membership } = new Quorum(3)
    const storage = await openMemoryStorage({ timers: platform.timers, bootstrap: membership })
    const sent: Message[] = []
    let receiver: RaftReceiver | undefined
    const transport: RaftTransport = {
      start: (given) => {
        receiver = given
      },
      setMembership: () => undefined,
      learn: () => undefined,
      send: (message) => {
        sent.push(message)
      },
      stop: () => undefined,
    }
    const node = new RaftNode({ id: 1 as NodeId, directoryId: directoryOf(1), storage, transport, platform, logger })
    await node.start()
    const heartbeat: Message = {
      type: 'heartbeat',
      from: 2 as NodeId,
      fromDirectoryId: directoryOf(2),
      to: 1 as NodeId,
      term: 1 as Term,
      commitIndex: 0 as LogIndex,
      commitTerm: 0 as Term,
      readRound: 0,
    }
    const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
    return {
      node,
      campaigns: () => sent.filter(({ type }) => type === 'preVote').length,
      hear: () => receiver?.onMessage(heartbeat),
      /** Time passes; then the late timer runs, then what `arrives`, then the rest. */
      async pass(ms: number, arrives: () => void = () => undefined) {
        nowMs += ms
        timer?.()
        arrives()
        for (const callback of deferred.splice(0)) callback()
        await settle()
      },
    }
  }

  test('counts one tick for it, after what came in meanwhile', async () => {
    const world = await stalled()
    world.hear()
    for (let tick = 0; tick < 19; tick++) await world.pass(50)
    expect(world.campaigns()).toBe(0)
    // The twentieth tick would campaign, but a heartbeat was waiting.
    await world.pass(5000, world.hear)
    expect(world.node.state).toMatchObject({ role: 'follower', leaderId: 2 })
    for (let tick = 0; tick < 17; tick++) await world.pass(50)
    await world.pass(60_000)
    expect(world.campaigns()).toBe(0)
    await world.pass(50)
    expect(world.campaigns()).toBe(2)
    await world.node.stop()
  })
})
