import { describe, expect, test } from 'vitest'
import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../../../src/base/index.ts'
import type { TopicConfig } from '../../../src/config/index.ts'
import type { TopicImage } from '../../../src/metadata/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import { type FetchAnswer, ReplicaManager, ReplicationQuotas } from '../../../src/replication/index.ts'
import { Metrics, silentLogger } from '../../../src/telemetry/index.ts'
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
