import { expect, test } from 'vitest'
import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../../../src/base/index.ts'
import { StorageError } from '../../../src/log/index.ts'
import { pause } from '../../../src/platform/index.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'
import {
  apis,
  decodeMessage,
  ErrorCode,
  encodeResponse,
  type FetchResponse,
  type MessageInput,
  type MessageType,
  Reader,
  readRequestHeader,
} from '../../../src/protocol/index.ts'
import { Partition } from '../../../src/replication/partition.ts'
import { ReplicaFetcher } from '../../../src/replication/replica-fetcher.ts'
import { ReplicationQuota } from '../../../src/replication/replication-quota.ts'
import { Metrics, silentLogger } from '../../../src/telemetry/index.ts'
import { answeringServer } from '../../support/answering-server.ts'
import { FakeLog } from '../../support/fake-log.ts'
import { settledReplicas } from '../../support/partition-image.ts'

const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid
const leaderEpoch = 3 as LeaderEpoch
const [leaderId, localId] = [2 as BrokerId, 1 as BrokerId]

type FetchRequest = MessageType<typeof apis.Fetch.request>
type PartitionAnswer = MessageInput<typeof FetchResponse>['responses'][number]['partitions'][number]

interface Started {
  readonly fetcher: ReplicaFetcher
  readonly partition: Partition
  readonly partitionOf: (log: FakeLog, index?: number) => Partition
}

interface SetUp {
  readonly log?: FakeLog
  readonly begin?: (started: Started) => Promise<void>
  /** What the leader answers for each partition; all of them when absent. Undefined: it waits for records, and none come. */
  readonly answerOf?: (request: FetchRequest, nowMs: number) => readonly Partial<PartitionAnswer>[] | undefined
}

const plainAnswer: PartitionAnswer = {
  partitionIndex: 0,
  errorCode: 0,
  abortedTransactions: null,
  highWatermark: 0,
  logStartOffset: 0,
  records: null,
}
const nothingDiverges = { divergingEpoch: { epoch: -1, endOffset: -1 } }

/** A fetcher of one partition with 10 records, whose leader answers every fetch in the same way unless `answerOf` says otherwise. */
async function setUp(
  answer: Pick<PartitionAnswer, 'divergingEpoch'>,
  { log = new FakeLog(), begin, answerOf = () => [{}] }: SetUp = {},
) {
  const simulation = createSimulation({ seed: 1 })
  const leader = simulation.host('leader').platform
  let fetches = 0
  const server = answeringServer(leader, {
    handle: async (frame) => {
      fetches++
      const reader = new Reader(frame)
      const { correlationId } = readRequestHeader(reader)
      const request = decodeMessage(apis.Fetch.request, 17, reader)
      const answers = answerOf(request, leader.clock.monotonic())
      if (answers === undefined) await pause(leader.timers, request.maxWaitMs)
      const partitions = (answers ?? []).map((each) => ({ ...plainAnswer, ...answer, ...each }))
      const body = { errorCode: 0, sessionId: 0, responses: [{ topicId, partitions }] }
      return { chunks: encodeResponse(apis.Fetch.response, 17, correlationId, body) }
    },
  })
  await simulation.run(server.listen({ name: 'PLAINTEXT', host: 'leader', port: 9092 }))
  const { platform } = simulation.host('follower')
  log.logEndOffset = 10
  const partitionOf = (itsLog: FakeLog, index = 0) => {
    const partition = new Partition({
      topic: 'orders',
      partition: index,
      localId,
      platform,
      log: itsLog,
      wasEmptied: false,
      minInSyncReplicas: () => 1,
      mayJoinIsr: () => true,
      onIsrWanted: () => undefined,
      onFault: () => undefined,
    })
    partition.applyImage({
      partition: index,
      replicas: [leaderId, localId],
      isr: [leaderId],
      leader: leaderId,
      leaderEpoch,
      partitionEpoch: 0 as PartitionEpoch,
      ...settledReplicas,
    })
    return partition
  }
  const partition = partitionOf(log)
  const fetcher = new ReplicaFetcher({
    platform,
    logger: silentLogger,
    localId,
    leaderId,
    brokerEpoch: () => 5 as BrokerEpoch,
    endpoint: () => ({ host: 'leader', port: 9092 }),
    quota: new ReplicationQuota(platform.clock, { count: 11, sizeMs: 1000 }, new Metrics().counter('throttled')),
    settings: {
      maxWaitMs: 500,
      minBytes: 1,
      maxPartitionBytes: 1000,
      maxBytes: 1000,
      backoffMs: 1000,
      requestTimeoutMs: 30_000,
    },
  })
  fetcher.follow(topicId, partition, leaderEpoch)
  await begin?.({ fetcher, partition, partitionOf })
  await simulation.runFor(1000)
  fetcher.stop()
  return { fetches: () => fetches, log }
}

test('a replica that its leader tells to cut what it has not waits before it asks again', async () => {
  const { fetches, log } = await setUp({ divergingEpoch: { epoch: 0, endOffset: 50 } })
  expect(log.logEndOffset).toBe(10)
  expect(fetches()).toBeGreaterThan(2)
  expect(fetches()).toBeLessThan(10)
})

test('a replica is cut where its leader says', async () => {
  const { fetches, log } = await setUp({ divergingEpoch: { epoch: 0, endOffset: 7 } })
  expect(log.logEndOffset).toBe(7)
  expect(fetches()).toBeLessThan(10)
})

test('a replica whose log was opened anew is followed, also when the log before it fails only then', async () => {
  const log = new FakeLog()
  const sync = Promise.withResolvers<void>()
  log.flush = () => sync.promise
  const { fetches } = await setUp(nothingDiverges, {
    log,
    begin: async ({ fetcher, partition, partitionOf }) => {
      fetcher.unfollow(partition)
      fetcher.follow(topicId, partitionOf(new FakeLog()), leaderEpoch)
      sync.reject(new StorageError('offline', '/data'))
      await sync.promise.catch(() => undefined)
    },
  })
  expect(fetches()).toBeGreaterThan(0)
})

test('a replica whose leader has not heard of its leadership yet is asked for again soon, though others have nothing to fetch', async () => {
  const refusedMs: number[] = []
  let servedMs: number | undefined
  await setUp(nothingDiverges, {
    begin: async ({ fetcher, partitionOf }) => fetcher.follow(topicId, partitionOf(new FakeLog(), 1), leaderEpoch),
    answerOf: ({ topics }, nowMs) => {
      const asked = topics.flatMap(({ partitions }) => partitions.map(({ partition }) => partition))
      if (!asked.includes(1)) return undefined
      if (refusedMs.length === 3) {
        servedMs ??= nowMs
        return undefined
      }
      refusedMs.push(nowMs)
      return [{}, { partitionIndex: 1, errorCode: ErrorCode.UNKNOWN_LEADER_EPOCH }]
    },
  })
  expect(refusedMs).toHaveLength(3)
  expect(servedMs! - refusedMs[0]!).toBeLessThan(150)
})

test('a replica that its leader goes on refusing is asked for ever less often', async () => {
  const { fetches } = await setUp(nothingDiverges, {
    answerOf: () => [{ errorCode: ErrorCode.NOT_LEADER_OR_FOLLOWER }],
  })
  expect(fetches()).toBeGreaterThan(4)
  expect(fetches()).toBeLessThan(12)
})
