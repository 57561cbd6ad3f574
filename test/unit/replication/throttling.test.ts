import { describe, expect, test } from 'vitest'
import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../../../src/base/index.ts'
import type { TopicConfig } from '../../../src/config/index.ts'
import type { TopicImage } from '../../../src/metadata/index.ts'
import { type Platform, pause } from '../../../src/platform/index.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'
import { apis, decodeMessage, encodeResponse, Reader, readRequestHeader } from '../../../src/protocol/index.ts'
import { type FetchAnswer, ReplicaManager, ReplicationQuotas } from '../../../src/replication/index.ts'
import { Partition } from '../../../src/replication/partition.ts'
import { ReplicaFetcher } from '../../../src/replication/replica-fetcher.ts'
import { Metrics, silentLogger } from '../../../src/telemetry/index.ts'
import { answeringServer } from '../../support/answering-server.ts'
import { turn } from '../../support/condition.ts'
import { FakeLog } from '../../support/fake-log.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { deltaOn, imageOfTopics, settledReplicas } from '../../support/partition-image.ts'

const [self, follower] = [1 as BrokerId, 2 as BrokerId]
const stepMs = 10

/** A leader with a follower, of a topic that is throttled and of one that is not. */
async function leader(isr: readonly BrokerId[], bytesPerSecond: number) {
  const time = new ManualTime()
  const names = ['slow', 'fast']
  const topics = names.map(
    (name, i): TopicImage => ({
      name,
      topicId: `AAAAAAAAAAAAAAAAAAAAA${'QgwA'[i]}` as Uuid,
      partitions: [
        {
          partition: 0,
          replicas: [self, follower],
          isr,
          leader: self,
          leaderEpoch: 0 as LeaderEpoch,
          partitionEpoch: 0 as PartitionEpoch,
          ...settledReplicas,
        },
      ],
    }),
  )
  const image = imageOfTopics(topics)
  const logs = new Map(names.map((name) => [name, new FakeLog(name)]))
  const metrics = new Metrics()
  const quotas = new ReplicationQuotas(time, { count: 11, sizeMs: 1000 }, metrics)
  quotas.leader.bytesPerSecond = bytesPerSecond
  const fetchSettings = { maxWaitMs: 500, minBytes: 1, maxPartitionBytes: 1000, maxBytes: 1000 }
  const manager = new ReplicaManager({
    platform: { clock: time, timers: time } as unknown as Platform,
    logger: silentLogger,
    localId: self,
    brokerEpoch: () => 5 as BrokerEpoch,
    askForIsrs: async () => [],
    maxLagMs: 1e9,
    fetching: {
      listenerName: 'PLAINTEXT',
      settings: { ...fetchSettings, backoffMs: 1000, requestTimeoutMs: 30_000 },
    },
    quotas,
    topicConfig: (topic) =>
      ({
        minInSyncReplicas: 1,
        cleanupPolicy: { delete: true, compact: false },
        leaderThrottledReplicas: topic === 'slow' ? ['0:1'] : [],
        followerThrottledReplicas: [],
      }) as unknown as TopicConfig,
    logs: {
      get: (topic) => logs.get(topic),
      getOrCreate: async ({ topic }) => logs.get(topic)!,
      delete: async () => {},
      updateTopicConfigs: () => {},
      partitions: () => logs.values(),
    },
  })
  const changed = new Map(topics.map((topic) => [topic.topicId, { topic, partitions: new Set([0]) }]))
  manager.applyDelta(deltaOn(image, { changedTopics: changed }), image)
  await manager.whenOpened()
  const append = async (topic: string, bytes: number) => {
    const records = Buffer.alloc(bytes)
    const timeoutMs = 1000
    await manager.append({ topic, partition: 0, records, requiredAcks: 0, timeoutMs, origin: 'client' })
  }
  const offsets = { slow: 0, fast: 0 }
  /** One fetch of the follower, of both; answers when the virtual time for it is over. */
  const fetch = async (): Promise<void> => {
    let answer: FetchAnswer | undefined
    const asked = names.map((topic) => ({
      topic,
      partition: 0,
      fetchOffset: offsets[topic as 'slow' | 'fast'],
      maxBytes: 1000,
      currentLeaderEpoch: -1 as const,
      logStartOffset: 0,
    }))
    void manager
      .fetch({
        maxWaitMs: 500,
        minBytes: 1,
        maxBytes: 1500,
        isolation: 'read-uncommitted',
        follower: { replica: follower, brokerEpoch: -1 },
        partitions: asked,
      })
      .then((settled) => {
        answer = settled
      })
    for (;;) {
      await turn()
      if (answer !== undefined) break
      time.advance(stepMs)
    }
    offsets.slow += answer.partitions[0]!.sizeBytes
    offsets.fast += answer.partitions[1]!.sizeBytes
    answer.release()
  }
  return { time, logs, append, fetch, offsets, metrics }
}

describe('a leader', () => {
  test('serves a throttled replica at its rate, and the others as if there were none', async () => {
    const { time, append, fetch, offsets, metrics } = await leader([self], 10_000)
    for (let i = 0; i < 200; i++) await append('slow', 500)
    const startMs = time.monotonic()
    let appendedAtMs = 0
    let fastBytes = 0
    while (offsets.slow < 100_000) {
      expect(time.monotonic() - startMs).toBeLessThan(20_000)
      const before = offsets.fast
      if (before === fastBytes) {
        await append('fast', 100)
        fastBytes += 100
        appendedAtMs = time.monotonic()
      }
      await fetch()
      expect(offsets.fast, 'what is not throttled comes with the next fetch').toBe(fastBytes)
      expect(time.monotonic()).toBe(appendedAtMs)
      // The follower stores what it got.
      time.advance(stepMs)
    }
    const tookMs = time.monotonic() - startMs
    expect(tookMs / 10_000).toBeGreaterThan(0.85)
    expect(tookMs / 10_000).toBeLessThan(1.1)
    expect(metrics.snapshot()['ThrottledBytes,type=LeaderReplication']).toBe(100_000)
  })

  test('lets a fetch of what is throttled alone wait, until the rate allows it, and not longer', async () => {
    const { time, append, fetch, offsets } = await leader([self], 10_000)
    for (let i = 0; i < 200; i++) await append('slow', 500)
    const startMs = time.monotonic()
    while (offsets.slow < 100_000) await fetch()
    const tookMs = time.monotonic() - startMs
    expect(tookMs / 10_000).toBeGreaterThan(0.85)
    expect(tookMs / 10_000).toBeLessThan(1.1)
  })

  test('never throttles a member of the ISR', async () => {
    const { time, append, fetch, offsets } = await leader([self, follower], 10)
    for (let i = 0; i < 20; i++) await append('slow', 500)
    const startMs = time.monotonic()
    while (offsets.slow < 10_000) await fetch()
    expect(time.monotonic()).toBe(startMs)
  })
})

/** A fetcher of `slow`, which is throttled, and `fast`, which is not, from a leader with as many bytes as `ends` says. */
async function followerOf(ends: { slow: number; fast: number }, bytesPerSecond: number) {
  const simulation = createSimulation({ seed: 1 })
  const leader = simulation.host('leader').platform
  const { platform } = simulation.host('follower')
  const names = ['slow', 'fast'] as const
  const topicIds = names.map((_, i) => `AAAAAAAAAAAAAAAAAAAAA${'Qg'[i]}` as Uuid)
  const server = answeringServer(leader, {
    handle: async (frame) => {
      const reader = new Reader(Buffer.from(frame))
      const { correlationId, apiVersion } = readRequestHeader(reader)
      const { topics, maxWaitMs } = decodeMessage(apis.Fetch.request, apiVersion, reader)
      const untilMs = leader.clock.monotonic() + maxWaitMs
      const found = () =>
        topics.map(({ topicId, partitions }) => {
          const end = ends[names[topicIds.indexOf(topicId)]!]
          const { fetchOffset, partitionMaxBytes } = partitions[0]!
          const records = Buffer.alloc(Math.min(end - fetchOffset, partitionMaxBytes))
          return { topicId, end, records }
        })
      while (found().every(({ records }) => records.length === 0) && leader.clock.monotonic() < untilMs)
        await pause(leader.timers, 2)
      const responses = found().map(({ topicId, end, records }) => ({
        topicId,
        partitions: [
          {
            partitionIndex: 0,
            errorCode: 0,
            abortedTransactions: null,
            highWatermark: end,
            logStartOffset: 0,
            records,
          },
        ],
      }))
      const body = { errorCode: 0, sessionId: 0, responses }
      return { chunks: encodeResponse(apis.Fetch.response, apiVersion, correlationId, body) }
    },
  })
  await simulation.run(server.listen({ name: 'PLAINTEXT', host: 'leader', port: 9092 }))
  const metrics = new Metrics()
  const quota = new ReplicationQuotas(platform.clock, { count: 11, sizeMs: 1000 }, metrics).follower
  quota.bytesPerSecond = bytesPerSecond
  const fetcher = new ReplicaFetcher({
    platform,
    logger: silentLogger,
    localId: follower,
    leaderId: self,
    brokerEpoch: () => 5 as BrokerEpoch,
    endpoint: () => ({ host: 'leader', port: 9092 }),
    quota,
    settings: {
      maxWaitMs: 500,
      minBytes: 1,
      maxPartitionBytes: 1000,
      maxBytes: 2000,
      backoffMs: 1000,
      requestTimeoutMs: 30_000,
    },
  })
  const [slow, fast] = names.map((topic, i) => {
    const partition = new Partition({
      topic,
      partition: 0,
      localId: follower,
      platform,
      log: new FakeLog(topic),
      wasEmptied: false,
      minInSyncReplicas: () => 1,
      mayJoinIsr: () => true,
      onIsrWanted: () => undefined,
      onFault: () => undefined,
    })
    partition.isThrottledAsFollower = topic === 'slow'
    const leaderEpoch = 3 as LeaderEpoch
    partition.applyImage({
      partition: 0,
      replicas: [self, follower],
      isr: [self],
      leader: self,
      leaderEpoch,
      partitionEpoch: 0 as PartitionEpoch,
      ...settledReplicas,
    })
    fetcher.follow(topicIds[i]!, partition, leaderEpoch)
    return partition
  }) as [Partition, Partition]
  /** Milliseconds until the replica has all that the leader has of it. */
  const untilEqual = async (name: 'slow' | 'fast'): Promise<number> => {
    const startMs = platform.clock.monotonic()
    const { log } = name === 'slow' ? slow : fast
    await simulation.runUntil(() => log.logEndOffset === ends[name])
    return platform.clock.monotonic() - startMs
  }
  return { simulation, slow, fast, quota, metrics, fetcher, untilEqual }
}

describe('a follower', () => {
  test('fetches what is throttled at its rate, and goes on with the others of the same leader', async () => {
    const ends = { slow: 100_000, fast: 0 }
    const { simulation, slow, metrics, untilEqual, fetcher } = await followerOf(ends, 10_000)
    let tookMs = 0
    while (slow.log.logEndOffset < ends.slow) {
      const before = slow.log.logEndOffset
      expect(before).toBeLessThanOrEqual(tookMs * 10 + 11_000)
      ends.fast += 100
      const fastMs = await untilEqual('fast')
      expect(fastMs, 'what is not throttled waits for no quota').toBeLessThan(30)
      await simulation.runFor(70)
      tookMs += fastMs + 70
      expect(tookMs).toBeLessThan(12_000)
    }
    expect(tookMs).toBeGreaterThan(8500)
    expect(metrics.snapshot()['ThrottledBytes,type=FollowerReplication']).toBe(100_000)
    fetcher.stop()
  })

  test('waits where all of a leader is throttled, and goes on as soon as the rate allows', async () => {
    const ends = { slow: 50_000, fast: 0 }
    const { fast, fetcher, untilEqual } = await followerOf(ends, 10_000)
    fetcher.unfollow(fast)
    const tookMs = await untilEqual('slow')
    expect(tookMs).toBeGreaterThan(4000)
    expect(tookMs).toBeLessThan(5500)
    fetcher.stop()
  })

  test.each([true, false])('waits no longer when the throttle is taken away meanwhile (others: %s)', async (others) => {
    const ends = { slow: 20_000, fast: 0 }
    const { simulation, slow, fast, fetcher, untilEqual } = await followerOf(ends, 10)
    if (!others) fetcher.unfollow(fast)
    await simulation.runFor(20_000)
    expect(slow.log.logEndOffset).toBe(1000)
    slow.isThrottledAsFollower = false
    expect(await untilEqual('slow')).toBeLessThan(1500)
    fetcher.stop()
  })

  test.each([true, false])('goes by another rate as soon as there is one (others: %s)', async (others) => {
    const ends = { slow: 100_000, fast: 0 }
    const { simulation, slow, fast, quota, fetcher, untilEqual } = await followerOf(ends, 10)
    if (!others) fetcher.unfollow(fast)
    await simulation.runFor(20_000)
    expect(slow.log.logEndOffset).toBe(1000)
    quota.bytesPerSecond = 1000
    await simulation.runFor(10_000)
    expect(slow.log.logEndOffset).toBeGreaterThanOrEqual(9000)
    expect(slow.log.logEndOffset).toBeLessThanOrEqual(13_000)
    quota.bytesPerSecond = 0
    await simulation.runFor(2000)
    const stoodAt = slow.log.logEndOffset
    await simulation.runFor(60_000)
    expect(slow.log.logEndOffset).toBe(stoodAt)
    quota.bytesPerSecond = Number.POSITIVE_INFINITY
    expect(await untilEqual('slow')).toBeLessThan(2000)
    fetcher.stop()
  })

  test('is throttled from the moment on at which it is said, and until it has caught up', async () => {
    const ends = { slow: 0, fast: 0 }
    const { simulation, slow, quota, fetcher, untilEqual } = await followerOf(ends, 10)
    slow.isThrottledAsFollower = false
    ends.slow = 5000
    expect(await untilEqual('slow')).toBeLessThan(100)
    slow.isThrottledAsFollower = true
    await simulation.runFor(1000)
    for (let i = 0; i < 5; i++) {
      ends.slow += 500
      expect(await untilEqual('slow'), 'it never falls behind again for the quota').toBeLessThan(30)
    }
    expect(quota.isExceeded).toBe(true)
    ends.slow += 5000
    await simulation.runFor(5000)
    expect(slow.log.logEndOffset, 'one fetch, and it is behind').toBe(ends.slow - 4000)
    fetcher.stop()
  })
})
