import { describe, expect, test } from 'vitest'
import { Bench, good, rebalanceMs, sessionMs } from './bench.ts'

const refused = (reason: string) => expect.objectContaining({ ok: false, reason })
const protocol = (name: string, metadata = name) => ({ name, metadata: Buffer.from(metadata) })

describe('JoinGroup', () => {
  test('of an unknown member id is refused, in a known group and in an unknown one', () => {
    const bench = new Bench()
    expect(bench.join({ memberId: 'ghost' }).answer).toEqual({
      ok: false,
      reason: 'unknown-member-id',
      memberId: 'ghost',
    })
    expect(bench.list()).toEqual([])
    bench.stable()
    expect(bench.join({ memberId: 'ghost' }).answer).toEqual(refused('unknown-member-id'))
  })

  test('gives a dynamic member without an id one, and waits for it to come back', () => {
    const bench = new Bench()
    const first = bench.join({ requireKnownMemberId: true }).answer
    expect(first).toEqual({ ok: false, reason: 'member-id-required', memberId: 'member-1' })
    expect(bench.state()).toBe('Empty')
    const second = good(bench.join({ requireKnownMemberId: true, memberId: 'member-1' }).answer)
    expect(second).toMatchObject({ memberId: 'member-1', generationId: 1, leader: 'member-1', protocolName: 'range' })
    expect(second.members).toEqual([{ memberId: 'member-1', groupInstanceId: null, metadata: Buffer.from('metadata') }])
  })

  test('forgets a given id that does not come back within the session timeout, and a group of nobody else', () => {
    const bench = new Bench()
    bench.join({ requireKnownMemberId: true })
    bench.advance(sessionMs - 1)
    expect(bench.list()).toHaveLength(1)
    bench.advance(1)
    expect(bench.list()).toEqual([])
    expect(bench.join({ memberId: 'member-1' }).answer).toEqual(refused('unknown-member-id'))
  })

  test('of a static member never asks it to come back', () => {
    const bench = new Bench()
    expect(bench.join({ requireKnownMemberId: true, groupInstanceId: 'i' }).answer).toMatchObject({ ok: true })
  })

  test('lets a rebalance wait for a given id', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1)
    bench.join({ requireKnownMemberId: true })
    const again = bench.join({ memberId: ids[0]! })
    expect(again.answer).toBeUndefined()
    const other = bench.join({ memberId: 'member-2' })
    expect(again.answer).toMatchObject({ ok: true, generationId: 2 })
    expect(other.answer).toMatchObject({ ok: true, generationId: 2, members: [] })
  })

  test('lets a rebalance end when a given id does not come back in time', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    bench.join({ requireKnownMemberId: true })
    const again = bench.join({ memberId: ids[0]! })
    bench.advance(sessionMs - 1)
    expect(again.answer).toBeUndefined()
    bench.advance(1)
    expect(again.answer).toMatchObject({ ok: true, generationId: generation + 1 })
  })

  test('needs the type of the group and a protocol that all members speak', () => {
    const bench = new Bench()
    expect(bench.join({ protocolType: '' }).answer).toEqual(refused('inconsistent-group-protocol'))
    expect(bench.join({ protocols: [] }).answer).toEqual(refused('inconsistent-group-protocol'))
    expect(bench.list()).toEqual([])
    bench.stable(1, { protocols: [protocol('range'), protocol('sticky')] })
    expect(bench.join({ protocolType: 'connect' }).answer).toEqual(refused('inconsistent-group-protocol'))
    expect(bench.join({ protocols: [protocol('other')] }).answer).toEqual(refused('inconsistent-group-protocol'))
    expect(bench.state()).toBe('Stable')
    bench.join({ protocols: [protocol('sticky')] })
    expect(bench.state()).toBe('PreparingRebalance')
  })

  test('lets an empty group change its type', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1)
    bench.leave(ids[0]!)
    bench.stable(1, { protocolType: 'connect' })
    expect(bench.describe()).toMatchObject({ state: 'Stable', protocolType: 'connect' })
  })

  test('stops at group.max.size, but lets members in again', () => {
    const bench = new Bench({ groupMaxSize: 2 })
    const { ids } = bench.stable(2)
    expect(bench.join().answer).toEqual({ ok: false, reason: 'group-max-size-reached', memberId: '' })
    const again = bench.join({ memberId: ids[0]! })
    expect(again.answer).toBeUndefined()
    const other = bench.join({ memberId: ids[1]! })
    expect(again.answer).toMatchObject({ ok: true })
    expect(other.answer).toMatchObject({ ok: true })
  })

  test('drops a member that comes back when others took all places of the rebalance', () => {
    const bench = new Bench({ groupMaxSize: 2 })
    const { ids } = bench.stable(2)
    bench.join({ memberId: ids[0]! })
    const newcomer = bench.join()
    expect(newcomer.answer).toBeUndefined()
    expect(bench.join({ memberId: ids[1]! }).answer).toEqual(refused('group-max-size-reached'))
    expect(newcomer.answer).toMatchObject({ ok: true, generationId: 3 })
  })

  test('answers an older join of the same member when a newer one takes its place', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2)
    const older = bench.join({ memberId: ids[0]! })
    const newer = bench.join({ memberId: ids[0]! })
    expect(older.answer).toEqual(refused('rebalance-in-progress'))
    expect(newer.answer).toBeUndefined()
  })
})

describe('The initial rebalance delay', () => {
  test('of 0 lets the first member in at once', () => {
    expect(new Bench().join().answer).toMatchObject({ ok: true, generationId: 1 })
  })

  test('gathers members, and is extended while they keep coming', () => {
    const bench = new Bench({ initialRebalanceDelayMs: 3000 })
    const first = bench.join()
    bench.advance(2999)
    const second = bench.join()
    bench.advance(1)
    expect(first.answer).toBeUndefined()
    bench.advance(2999)
    expect(second.answer).toBeUndefined()
    bench.advance(1)
    expect(good(first.answer).generationId).toBe(1)
    expect(good(first.answer).members).toHaveLength(2)
    expect(good(second.answer).members).toEqual([])
  })

  test('ends at the rebalance timeout however many come', () => {
    const bench = new Bench({ initialRebalanceDelayMs: 3000 })
    const first = bench.join({ rebalanceTimeoutMs: 10_000 })
    for (let ms = 0; ms < 10_000; ms += 1000) {
      expect(first.answer).toBeUndefined()
      bench.join({ rebalanceTimeoutMs: 10_000 })
      bench.advance(1000)
    }
    expect(first.answer).toMatchObject({ ok: true, generationId: 1 })
  })

  test('is only for a group that was empty', () => {
    const bench = new Bench({ initialRebalanceDelayMs: 3000 })
    const first = bench.join()
    bench.advance(3000)
    const { memberId } = good(first.answer)
    const newcomer = bench.join()
    bench.join({ memberId })
    expect(newcomer.answer).toMatchObject({ ok: true, generationId: 2 })
  })
})

describe('A rebalance', () => {
  test('waits for all known members, and then raises the generation for all', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2)
    const newcomer = bench.join()
    const again = bench.join({ memberId: ids[1]! })
    expect(newcomer.answer).toBeUndefined()
    const leader = bench.join({ memberId: ids[0]! })
    for (const { answer } of [newcomer, again, leader]) {
      expect(answer).toMatchObject({ ok: true, generationId: generation + 1, leader: ids[0] })
    }
    expect(good(leader.answer).members.map(({ memberId }) => memberId)).toEqual([
      ...ids,
      good(newcomer.answer).memberId,
    ])
    expect(good(again.answer).members).toEqual([])
  })

  test('drops dynamic members that have not joined by the largest rebalance timeout', () => {
    const bench = new Bench()
    const slow = { rebalanceTimeoutMs: 90_000, sessionTimeoutMs: 300_000 }
    const { ids } = bench.stable(2, slow)
    const newcomer = bench.join({ rebalanceTimeoutMs: 1000 })
    bench.advance(89_999)
    expect(newcomer.answer).toBeUndefined()
    bench.advance(1)
    expect(newcomer.answer).toMatchObject({ ok: true, leader: good(newcomer.answer).memberId })
    expect(good(newcomer.answer).members).toHaveLength(1)
    expect(bench.heartbeat(ids[0]!, 3)).toEqual(refused('unknown-member-id'))
  })

  test('of a member without a rebalance timeout (version 0) waits for its session timeout', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1, { rebalanceTimeoutMs: -1, sessionTimeoutMs: 20_000 })
    const newcomer = bench.join({ rebalanceTimeoutMs: -1, sessionTimeoutMs: 6000 })
    bench.advance(10_000)
    bench.heartbeat(ids[0]!, 1)
    bench.advance(9999)
    expect(newcomer.answer).toBeUndefined()
    bench.advance(1)
    expect(newcomer.answer).toMatchObject({ ok: true })
  })

  test('keeps static members that have not joined until their session ends', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2, (i) => ({ groupInstanceId: `i${i}`, sessionTimeoutMs: 100_000 }))
    const again = bench.join({ memberId: ids[0]!, groupInstanceId: 'i0', sessionTimeoutMs: 100_000 })
    bench.advance(rebalanceMs)
    expect(again.answer).toMatchObject({ ok: true, generationId: 3 })
    expect(good(again.answer).members.map(({ memberId }) => memberId)).toContain(ids[1])
    bench.sync({ memberId: ids[0]!, groupInstanceId: 'i0' }, 3)
    expect(bench.state()).toBe('Stable')
    bench.advance(100_000 - rebalanceMs - 1)
    expect(bench.state()).toBe('Stable')
    bench.advance(1)
    expect(bench.state()).toBe('PreparingRebalance')
  })

  test('does not ask static members that are away to sync', () => {
    const bench = new Bench()
    const request = { sessionTimeoutMs: 300_000 }
    const { ids } = bench.stable(2, (i) => ({ ...request, groupInstanceId: `i${i}` }))
    bench.join({ ...request, memberId: ids[0]!, groupInstanceId: 'i0' })
    bench.advance(rebalanceMs)
    bench.sync({ memberId: ids[0]!, groupInstanceId: 'i0' }, 3)
    bench.advance(2 * rebalanceMs)
    expect(bench.heartbeat({ memberId: ids[1]!, groupInstanceId: 'i1' }, 3)).toEqual({ ok: true })
  })

  test('in which no static member has come back goes on until one has', () => {
    const bench = new Bench()
    const request = { sessionTimeoutMs: 300_000 }
    const { ids } = bench.stable(2, (i) => ({ ...request, groupInstanceId: i === 0 ? 'i' : null }))
    bench.leave(ids[1]!)
    bench.advance(2 * rebalanceMs)
    expect(bench.state()).toBe('PreparingRebalance')
    const back = bench.join({ ...request, memberId: ids[0]!, groupInstanceId: 'i' })
    expect(back.answer).toMatchObject({ ok: true, generationId: 3 })
  })

  test('that the leader did not join gets the first member that did as its leader', () => {
    const bench = new Bench()
    const { ids } = bench.stable(3, { sessionTimeoutMs: 300_000 })
    const third = bench.join({ memberId: ids[2]!, sessionTimeoutMs: 300_000, protocols: [protocol('range', 'new')] })
    const second = bench.join({ memberId: ids[1]!, sessionTimeoutMs: 300_000 })
    bench.advance(rebalanceMs)
    expect(second.answer).toMatchObject({ ok: true, leader: ids[1] })
    expect(third.answer).toMatchObject({ ok: true, leader: ids[1], members: [] })
  })

  test('chooses the protocol that most members want of those that all speak, for the leader to read', () => {
    const bench = new Bench()
    const first = bench.join({ protocols: [protocol('a', 'a1'), protocol('b', 'b1'), protocol('c', 'c1')] })
    const second = bench.join({ protocols: [protocol('c', 'c2'), protocol('b', 'b2')] })
    const third = bench.join({ protocols: [protocol('x'), protocol('c', 'c3'), protocol('b', 'b3')] })
    const { memberId } = good(first.answer)
    const leader = bench.join({
      memberId,
      protocols: [protocol('a', 'a1'), protocol('b', 'b1'), protocol('c', 'c1')],
    })
    expect(good(leader.answer).protocolName).toBe('c')
    expect(good(leader.answer).members.map(({ metadata }) => metadata.toString())).toEqual(['c1', 'c2', 'c3'])
    expect(good(second.answer).protocolName).toBe('c')
    expect(good(third.answer).protocolName).toBe('c')
  })

  test('of members who want different protocols chooses as its leader wants', () => {
    const bench = new Bench()
    const { memberId } = good(bench.join({ protocols: [protocol('a'), protocol('b')] }).answer)
    const second = bench.join({ protocols: [protocol('b'), protocol('a')] })
    bench.join({ memberId, protocols: [protocol('a'), protocol('b')] })
    expect(good(second.answer).protocolName).toBe('a')
  })

  test('is not needed for a follower that asks again with nothing new, in Stable and in CompletingRebalance', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2)
    expect(bench.join({ memberId: ids[1]! }).answer).toMatchObject({ ok: true, generationId: generation, members: [] })
    expect(bench.state()).toBe('Stable')

    const [leader, follower] = [bench.join({ memberId: ids[0]! }), bench.join({ memberId: ids[1]! })]
    expect(bench.state()).toBe('CompletingRebalance')
    expect(bench.join({ memberId: ids[0]! }).answer).toEqual(leader.answer)
    expect(bench.join({ memberId: ids[1]! }).answer).toEqual(follower.answer)
    expect(bench.state()).toBe('CompletingRebalance')
  })

  test('begins when a follower asks again with something new', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2)
    bench.join({ memberId: ids[1]!, protocols: [protocol('range', 'other topics')] })
    expect(bench.state()).toBe('PreparingRebalance')
  })

  test('begins when the leader joins again in Stable, as cooperative clients need', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2)
    const leader = bench.join({ memberId: ids[0]! })
    expect(bench.heartbeat(ids[1]!, generation)).toEqual(refused('rebalance-in-progress'))
    bench.join({ memberId: ids[1]! })
    expect(leader.answer).toMatchObject({ ok: true, generationId: generation + 1 })
  })

  test('cancels the syncs that wait when it begins anew', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2)
    for (const memberId of ids) bench.join({ memberId })
    const waiting = bench.sync(ids[1]!, 3)
    expect(waiting.answer).toBeUndefined()
    bench.join()
    expect(waiting.answer).toEqual(refused('rebalance-in-progress'))
  })

  test('leaves a newcomer in its first join five minutes, not its session timeout', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1, { rebalanceTimeoutMs: 1_000_000 })
    const newcomer = bench.join({ rebalanceTimeoutMs: 1_000_000 })
    const keepAlive = () => bench.heartbeat(ids[0]!, 1)
    for (let ms = 0; ms < 5 * 60_000 - 5000; ms += 5000) {
      bench.advance(5000)
      keepAlive()
    }
    expect(newcomer.answer).toBeUndefined()
    bench.advance(5000)
    expect(newcomer.answer).toEqual({ ok: false, reason: 'unknown-member-id', memberId: '' })
  })

  test('lets those who wait in a join live past their session timeout', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2)
    const waiting = bench.join({ memberId: ids[0]! })
    for (let ms = 0; ms < 50_000; ms += 5000) {
      bench.advance(5000)
      expect(bench.heartbeat(ids[1]!, 2)).toEqual(refused('rebalance-in-progress'))
    }
    const other = bench.join({ memberId: ids[1]! })
    expect(waiting.answer).toMatchObject({ ok: true })
    expect(other.answer).toMatchObject({ ok: true })
  })
})

describe('SyncGroup', () => {
  test('of followers waits for the leader, and then all get their own assignment', () => {
    const bench = new Bench()
    const { ids } = bench.stable(3)
    for (const memberId of ids) bench.join({ memberId })
    const followers = ids.slice(1).map((memberId) => bench.sync(memberId, 4))
    expect(followers.map(({ answer }) => answer)).toEqual([undefined, undefined])
    const leader = bench.sync(ids[0]!, 4, {
      assignments: [
        { memberId: ids[0]!, assignment: Buffer.from('zero') },
        { memberId: ids[1]!, assignment: Buffer.from('one') },
        { memberId: 'ghost', assignment: Buffer.from('nobody') },
      ],
    })
    expect(good(leader.answer)).toEqual({
      ok: true,
      protocolType: 'consumer',
      protocolName: 'range',
      assignment: Buffer.from('zero'),
    })
    expect(good(followers[0]!.answer).assignment.toString()).toBe('one')
    expect(good(followers[1]!.answer).assignment).toHaveLength(0)
    expect(bench.state()).toBe('Stable')
  })

  test('in Stable gives the current assignment again', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2)
    expect(good(bench.sync(ids[1]!, generation).answer).assignment.toString()).toBe(ids[1])
  })

  test('is refused for strangers, other generations, other protocols and during a rebalance', () => {
    const bench = new Bench()
    expect(bench.sync('ghost', 1).answer).toEqual(refused('unknown-member-id'))
    const { ids, generation } = bench.stable(2)
    expect(bench.sync('ghost', generation).answer).toEqual(refused('unknown-member-id'))
    expect(bench.sync(ids[1]!, generation - 1).answer).toEqual(refused('illegal-generation'))
    expect(bench.sync(ids[1]!, generation, { protocolType: 'connect' }).answer).toEqual(
      refused('inconsistent-group-protocol'),
    )
    expect(bench.sync(ids[1]!, generation, { protocolName: 'sticky' }).answer).toEqual(
      refused('inconsistent-group-protocol'),
    )
    expect(bench.sync(ids[1]!, generation, { protocolType: 'consumer', protocolName: 'range' }).answer).toMatchObject({
      ok: true,
    })
    bench.join()
    expect(bench.sync(ids[1]!, generation).answer).toEqual(refused('rebalance-in-progress'))
  })

  test('is waited for by one timer, from the joins until all have come or a rebalance begins', () => {
    const bench = new Bench()
    const ofSessions = (count: number) => count + 1 // and the one of the retention
    const { ids } = bench.stable(2)
    expect(bench.timerCount).toBe(ofSessions(2))
    for (const memberId of ids) bench.join({ memberId })
    expect(bench.timerCount).toBe(ofSessions(2) + 1)
    bench.sync(ids[0]!, 3)
    expect(bench.timerCount).toBe(ofSessions(2) + 1)
    bench.leave(ids[1]!)
    expect(bench.timerCount).toBe(ofSessions(1) + 1) // for the rejoin of the other
    bench.join({ memberId: ids[0]! })
    bench.sync(ids[0]!, 4)
    expect(bench.timerCount).toBe(ofSessions(1))
  })

  test('that never comes within the rebalance timeout costs the membership', () => {
    const bench = new Bench()
    const { ids } = bench.stable(3, { sessionTimeoutMs: 300_000 })
    for (const memberId of ids) bench.join({ memberId, sessionTimeoutMs: 300_000 })
    bench.sync(ids[1]!, 4)
    bench.sync(ids[0]!, 4)
    expect(bench.state()).toBe('Stable')
    bench.advance(rebalanceMs - 1)
    expect(bench.heartbeat(ids[2]!, 4)).toEqual({ ok: true })
    bench.advance(1)
    expect(bench.heartbeat(ids[2]!, 4)).toEqual(refused('unknown-member-id'))
    expect(bench.heartbeat(ids[1]!, 4)).toEqual(refused('rebalance-in-progress'))
  })

  test('that the leader never sends starts another rebalance without it', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2, { sessionTimeoutMs: 300_000 })
    for (const memberId of ids) bench.join({ memberId, sessionTimeoutMs: 300_000 })
    const waiting = bench.sync(ids[1]!, 3)
    bench.advance(rebalanceMs)
    expect(waiting.answer).toEqual(refused('rebalance-in-progress'))
    expect(bench.join({ memberId: ids[1]!, sessionTimeoutMs: 300_000 }).answer).toMatchObject({
      ok: true,
      generationId: 4,
      leader: ids[1],
    })
  })

  test('is answered when its member is dropped', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2)
    for (const memberId of ids) bench.join({ memberId })
    const waiting = bench.sync(ids[1]!, 3)
    bench.leave(ids[1]!)
    expect(waiting.answer).toEqual(refused('unknown-member-id'))
  })

  test('whose record is refused is answered so, and the group rebalances', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2)
    for (const memberId of ids) bench.join({ memberId })
    bench.refusal = 'not-enough-replicas'
    const [follower, leader] = [bench.sync(ids[1]!, 3), bench.sync(ids[0]!, 3)]
    expect(follower.answer).toEqual(refused('not-enough-replicas'))
    expect(leader.answer).toEqual(refused('not-enough-replicas'))
    expect(bench.state()).toBe('PreparingRebalance')
    bench.refusal = undefined
    const again = ids.map((memberId) => bench.join({ memberId }))
    expect(again.map(({ answer }) => good(answer).generationId)).toEqual([4, 4])
    bench.syncAll(ids, 4)
  })
})

describe('Heartbeat', () => {
  test('is good in Stable and in CompletingRebalance', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    expect(bench.heartbeat(ids[0]!, generation)).toEqual({ ok: true })
    bench.join({ memberId: ids[0]! })
    expect(bench.state()).toBe('CompletingRebalance')
    expect(bench.heartbeat(ids[0]!, generation + 1)).toEqual({ ok: true })
  })

  test('tells of a rebalance, and counts as a sign of life in it', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    const newcomer = bench.join()
    for (let ms = 0; ms < 50_000; ms += 5000) {
      bench.advance(5000)
      expect(bench.heartbeat(ids[0]!, generation)).toEqual(refused('rebalance-in-progress'))
    }
    expect(newcomer.answer).toBeUndefined()
  })

  test('is refused in another generation, and for strangers in every state', () => {
    const bench = new Bench()
    expect(bench.heartbeat('ghost', 0)).toEqual(refused('unknown-member-id'))
    const { ids, generation } = bench.stable(1)
    expect(bench.heartbeat(ids[0]!, generation + 1)).toEqual(refused('illegal-generation'))
    expect(bench.heartbeat('ghost', generation)).toEqual(refused('unknown-member-id'))
    bench.leave(ids[0]!)
    expect(bench.state()).toBe('Empty')
    expect(bench.heartbeat(ids[0]!, generation + 1)).toEqual(refused('unknown-member-id'))
  })

  test('that does not come within the session timeout costs the membership', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2)
    bench.advance(sessionMs - 1)
    bench.heartbeat(ids[0]!, generation)
    bench.advance(1)
    expect(bench.heartbeat(ids[1]!, generation)).toEqual(refused('unknown-member-id'))
    expect(bench.heartbeat(ids[0]!, generation)).toEqual(refused('rebalance-in-progress'))
  })

  test('keeps a member alive for ever', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    for (let i = 0; i < 100; i++) {
      bench.advance(sessionMs - 1)
      expect(bench.heartbeat(ids[0]!, generation)).toEqual({ ok: true })
    }
    bench.advance(sessionMs)
    expect(bench.state()).toBe('Empty')
  })

  test('goes by a shorter session timeout as soon as its member joined with it', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1, { sessionTimeoutMs: 1_000_000 })
    bench.join({ memberId: ids[0]!, sessionTimeoutMs: 6000 })
    bench.advance(6000)
    expect(bench.state()).toBe('Empty')
  })
})

describe('LeaveGroup', () => {
  test('removes members one by one, each with its own answer, and starts a rebalance', () => {
    const bench = new Bench()
    const { ids } = bench.stable(3)
    expect(bench.leave(ids[1]!, 'ghost', ids[2]!)).toEqual({
      ok: true,
      members: [
        { memberId: ids[1], groupInstanceId: null, reason: null },
        { memberId: 'ghost', groupInstanceId: null, reason: 'unknown-member-id' },
        { memberId: ids[2], groupInstanceId: null, reason: null },
      ],
    })
    expect(bench.state()).toBe('PreparingRebalance')
    expect(good(bench.join({ memberId: ids[0]! }).answer).members).toHaveLength(1)
  })

  test('of an unknown group or of strangers only changes nothing', () => {
    const bench = new Bench()
    expect(good(bench.leave('ghost')).members[0]!.reason).toBe('unknown-member-id')
    bench.stable(1)
    bench.leave('ghost')
    expect(bench.state()).toBe('Stable')
  })

  test('of the last member makes the group Empty, in a new generation that is stored', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    bench.leave(ids[0]!)
    expect(bench.state()).toBe('Empty')
    expect(bench.records().at(-1)).toMatchObject({
      kind: 'group',
      value: { generation: generation + 1, protocol: null, leader: null, members: [], protocolType: 'consumer' },
    })
    expect(bench.timerCount).toBe(1) // of the retention
  })

  test('completes a rebalance that waited for the one who left', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2)
    const waiting = bench.join({ memberId: ids[0]! })
    bench.leave(ids[1]!)
    expect(waiting.answer).toMatchObject({ ok: true, generationId: 3 })
  })

  test('takes a given id back before it was used', () => {
    const bench = new Bench()
    bench.join({ requireKnownMemberId: true })
    expect(good(bench.leave('member-1')).members[0]!.reason).toBeNull()
    expect(bench.list()).toEqual([])
    expect(bench.timerCount).toBe(1)
  })

  test('finds a static member by its instance id alone, and fences a wrong member id', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2, (i) => ({ groupInstanceId: `i${i}` }))
    const answer = bench.leave(
      { memberId: '', groupInstanceId: 'i1' },
      { memberId: ids[1]!, groupInstanceId: 'i0' },
      { memberId: '', groupInstanceId: 'nobody' },
    )
    expect(good(answer).members.map(({ reason }) => reason)).toEqual([null, 'fenced-instance-id', 'unknown-member-id'])
  })

  test('whose record is refused empties the group all the same', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1)
    bench.refusal = 'not-enough-replicas'
    bench.leave(ids[0]!)
    expect(bench.state()).toBe('Empty')
    bench.refusal = undefined
    expect(bench.join().answer).toMatchObject({ ok: true, generationId: 3 })
  })
})

describe('A static member that restarts', () => {
  const member = (i: number) => ({ groupInstanceId: `i${i}`, sessionTimeoutMs: 60_000 })

  test('in Stable gets a new id in the same generation, and its old run is fenced', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2, member)
    const answer = good(bench.join(member(1)).answer)
    expect(answer).toMatchObject({ generationId: generation, leader: ids[0], skipAssignment: false, members: [] })
    expect(answer.memberId).not.toBe(ids[1])
    expect(bench.state()).toBe('Stable')
    const old = { memberId: ids[1]!, groupInstanceId: 'i1' }
    expect(bench.heartbeat(old, generation)).toEqual(refused('fenced-instance-id'))
    expect(bench.sync(old, generation).answer).toEqual(refused('fenced-instance-id'))
    expect(bench.join({ ...member(1), memberId: ids[1]! }).answer).toEqual(refused('fenced-instance-id'))
    expect(bench.commit({ ...old, generationId: generation })).toEqual(refused('fenced-instance-id'))
    const now = { memberId: answer.memberId, groupInstanceId: 'i1' }
    expect(good(bench.sync(now, generation).answer).assignment.toString()).toBe(ids[1])
    expect(bench.heartbeat(now, generation)).toEqual({ ok: true })
    expect(bench.records().at(-1)).toMatchObject({ value: { members: [{}, { memberId: answer.memberId }] } })
  })

  test('as the leader is told to skip the assignment when it understands that', () => {
    const bench = new Bench()
    bench.stable(2, member)
    const answer = good(bench.join({ ...member(0), supportsSkippingAssignment: true }).answer)
    expect(answer).toMatchObject({ skipAssignment: true, leader: answer.memberId })
    expect(answer.members).toHaveLength(2)
    const follower = good(bench.join({ ...member(1), supportsSkippingAssignment: true }).answer)
    expect(follower).toMatchObject({ skipAssignment: false, leader: answer.memberId, members: [] })
  })

  test('as the leader is told of its old self as the leader when it does not', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2, member)
    const answer = good(bench.join(member(0)).answer)
    expect(answer).toMatchObject({ skipAssignment: false, leader: ids[0], members: [] })
    expect(bench.join({ ...member(0), memberId: answer.memberId }).answer).toBeUndefined()
    expect(bench.state()).toBe('PreparingRebalance')
  })

  test('with another choice of protocols starts a rebalance', () => {
    const bench = new Bench()
    const both = [protocol('range'), protocol('sticky')]
    bench.stable(2, (i) => ({ ...member(i), protocols: both }))
    const first = bench.join({ ...member(1), protocols: [protocol('sticky'), protocol('range')] })
    expect(first.answer).toMatchObject({ ok: true, protocolName: 'range' })
    const second = bench.join({ ...member(0), protocols: [protocol('sticky'), protocol('range')] })
    expect(second.answer).toBeUndefined()
    expect(bench.state()).toBe('PreparingRebalance')
  })

  test('in CompletingRebalance starts another rebalance', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2, member)
    for (const [i, memberId] of ids.entries())
      bench.join({ ...member(i), memberId, protocols: [protocol('range', 'x')] })
    expect(bench.state()).toBe('CompletingRebalance')
    const waiting = bench.sync({ memberId: ids[1]!, groupInstanceId: 'i1' }, 3)
    bench.join({ ...member(1), protocols: [protocol('range', 'x')] })
    expect(waiting.answer).toEqual(refused('fenced-instance-id'))
    expect(bench.state()).toBe('PreparingRebalance')
  })

  test('in a rebalance takes the place of its old run, whose join is fenced', () => {
    const bench = new Bench()
    const { ids } = bench.stable(2, member)
    const old = bench.join({ ...member(1), memberId: ids[1]!, protocols: [protocol('range', 'x')] })
    const restarted = bench.join({ ...member(1), protocols: [protocol('range', 'x')] })
    expect(old.answer).toEqual({ ok: false, reason: 'fenced-instance-id', memberId: ids[1] })
    const leader = bench.join({ ...member(0), memberId: ids[0]! })
    expect(leader.answer).toMatchObject({ ok: true, leader: ids[0] })
    expect(good(restarted.answer).generationId).toBe(3)
  })

  test('whose record is refused leaves its old run in place', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2, member)
    bench.refusal = 'not-enough-replicas'
    const restarted = bench.join({ ...member(1), protocols: [protocol('range', 'x')] })
    expect(restarted.answer).toEqual(refused('not-enough-replicas'))
    expect(bench.heartbeat({ memberId: ids[1]!, groupInstanceId: 'i1' }, generation)).toEqual({ ok: true })
    bench.advance(60_000)
    bench.refusal = undefined
    expect(bench.state()).toBe('Empty')
  })

  test('is unknown when its instance id is', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    const identity = { memberId: ids[0]!, groupInstanceId: 'never' }
    expect(bench.heartbeat(identity, generation)).toEqual(refused('unknown-member-id'))
    expect(bench.join(identity).answer).toEqual(refused('unknown-member-id'))
  })
})

describe('DescribeGroups and ListGroups', () => {
  test('tell of members what they said only when the group is Stable, and what they got last', () => {
    const bench = new Bench()
    expect(bench.describe()).toEqual({ ok: false, groupId: 'g', reason: 'group-id-not-found' })
    const { ids } = bench.stable(1, { groupInstanceId: 'i' })
    const member = { memberId: ids[0], groupInstanceId: 'i', clientId: 'client', clientHost: '/127.0.0.1' }
    expect(bench.describe()).toEqual({
      ok: true,
      groupId: 'g',
      state: 'Stable',
      protocolType: 'consumer',
      protocolName: 'range',
      members: [{ ...member, metadata: Buffer.from('metadata'), assignment: Buffer.from(ids[0]!) }],
    })
    bench.join()
    expect(bench.describe()).toMatchObject({
      state: 'PreparingRebalance',
      protocolName: '',
      members: [{ ...member, metadata: Buffer.alloc(0), assignment: Buffer.from(ids[0]!) }, {}],
    })
  })

  test('list by state and type, in any case of letters', () => {
    const bench = new Bench()
    bench.stable(1)
    bench.commit({ groupId: 'simple' })
    const stable = { groupId: 'g', protocolType: 'consumer', state: 'Stable', type: 'classic' }
    const simple = { groupId: 'simple', protocolType: '', state: 'Empty', type: 'classic' }
    expect(bench.list()).toEqual([stable, simple])
    expect(bench.list({ states: ['stable', 'dead'] })).toEqual([stable])
    expect(bench.list({ states: ['EMPTY'] })).toEqual([simple])
    expect(bench.list({ types: ['Classic'] })).toHaveLength(2)
    expect(bench.list({ types: ['consumer'] })).toEqual([])
  })
})

describe('A coordinator that takes over', () => {
  test('goes on with a Stable group without a rebalance, with fresh sessions', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(2)
    const before = bench.describe()
    bench.advance(sessionMs - 1)
    bench.reload()
    expect(bench.describe()).toEqual(before)
    bench.advance(sessionMs - 1)
    for (const memberId of ids) expect(bench.heartbeat(memberId, generation)).toEqual({ ok: true })
    expect(good(bench.sync(ids[1]!, generation).answer).assignment.toString()).toBe(ids[1])
    expect(bench.join({ memberId: ids[1]! }).answer).toMatchObject({ ok: true, generationId: generation })
    bench.advance(sessionMs)
    expect(bench.state()).toBe('Empty')
  })

  test('knows what a member said last, not what it said first', () => {
    const bench = new Bench()
    const both = { protocols: [protocol('range', 'old'), protocol('sticky', '')] }
    const { ids } = bench.stable(1, both)
    const changed = { protocols: [protocol('sticky', ''), protocol('range', 'new')], sessionTimeoutMs: 20_000 }
    bench.join({ ...changed, memberId: ids[0]! })
    bench.syncAll(ids, 2)
    const before = bench.describe()
    bench.reload()
    expect(bench.describe()).toEqual(before)
    expect(bench.join({ protocols: [protocol('range')] }).answer).toEqual(refused('inconsistent-group-protocol'))
    bench.advance(19_999)
    expect(bench.heartbeat(ids[0]!, 2)).toEqual({ ok: true })
  })

  test('fences and finds static members as before', () => {
    const bench = new Bench()
    const { generation } = bench.stable(1, { groupInstanceId: 'i' })
    bench.reload()
    expect(bench.heartbeat({ memberId: 'other', groupInstanceId: 'i' }, generation)).toEqual(
      refused('fenced-instance-id'),
    )
    expect(bench.join({ groupInstanceId: 'i' }).answer).toMatchObject({ ok: true, generationId: generation })
  })

  test('has the last generation that was stored, and members of a later one join again', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    bench.join({ memberId: ids[0]! })
    bench.reload()
    expect(bench.heartbeat(ids[0]!, generation + 1)).toEqual(refused('illegal-generation'))
    expect(bench.join({ memberId: ids[0]! }).answer).toMatchObject({ ok: true, generationId: generation + 1 })
  })

  test('cuts a group that is larger than group.max.size by a rebalance', () => {
    const bench = new Bench()
    const { ids } = bench.stable(3)
    ;(bench.config as { groupMaxSize: number }).groupMaxSize = 2
    bench.reload()
    expect(bench.state()).toBe('PreparingRebalance')
    const [first, second] = ids.slice(0, 2).map((memberId) => bench.join({ memberId }))
    expect(bench.join({ memberId: ids[2]! }).answer).toEqual(refused('group-max-size-reached'))
    expect(first!.answer).toMatchObject({ ok: true })
    expect(second!.answer).toMatchObject({ ok: true })
  })

  test('gives the timers of thousands of groups in several turns', () => {
    const bench = new Bench()
    for (let i = 0; i < 1200; i++) {
      const groupId = `g${i}`
      const { memberId, generationId } = good(bench.join({ groupId }).answer)
      bench.sync(memberId, generationId, { groupId })
    }
    bench.reload()
    expect(bench.timerCount).toBe(500 + 2)
    bench.advance(0)
    expect(bench.timerCount).toBe(1200 + 1)
    bench.advance(sessionMs)
    expect(bench.list({ states: ['Empty'] })).toHaveLength(1200)
  })
})

describe('Hostile requests', () => {
  test('with many protocols, the same ones again, or without a name are taken as they are', () => {
    const bench = new Bench()
    const many = Array.from({ length: 20_000 }, (_, i) => protocol(`p${i % 10_000}`, String(i)))
    const answer = good(bench.join({ protocols: [...many, protocol('')] }).answer)
    expect(answer.protocolName).toBe('p0')
    expect(answer.members[0]!.metadata.toString()).toBe('0')
    const other = bench.join({ protocols: [protocol('')] })
    bench.join({ memberId: answer.memberId, protocols: [...many, protocol('')] })
    expect(good(other.answer).protocolName).toBe('')
  })

  test('do not keep the memory of the request', () => {
    const bench = new Bench()
    const metadata = Buffer.from('metadata')
    const { memberId } = good(bench.join({ protocols: [{ name: 'range', metadata }] }).answer)
    const assignment = Buffer.from('assignment')
    bench.sync(memberId, 1, { assignments: [{ memberId, assignment }] })
    metadata.fill(0)
    assignment.fill(0)
    expect(bench.describe()).toMatchObject({
      members: [{ metadata: Buffer.from('metadata'), assignment: Buffer.from('assignment') }],
    })
  })
})
