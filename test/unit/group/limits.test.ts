import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Broker, startBroker } from '../../../src/index.ts'
import type { KafkaClient } from '../../../src/network/index.ts'
import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import { until } from '../../support/condition.ts'
import { connect } from '../../support/kafka-connection.ts'

const rebalanceDelayMs = 200

let broker: Broker
let client: KafkaClient
beforeAll(async () => {
  broker = await startBroker({
    storage: 'memory',
    topics: ['t'],
    config: {
      'group.min.session.timeout.ms': 7000,
      'group.max.session.timeout.ms': 8000,
      'group.initial.rebalance.delay.ms': rebalanceDelayMs,
      'group.max.size': 1,
      'offset.metadata.max.bytes': 5,
      'offsets.retention.check.interval.ms': 20,
    },
  })
  client = await connect(broker.bootstrapServers)
  await client.request(apis.FindCoordinator, 4, { keyType: 0, coordinatorKeys: ['g'] })
})
afterAll(async () => {
  client.close()
  await broker.stop()
})

const join = (groupId: string, sessionTimeoutMs = 7000) =>
  client.request(apis.JoinGroup, 3, {
    groupId,
    sessionTimeoutMs,
    rebalanceTimeoutMs: 7000,
    memberId: '',
    protocolType: 'consumer',
    protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
  })

const commit = async (groupId: string, committedMetadata: string, retentionTimeMs = -1) => {
  const { topics } = await client.request(apis.OffsetCommit, 3, {
    groupId,
    generationIdOrMemberEpoch: -1,
    memberId: '',
    retentionTimeMs,
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata }] }],
  })
  return topics[0]?.partitions[0]?.errorCode
}

test('the limits of session timeouts are those of the settings, both ends included', async () => {
  const answers = await Promise.all(
    [6999, 7000, 8000, 8001].map((timeoutMs) => join(`session-${timeoutMs}`, timeoutMs)),
  )
  expect(answers.map(({ errorCode }) => errorCode)).toEqual([
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.NONE,
    ErrorCode.NONE,
    ErrorCode.INVALID_SESSION_TIMEOUT,
  ])
})

test('the first member waits for the initial delay, and one more than the largest group is refused', async () => {
  const startMs = performance.now()
  const first = await join('full')
  expect(first.errorCode).toBe(ErrorCode.NONE)
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(rebalanceDelayMs - 1)
  expect((await join('full')).errorCode).toBe(ErrorCode.GROUP_MAX_SIZE_REACHED)
})

test('metadata of offsets is as long as the settings allow, and offsets are looked through as often', async () => {
  expect(await commit('texts', '12345')).toBe(ErrorCode.NONE)
  expect(await commit('texts', '123456')).toBe(ErrorCode.OFFSET_METADATA_TOO_LARGE)
  expect(await commit('short-lived', '', 1)).toBe(ErrorCode.NONE)
  const groups = async () => (await client.request(apis.ListGroups, 0, {})).groups.map(({ groupId }) => groupId)
  await until(async () => !(await groups()).includes('short-lived'), 'what has expired is forgotten')
  expect(await groups()).toContain('texts')
})

test('a smallest session timeout above the largest is refused at the start', async () => {
  const config = { 'group.min.session.timeout.ms': 9000, 'group.max.session.timeout.ms': 8000 }
  await expect(startBroker({ storage: 'memory', config })).rejects.toThrow(/group\.min\.session\.timeout\.ms/)
})
