import { expect, test } from 'vitest'
import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch } from '../../../src/base/index.ts'
import type { RecordSink } from '../../../src/controller/index.ts'
import type { ControllerRequestKind, ControllerRequests } from '../../../src/coordination/controller-channel.ts'
import { ActiveController } from '../../../src/coordination/raft/active-controller.ts'
import { emptyImage, type MetadataRecord, supportedFeatures } from '../../../src/metadata/index.ts'
import { anyConfig, settings } from '../controller/support.ts'
import { brokerId, brokerIds, registration, uuid } from '../metadata/support.ts'

const sessionTimeoutMs = 3000

/** A controller whose log stores everything at once, on node 1. */
function newController() {
  let nowMs = 0
  let uuids = 100
  const entries: (readonly MetadataRecord[])[] = []
  const sink: RecordSink = {
    nextIndex: () => entries.length + 1,
    append: (records) => {
      entries.push(records)
      return 'appended'
    },
  }
  const faults: unknown[] = []
  const controller = new ActiveController({
    sink,
    platform: {
      clock: { monotonic: () => nowMs, wallTime: () => nowMs } as never,
      random: { uuid: () => uuid(uuids++), int: () => 0 } as never,
    },
    settings: { ...settings, growingTopics: new Map([['orders', 3]]) },
    configRules: anyConfig,
    clusterId: 'a-cluster',
    localBrokerId: brokerId(1),
    sessionTimeoutMs,
    onFault: (error) => faults.push(error),
  })
  controller.activate(emptyImage)
  controller.loop.onStored(entries.length)
  const ask = async <Kind extends ControllerRequestKind>(kind: Kind, request: ControllerRequests[Kind]['request']) => {
    const answer = controller.ask(kind, request)
    controller.loop.onStored(entries.length)
    const answered = await answer
    if (!answered.ok) throw new Error(answered.reason)
    return answered.response
  }
  return {
    controller,
    faults,
    ask,
    passMs: (ms: number) => {
      nowMs += ms
    },
    partition: () => controller.loop.head!.topics.byName('orders')!.partitions[0]!,
  }
}

type World = ReturnType<typeof newController>

async function register({ ask }: World, id: number): Promise<{ brokerId: BrokerId; brokerEpoch: BrokerEpoch }> {
  const { endpoints, rack, logDirs } = registration(id)
  const run = { brokerId: brokerId(id), incarnationId: uuid(id), clusterId: 'a-cluster', endpoints, rack, logDirs }
  const result = await ask('registerBroker', { ...run, features: supportedFeatures, previousBrokerEpoch: null })
  if (!result.ok) throw new Error(result.message)
  return { brokerId: brokerId(id), brokerEpoch: result.brokerEpoch }
}

const live = { appliedIndex: 1000, wantFence: false, wantShutdown: false }

async function startThree() {
  const world = newController()
  const runs = []
  for (const id of [1, 2, 3]) {
    const run = await register(world, id)
    runs.push(run)
    await world.ask('heartbeat', { ...run, ...live })
  }
  const requests = [{ name: 'orders', partitionCount: 1, replicationFactor: 2, configs: new Map<string, string>() }]
  await world.ask('createTopics', { requests, validateOnly: false })
  return { ...world, runs }
}

test('an ISR change, an election, a reassignment and an assignment to directories are decided as asked', async () => {
  const { ask, partition, runs, controller } = await startThree()
  const { topicId } = controller.loop.head!.topics.byName('orders')!
  expect(partition()).toMatchObject({ leader: 1, isr: [1, 2] })
  const isr = [{ brokerId: brokerId(1), brokerEpoch: null }]
  const epochs = { leaderEpoch: 0 as LeaderEpoch, partitionEpoch: 0 as PartitionEpoch }
  const change = { topicId, partition: 0, ...epochs, isr, leaderRecoveryState: 'recovered' } as const
  expect(await ask('alterPartition', { ...runs[0]!, changes: [change] })).toMatchObject({ results: [{ ok: true }] })
  expect(partition().isr).toEqual([1])
  const orders = { topic: 'orders', partition: 0 }
  const elected = await ask('electLeaders', { electionType: 'preferred', partitions: [orders] })
  expect(elected).toMatchObject([{ reason: 'election-not-needed' }])
  const directory = registration(1).logDirs[0]
  const assignments = [{ topicId, partition: 0, directory }]
  expect(await ask('assignReplicasToDirs', { ...runs[0]!, assignments })).toEqual({ ok: true, results: [{ ok: true }] })
  const requests = [{ ...orders, replicas: brokerIds(1, 3) }]
  const moved = await ask('alterPartitionReassignments', { requests, allowReplicationFactorChange: true })
  expect(moved).toEqual([{ ok: true }])
  expect(partition()).toMatchObject({ replicas: [1, 3, 2], addingReplicas: [3], removingReplicas: [2] })
})

test('features, controllers and the registration of a broker are changed as asked', async () => {
  const { ask, controller } = await startThree()
  const updates = [{ feature: 'eligible.leader.replicas.version', level: 0, upgradeType: 'safe-downgrade' as const }]
  expect(await ask('updateFeatures', { updates, validateOnly: false })).toEqual({ ok: true })
  expect(controller.loop.head?.features.has('eligible.leader.replicas.version')).toBe(false)
  const own = { controllerId: brokerId(1), incarnationId: uuid(1), endpoints: [], features: supportedFeatures }
  expect(await ask('registerController', { ...own, clusterId: 'a-cluster' })).toEqual({ ok: true })
  expect(await ask('unregisterBroker', { brokerId: brokerId(3) })).toEqual({ ok: true })
  expect(controller.loop.head?.cluster.broker(brokerId(3))).toBeUndefined()
})

test('a broker that leaves may stop once the others have said that they know', async () => {
  const { ask, runs, partition } = await startThree()
  const [first, second, third] = runs
  const leaving = { ...first!, ...live, wantShutdown: true }
  expect(await ask('heartbeat', leaving)).toMatchObject({ mayStop: false, inControlledShutdown: true })
  expect(partition()).toMatchObject({ leader: 2, isr: [2] })
  expect(await ask('heartbeat', leaving)).toMatchObject({ mayStop: true, fenced: true })
  expect(await ask('heartbeat', { ...second!, ...live, appliedIndex: 1 })).toMatchObject({ fenced: false })
  const also = { ...third!, ...live, wantShutdown: true }
  await ask('heartbeat', also)
  expect(await ask('heartbeat', also)).toMatchObject({ mayStop: true })
})

test('a broker that was not heard from is fenced, and not because another run than the registered one is silent', async () => {
  const { ask, runs, controller, passMs, partition } = await startThree()
  passMs(sessionTimeoutMs - 1)
  await ask('heartbeat', { ...runs[1]!, ...live })
  const stale = { ...runs[2]!, brokerEpoch: 999 as BrokerEpoch, ...live }
  expect(await ask('heartbeat', stale)).toEqual({ ok: false, reason: 'stale-broker-epoch' })
  expect(controller.fenceSilentBrokers()).toEqual([])
  passMs(1)
  expect(controller.fenceSilentBrokers()).toEqual([3])
  expect(controller.loop.head?.cluster.broker(brokerId(3))?.fenced).toBe(true)
  expect(partition().isr).toEqual([1, 2])
})

test('of its own accord it balances leaders, elects where records may be lost, and grows internal topics', async () => {
  const { controller, partition, ask, faults } = await startThree()
  controller.growInternalTopics()
  expect(partition()).toMatchObject({ addingReplicas: [3] })
  const before = controller.loop.head
  controller.growInternalTopics()
  controller.balanceLeaders(10)
  controller.electUncleanLeaders()
  expect(controller.loop.head).toBe(before)
  await ask('heartbeat', { ...live, brokerId: brokerId(1), brokerEpoch: 0 as BrokerEpoch })
  expect(faults).toEqual([])
})

test('a broker whose process is gone is fenced at once, and not again for a minute when that was wrong', async () => {
  const { ask, runs, controller, passMs, partition } = await startThree()
  expect(controller.brokerGone(brokerId(2))).toBe(true)
  expect(partition()).toMatchObject({ leader: 1, isr: [1] })
  expect(controller.brokerGone(brokerId(2))).toBe(false)
  expect(await ask('heartbeat', { ...runs[1]!, ...live })).toMatchObject({ fenced: false })
  passMs(1000)
  expect(controller.brokerGone(brokerId(2))).toBe(false)
  expect([1, 9].map((id) => controller.brokerGone(brokerId(id)))).toEqual([false, false])
})

test('a stream that closed begins the silence that fences, also where it closed before this controller began', async () => {
  const { controller, passMs } = await startThree()
  passMs(2000)
  controller.brokerDisconnected(brokerId(2))
  passMs(1000)
  expect(controller.fenceSilentBrokers()).toEqual([3])
  const { head } = controller.loop
  controller.loop.deactivate()
  controller.activate(head!, [{ brokerId: brokerId(2), lastHeardMs: 2000, isConnected: false }])
  passMs(1999)
  expect(controller.fenceSilentBrokers()).toEqual([])
  passMs(1)
  expect(controller.fenceSilentBrokers()).toEqual([2])
})
