import { describe, expect, test } from 'vitest'
import { type Uuid, zeroUuid } from '../../../src/base/index.ts'
import type { OffsetCommitRequest } from '../../../src/group/index.ts'
import { TopicDeletion } from '../../../src/group/offset-rules.ts'
import { ConsumerProtocolSubscription, encodeMessage, Writer } from '../../../src/protocol/index.ts'
import { Bench, defaultConfig, good, sessionMs } from './bench.ts'

const refused = (reason: string) => expect.objectContaining({ ok: false, reason })
const day = 24 * 3600_000
const { offsetsRetentionMs, offsetsRetentionCheckIntervalMs } = defaultConfig
const topicId = 'abcdefghijklmnopqrstug' as Uuid

function topic(name: string, ...offsets: number[]): OffsetCommitRequest['topics'][number] {
  return {
    topic: name,
    topicId: zeroUuid,
    partitions: offsets.map((offset, partition) => ({ partition, offset, leaderEpoch: -1, metadata: null })),
  }
}

function subscription(topics: readonly string[]): Buffer {
  const writer = new Writer()
  writer.int16(1)
  encodeMessage(ConsumerProtocolSubscription, 1, { topics, userData: null, ownedPartitions: [] }, writer)
  return Buffer.concat(writer.finish())
}

const reading = (...topics: string[]) => ({ protocols: [{ name: 'range', metadata: subscription(topics) }] })

describe('OffsetCommit', () => {
  test('by nobody makes a group that only commits offsets', () => {
    const bench = new Bench()
    expect(bench.commit({ offset: 7 })).toEqual({
      ok: true,
      topics: [{ topic: 't', partitions: [{ partition: 0, reason: null }] }],
    })
    expect(bench.offset()).toBe(7)
    expect(bench.list()).toEqual([{ groupId: 'g', protocolType: '', state: 'Empty', type: 'classic' }])
    bench.commit({ offset: 9 })
    expect(bench.offset()).toBe(9)
  })

  test('keeps metadata, leader epoch and topic id exactly', () => {
    const bench = new Bench()
    const metadata = 'tab\t snow\u2603 pair\u{1f600} nul\0'
    bench.commit({
      topics: [{ topic: 't', topicId, partitions: [{ partition: 3, offset: 2 ** 53 - 1, leaderEpoch: 42, metadata }] }],
    })
    const expected = { partition: 3, offset: 2 ** 53 - 1, leaderEpoch: 42, metadata }
    expect(good(bench.fetchOffsets()).topics).toEqual([{ topic: 't', partitions: [expected] }])
    bench.reload()
    expect(good(bench.fetchOffsets()).topics).toEqual([{ topic: 't', partitions: [expected] }])
    expect(bench.records()[0]).toMatchObject({ value: { topicId } })
  })

  test('by nobody is refused while the group has members', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1)
    expect(bench.commit()).toEqual(refused('unknown-member-id'))
    bench.leave(ids[0]!)
    expect(bench.commit()).toMatchObject({ ok: true })
  })

  test('with a generation of an unknown group is refused as its version reports it', () => {
    const bench = new Bench()
    expect(bench.commit({ generationId: 1, memberId: 'm' })).toEqual(refused('group-id-not-found'))
    expect(bench.commit({ generationId: 1, memberId: 'm', reportsUnknownGroup: false })).toEqual(
      refused('illegal-generation'),
    )
    expect(bench.list()).toEqual([])
  })

  test('by a member is refused in another generation, in CompletingRebalance, and from strangers', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    const memberId = ids[0]!
    expect(bench.commit({ memberId, generationId: generation })).toMatchObject({ ok: true })
    expect(bench.commit({ memberId, generationId: generation + 1 })).toEqual(refused('illegal-generation'))
    expect(bench.commit({ memberId, generationId: -1 })).toEqual(refused('illegal-generation'))
    expect(bench.commit({ memberId: 'ghost', generationId: generation })).toEqual(refused('unknown-member-id'))
    bench.join({ memberId })
    expect(bench.commit({ memberId, generationId: generation + 1 })).toEqual(refused('rebalance-in-progress'))
    bench.leave(memberId)
    expect(bench.commit({ memberId, generationId: generation + 1 })).toEqual(refused('unknown-member-id'))
  })

  test('by a member is good in PreparingRebalance, and renews its session there and in Stable', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    const commit = () => bench.commit({ memberId: ids[0]!, generationId: generation })
    for (const newcomer of [false, true]) {
      if (newcomer) bench.join()
      for (let i = 0; i < 4; i++) {
        bench.advance(sessionMs - 1)
        expect(commit()).toMatchObject({ ok: true })
      }
    }
    bench.advance(sessionMs)
    expect(commit()).toEqual(refused('unknown-member-id'))
  })

  test('refuses metadata that is too long for its partition alone', () => {
    const bench = new Bench({ offsetMetadataMaxBytes: 4 })
    const partitions = ['four', 'fives'].map((metadata, partition) => ({
      partition,
      offset: 1,
      leaderEpoch: -1,
      metadata,
    }))
    expect(bench.commit({ topics: [{ topic: 't', topicId: zeroUuid, partitions }] })).toEqual({
      ok: true,
      topics: [
        {
          topic: 't',
          partitions: [
            { partition: 0, reason: null },
            { partition: 1, reason: 'offset-metadata-too-large' },
          ],
        },
      ],
    })
    expect(good(bench.fetchOffsets()).topics[0]!.partitions).toHaveLength(1)
  })

  test('that the log refuses is not to be seen', () => {
    const bench = new Bench()
    bench.commit({ offset: 1 })
    bench.refusal = 'not-enough-replicas'
    expect(bench.commit({ offset: 2 })).toEqual(refused('not-enough-replicas'))
    expect(bench.commit({ groupId: 'other' })).toEqual(refused('not-enough-replicas'))
    bench.refusal = undefined
    expect(bench.offset()).toBe(1)
    expect(bench.list()).toHaveLength(1)
  })

  test('takes the empty group id of old clients', () => {
    const bench = new Bench()
    expect(bench.commit({ groupId: '', offset: 3 })).toMatchObject({ ok: true })
    expect(bench.offset('')).toBe(3)
  })
})

describe('OffsetFetch', () => {
  test('of what was never committed is no error, in a known group and in an unknown one', () => {
    const bench = new Bench()
    const asked = [{ topic: 't', partitions: [0, 1] }]
    const nothing = (partition: number) => ({ partition, offset: -1, leaderEpoch: -1, metadata: '' })
    expect(bench.fetchOffsets(asked)).toEqual({
      ok: true,
      groupId: 'g',
      topics: [{ topic: 't', partitions: [nothing(0), nothing(1)] }],
    })
    expect(bench.list()).toEqual([])
    bench.commit({ offset: 5 })
    const committed = { partition: 0, offset: 5, leaderEpoch: 3, metadata: '' }
    expect(good(bench.fetchOffsets(asked)).topics).toEqual([{ topic: 't', partitions: [committed, nothing(1)] }])
  })

  test('of all topics gives all that was committed and nothing else', () => {
    const bench = new Bench()
    expect(good(bench.fetchOffsets(null)).topics).toEqual([])
    bench.commit({ topics: [topic('a', 1, 2), topic('b', 3)] })
    const committed = good(bench.fetchOffsets(null)).topics.map(({ topic, partitions }) => [
      topic,
      partitions.map(({ offset }) => offset),
    ])
    expect(committed).toEqual([
      ['a', [1, 2]],
      ['b', [3]],
    ])
  })
})

describe('Retention', () => {
  test('of a group that only commits counts from each commit', () => {
    const bench = new Bench()
    bench.commit({ topics: [topic('old', 1)] })
    bench.advance(day)
    bench.commit({ topics: [topic('new', 1)] })
    bench.advance(offsetsRetentionMs - day + offsetsRetentionCheckIntervalMs)
    expect(good(bench.fetchOffsets()).topics.map(({ topic }) => topic)).toEqual(['new'])
    bench.advance(day)
    expect(bench.list()).toEqual([])
    bench.reload()
    expect(bench.list()).toEqual([])
  })

  test('of a group that had members counts from when the last one left', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1, reading('t'))
    bench.commit({ memberId: ids[0]!, generationId: generation })
    for (let ms = 0; ms < offsetsRetentionMs; ms += sessionMs / 2) {
      bench.now = { ...bench.now, wallMs: bench.now.wallMs + sessionMs / 2 }
    }
    bench.leave(ids[0]!)
    bench.advance(offsetsRetentionMs - 1)
    expect(bench.offset()).toBe(5)
    bench.reload()
    bench.advance(offsetsRetentionCheckIntervalMs)
    expect(bench.state()).toBe('Dead')
    expect(bench.records().slice(-2)).toEqual([
      { kind: 'offset', groupId: 'g', topic: 't', partition: 0, value: null },
      { kind: 'group', groupId: 'g', value: null },
    ])
  })

  test('spares what a Stable group reads, and only that', () => {
    const bench = new Bench()
    const request = { ...reading('read'), sessionTimeoutMs: 1_800_000 }
    const { ids, generation } = bench.stable(1, request)
    const member = { memberId: ids[0]!, generationId: generation }
    bench.commit({ ...member, topics: [topic('read', 1), topic('unread', 1)] })
    bench.now = { ...bench.now, wallMs: bench.now.wallMs + offsetsRetentionMs }
    bench.advance(offsetsRetentionCheckIntervalMs)
    expect(good(bench.fetchOffsets()).topics.map(({ topic }) => topic)).toEqual(['read'])
    expect(bench.state()).toBe('Stable')
  })

  test('spares everything while a group rebalances, and while what it reads is not understood', () => {
    const bench = new Bench()
    const request = { sessionTimeoutMs: 1_800_000, rebalanceTimeoutMs: 1_800_000 }
    const { ids, generation } = bench.stable(1, request)
    bench.commit({ memberId: ids[0]!, generationId: generation })
    bench.now = { ...bench.now, wallMs: bench.now.wallMs + offsetsRetentionMs }
    bench.advance(offsetsRetentionCheckIntervalMs)
    expect(bench.offset()).toBe(5)
    bench.join({ ...request, memberId: ids[0]!, ...reading('other') })
    bench.advance(offsetsRetentionCheckIntervalMs)
    expect(bench.offset()).toBe(5)
  })

  test('that a commit brought with it goes before that of the broker', () => {
    const bench = new Bench()
    bench.commit({ retentionTimeMs: 1000, topics: [topic('short', 1)] })
    bench.commit({ retentionTimeMs: 100 * day, topics: [topic('long', 1)] })
    bench.reload()
    bench.advance(offsetsRetentionCheckIntervalMs)
    expect(good(bench.fetchOffsets()).topics.map(({ topic }) => topic)).toEqual(['long'])
    bench.advance(99 * day)
    expect(good(bench.fetchOffsets()).topics.map(({ topic }) => topic)).toEqual(['long'])
    bench.advance(2 * day)
    expect(bench.list()).toEqual([])
  })

  test('forgets Empty groups without offsets, and not those that someone is about to join', () => {
    const bench = new Bench()
    const { ids } = bench.stable(1)
    bench.leave(ids[0]!)
    const slow = { requireKnownMemberId: true, sessionTimeoutMs: 2 * offsetsRetentionCheckIntervalMs }
    bench.join(slow)
    const stored = bench.log.length
    bench.advance(offsetsRetentionCheckIntervalMs)
    expect(bench.state()).toBe('Empty')
    expect(bench.log).toHaveLength(stored)
    bench.advance(2 * offsetsRetentionCheckIntervalMs)
    expect(bench.state()).toBe('Dead')
  })

  test('works through many groups and offsets in turns, with batches of a bounded size', () => {
    const bench = new Bench()
    for (let i = 0; i < 200; i++) {
      const groupId = `group-${i}`.padEnd(2000, 'x')
      bench.commit({ groupId, topics: [topic('t', ...Array<number>(i === 0 ? 300 : 5).fill(1))] })
    }
    const batches: number[] = []
    const { apply } = bench
    bench.apply = (effects) => {
      if (effects.records.length > 0) batches.push(effects.records.length)
      apply.call(bench, effects)
    }
    bench.advance(offsetsRetentionMs + offsetsRetentionCheckIntervalMs)
    expect(bench.list()).toEqual([])
    expect(Math.max(...batches)).toBeLessThan(100)
    expect(batches.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(300 + 199 * 5)
  })

  test('that the log refuses is tried again at the next sweep, not at once', () => {
    const bench = new Bench()
    bench.commit()
    bench.refusal = 'not-enough-replicas'
    bench.advance(offsetsRetentionMs + offsetsRetentionCheckIntervalMs)
    expect(bench.offset()).toBe(5)
    bench.refusal = undefined
    bench.advance(offsetsRetentionCheckIntervalMs)
    expect(bench.list()).toEqual([])
  })
})

describe('DeleteGroups', () => {
  test('removes an Empty group with its offsets, for good', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    bench.commit({ memberId: ids[0]!, generationId: generation })
    expect(bench.deleteGroup()).toBe('non-empty-group')
    bench.leave(ids[0]!)
    expect(bench.deleteGroup()).toBeNull()
    expect(bench.state()).toBe('Dead')
    expect(bench.offset()).toBe(-1)
    bench.reload()
    expect(bench.list()).toEqual([])
    expect(bench.deleteGroup()).toBe('group-id-not-found')
  })

  test('removes a group that only commits offsets', () => {
    const bench = new Bench()
    bench.commit()
    expect(bench.deleteGroup()).toBeNull()
    expect(bench.list()).toEqual([])
    bench.reload()
    expect(bench.list()).toEqual([])
  })

  test('goes on in several batches where one does not take all', () => {
    const bench = new Bench()
    bench.commit({ topics: [topic('t'.repeat(249), ...Array<number>(1000).fill(1))] })
    let turns = 0
    while (bench.deleteGroup() === 'more') turns++
    expect(turns).toBeGreaterThan(3)
    expect(bench.list()).toEqual([])
  })

  test('that the log refuses leaves everything', () => {
    const bench = new Bench()
    bench.commit()
    bench.refusal = 'not-enough-replicas'
    bench.deleteGroup()
    expect(bench.offset()).toBe(5)
  })
})

describe('OffsetDelete', () => {
  test('removes single offsets of a group without members, and of an unknown one nothing', () => {
    const bench = new Bench()
    expect(bench.deleteOffsets('t', 0)).toEqual(refused('group-id-not-found'))
    bench.commit({ topics: [topic('t', 1, 2)] })
    expect(good(bench.deleteOffsets('t', 0)).topics[0]!.partitions).toEqual([{ partition: 0, reason: null }])
    expect(good(bench.deleteOffsets('t', 9)).topics[0]!.partitions).toEqual([{ partition: 9, reason: null }])
    expect(good(bench.fetchOffsets()).topics[0]!.partitions.map(({ partition }) => partition)).toEqual([1])
  })

  test('spares topics that consumers read', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1, reading('read'))
    const member = { memberId: ids[0]!, generationId: generation }
    bench.commit({ ...member, topics: [topic('read', 1), topic('unread', 1)] })
    const reasonFor = (name: string) => good(bench.deleteOffsets(name, 0)).topics[0]!.partitions[0]!.reason
    expect(reasonFor('read')).toBe('group-subscribed-to-topic')
    expect(reasonFor('unread')).toBeNull()
    expect(good(bench.fetchOffsets()).topics.map(({ topic }) => topic)).toEqual(['read'])
  })

  test('of a group with members of another kind is refused', () => {
    const bench = new Bench()
    bench.stable(1, { protocolType: 'connect' })
    expect(bench.deleteOffsets('t', 0)).toEqual(refused('non-empty-group'))
  })

  test('trusts no subscription that it does not understand', () => {
    const bench = new Bench()
    for (const metadata of ['', '\xff', '\0\0\x7f\xff\xff\xff']) {
      const groupId = 'g'
      bench.stable(1, { groupId, protocols: [{ name: 'range', metadata: Buffer.from(metadata, 'latin1') }] })
      expect(good(bench.deleteOffsets('t', 0)).topics[0]!.partitions[0]!.reason).toBe('group-subscribed-to-topic')
      bench.reload()
      bench.advance(sessionMs)
    }
  })
})

describe('A topic that is deleted', () => {
  const deletionOf = (name: string, ...ids: Uuid[]) =>
    new TopicDeletion(ids.map((id) => ({ topic: name, topicId: id })))
  const goOn = (bench: Bench, deletion: TopicDeletion) =>
    bench.ask<'done' | 'more'>((machine, now, ticket) => machine.offsets.deleteTopics(deletion, ticket, now)).answer
  const deleteTopics = (bench: Bench, name: string, id: Uuid) => goOn(bench, deletionOf(name, id))

  test('takes its offsets with it, of all groups', () => {
    const bench = new Bench()
    const { ids, generation } = bench.stable(1)
    bench.commit({ memberId: ids[0]!, generationId: generation, topics: [topic('t', 1), topic('u', 1)] })
    bench.commit({ groupId: 'simple' })
    expect(deleteTopics(bench, 't', topicId)).toBe('done')
    expect(bench.offset()).toBe(-1)
    expect(good(bench.fetchOffsets()).topics.map(({ topic }) => topic)).toEqual(['u'])
    expect(bench.list().map(({ groupId }) => groupId)).toEqual(['g'])
  })

  test('leaves those of another topic by its name', () => {
    const bench = new Bench()
    bench.commit({ topics: [{ ...topic('t', 1), topicId }] })
    expect(deleteTopics(bench, 't', 'ABCDEFGHIJKLMNOPQRSTUQ' as Uuid)).toBe('done')
    expect(bench.offset()).toBe(1)
    expect(deleteTopics(bench, 't', topicId)).toBe('done')
    expect(bench.offset()).toBe(-1)
  })

  test('is forgotten in several batches where one does not take all', () => {
    const bench = new Bench()
    for (let i = 0; i < 10; i++) bench.commit({ groupId: `g${i}`, topics: [topic('t', ...Array<number>(500).fill(1))] })
    let turns = 1
    const deletion = deletionOf('t', topicId)
    while (goOn(bench, deletion) === 'more') turns++
    expect(turns).toBeGreaterThan(1)
    expect(bench.list()).toEqual([])
  })

  test('is forgotten though an append was refused, or the groups were loaded anew, in between', () => {
    const bench = new Bench()
    for (let i = 0; i < 20; i++) bench.commit({ groupId: `g${i}`, topics: [topic('t', ...Array<number>(500).fill(1))] })
    const deletion = deletionOf('t', topicId)
    expect(goOn(bench, deletion)).toBe('more')
    bench.refusal = 'not-enough-replicas'
    expect(goOn(bench, deletion)).toMatchObject({ ok: false })
    bench.refusal = undefined
    expect(goOn(bench, deletion)).toBe('more')
    bench.reload()
    while (goOn(bench, deletion) === 'more');
    expect(bench.list()).toEqual([])
  })

  test('looks through many groups in turns, and at each of several topics of one name', () => {
    const bench = new Bench()
    const other = 'ABCDEFGHIJKLMNOPQRSTUQ' as Uuid
    for (let i = 0; i < 6000; i++) bench.commit({ groupId: `g${i}`, topics: [topic('u', 1)] })
    bench.commit({ groupId: 'first', topics: [{ ...topic('t', 1), topicId }] })
    bench.commit({ groupId: 'second', topics: [{ ...topic('t', 1), topicId: other }] })
    const deletion = deletionOf('t', topicId, other)
    const written = bench.log.length
    expect(goOn(bench, deletion)).toBe('more')
    expect(bench.log).toHaveLength(written)
    while (goOn(bench, deletion) === 'more');
    expect(bench.list()).toHaveLength(6000)
  })
})
