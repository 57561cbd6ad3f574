import { expect, test } from 'vitest'
import type { LeaderEpoch, Uuid } from '../../../src/base/index.ts'
import { GroupCoordinator } from '../../../src/group/index.ts'
import { createRealPlatform } from '../../../src/platform/index.ts'
import { Metrics } from '../../../src/telemetry/index.ts'
import { until } from '../../support/condition.ts'
import { MemoryStore, recordingLogger } from '../coordinator-runtime/support.ts'
import { defaultConfig, good } from './bench.ts'

const groupCount = 5000
const offsetsPerGroup = 20
const partitionCount = 10
const sweepIntervalMs = 20
/**
 * What no turn of the event loop may take of a core: less than any of the work takes as a whole. Work is cut into turns of
 * about 4 ms; garbage collection, which falls into some, takes up to 40 ms on a busy machine.
 */
const longestTurnMs = 60

/** Milliseconds of a core that this thread has had: other programs on the machine don't count. */
function coreMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Looks at each turn of the event loop while `work` goes on: milliseconds of a core for all of it and for the longest. */
async function watched<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly totalMs: number; readonly turnMs: number }> {
  const turns: number[] = []
  let lastMs = coreMs()
  let isOver = false
  const look = () => {
    const nowMs = coreMs()
    turns.push(nowMs - lastMs)
    lastMs = nowMs
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  const startMs = coreMs()
  const result = await work()
  const totalMs = coreMs() - startMs
  isOver = true
  await new Promise((resolve) => setImmediate(resolve))
  return { result, totalMs, turnMs: Math.max(...turns) }
}

const groupIds = Array.from({ length: groupCount }, (_, i) => `group-${i}`)
const topicId = 'abcdefghijklmnopqrstug' as Uuid

async function fill(coordinator: GroupCoordinator, groupId: string): Promise<void> {
  const { memberId, generationId } = good(
    await coordinator.joinGroup({
      groupId,
      memberId: '',
      groupInstanceId: null,
      clientId: 'client',
      clientHost: '/127.0.0.1',
      sessionTimeoutMs: 300_000,
      rebalanceTimeoutMs: 300_000,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: Buffer.alloc(40) }],
      requireKnownMemberId: false,
      supportsSkippingAssignment: false,
    }),
  )
  const member = { groupId, memberId, generationId, groupInstanceId: null }
  const assignments = [{ memberId, assignment: Buffer.alloc(60) }]
  good(await coordinator.syncGroup({ ...member, protocolType: null, protocolName: null, assignments }))
  const partitions = Array.from({ length: offsetsPerGroup }, (_, partition) => ({
    partition,
    offset: 1000 + partition,
    leaderEpoch: 0,
    metadata: null,
  }))
  const topics = [{ topic: 'orders', topicId, partitions }]
  good(await coordinator.offsetCommit({ ...member, retentionTimeMs: -1, reportsUnknownGroup: true, topics }))
}

test('thousands of groups are loaded, listed, described and looked through without holding up the event loop', async () => {
  const store = new MemoryStore()
  const real = createRealPlatform()
  // After each look at all offsets of a partition the next one is set for later.
  let passes = 0
  const platform = {
    ...real,
    timers: {
      defer: real.timers.defer,
      set: (...[delayMs, ...rest]: Parameters<typeof real.timers.set>) => {
        if (delayMs === sweepIntervalMs) passes++
        return real.timers.set(delayMs, ...rest)
      },
    },
  }
  const lead = (coordinator: GroupCoordinator, leaderEpoch: number) => {
    for (let partition = 0; partition < partitionCount; partition++) {
      coordinator.becomeLeader(partition, store.lead(partition, leaderEpoch) as LeaderEpoch)
    }
  }
  const coordinatorOf = (config: Partial<typeof defaultConfig> = {}) =>
    new GroupCoordinator({
      config: { ...defaultConfig, ...config },
      store,
      platform,
      logger: recordingLogger(),
      metrics: new Metrics(),
      partitionCount: () => partitionCount,
      writeTimeoutMs: 60_000,
    })
  const first = coordinatorOf()
  lead(first, 1)
  const all = { states: [], types: [] }
  while (!(await first.listGroups(all)).ok) await new Promise((resolve) => setImmediate(resolve))
  for (const groupId of groupIds) await fill(first, groupId)
  expect(good(await first.listGroups(all)).groups).toHaveLength(groupCount)
  first.stop()

  const coordinator = coordinatorOf({ offsetsRetentionCheckIntervalMs: sweepIntervalMs })
  let refusedMeanwhile = 0
  const load = await watched(async () => {
    lead(coordinator, 2)
    for (;;) {
      const listed = await coordinator.listGroups(all)
      if (listed.ok) return listed.groups
      expect(listed.reason).toBe('coordinator-load-in-progress')
      refusedMeanwhile++
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  })
  expect(refusedMeanwhile).toBeGreaterThan(0)
  expect(load.result.every(({ state }) => state === 'Stable')).toBe(true)
  const list = await watched(() => coordinator.listGroups(all))
  const describe = await watched(() => coordinator.describeGroups(groupIds))
  expect(describe.result.every((group) => group.ok && group.members.length === 1)).toBe(true)
  const fetch = await watched(() => coordinator.offsetFetch(groupIds.map((groupId) => ({ groupId, topics: null }))))
  expect(fetch.result.every((group) => good(group).topics[0]?.partitions.length === offsetsPerGroup)).toBe(true)
  const heartbeats = await watched(async () => {
    for (const group of describe.result) {
      const { groupId, members } = good(group)
      const { memberId } = members[0]!
      good(await coordinator.heartbeat({ groupId, memberId, groupInstanceId: null, generationId: 1 }))
    }
  })
  // Some passes over all offsets, all of which stay.
  const enough = passes + 5 * partitionCount
  const sweeps = await watched(() => until(() => passes >= enough, 'all offsets were looked at several times'))
  const forget = await watched(() => coordinator.onTopicsDeleted([{ topic: 'others', topicId }]))
  coordinator.stop()

  const figures = { load, list, describe, fetch, heartbeats, sweeps, forget }
  const turns = Object.entries(figures).map(([name, { turnMs, totalMs }]) => [name, turnMs, totalMs] as const)
  for (const [name, turnMs, totalMs] of turns) {
    if (name !== 'heartbeats') expect(turnMs, `the longest of ${totalMs} ms of ${name}`).toBeLessThan(longestTurnMs)
  }
  expect(heartbeats.totalMs / groupCount, 'milliseconds for a heartbeat').toBeLessThan(0.1)
})
