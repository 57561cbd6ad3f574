import { describe, expect, test } from 'vitest'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { encodeRecords, type MetadataImage, metadataVersion } from '../../../src/metadata/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { describeImage } from '../metadata/support.ts'
import { localId, newRun, newTopic, nodeOn, TestDisk, type TestNode } from './support.ts'

const admin = { timeoutMs: 10_000 }

interface World {
  readonly simulation: Simulation
  readonly host: SimulatedHost
  readonly disk: TestDisk
}

function newWorld(seed = 1): World {
  const simulation = createSimulation({ seed })
  const host = simulation.host('a')
  return { simulation, host, disk: new TestDisk(() => host.platform) }
}

type NodeOptions = Parameters<typeof nodeOn>[2]

async function startNode({ simulation, host, disk }: World, options?: NodeOptions): Promise<TestNode> {
  const node = await simulation.run(nodeOn(disk, host.platform, options))
  await simulation.run(node.coordination.start(newRun(host.platform)))
  return node
}

async function crashAndRestart(world: World, options?: NodeOptions): Promise<TestNode> {
  world.disk.crash()
  world.host.crash()
  world.host.restart()
  return await startNode(world, options)
}

function partitionsOf(image: MetadataImage, name: string) {
  return image.topics.byName(name)?.partitions.map(({ leader, leaderEpoch, isr }) => ({ leader, leaderEpoch, isr }))
}

describe('Raft coordination of one node', () => {
  test('a topic is in the image, and has been told to listeners, when its creation is answered', async () => {
    const world = newWorld()
    const { coordination } = await world.simulation.run(nodeOn(world.disk, world.host.platform))
    const told: string[] = []
    coordination.onMetadata((delta, image) => {
      expect(coordination.image).toBe(image)
      for (const { topic } of delta.changedTopics.values()) told.push(topic.name)
    })
    await world.simulation.run(coordination.start(newRun(world.host.platform)))
    const creation = coordination.admin.createTopics([newTopic('orders', 3)], admin)
    const [result] = await world.simulation.run(creation)
    expect(told).toEqual(['orders'])
    expect(result).toMatchObject({ ok: true, name: 'orders', partitionCount: 3, replicationFactor: 1 })
    expect(partitionsOf(coordination.image, 'orders')).toEqual(Array(3).fill({ leader: 1, leaderEpoch: 0, isr: [1] }))
    expect(coordination.image.clusterId).toBe('test-cluster')
    expect(coordination.image.features.get('metadata.version')).toBe(metadataVersion.latest)
    expect(coordination.state).toEqual({
      mode: 'raft',
      controllerId: localId,
      controllerEpoch: 1,
      appliedIndex: coordination.image.index,
    })
  })

  test('start resolves with the broker unfenced, and says its epoch', async () => {
    const world = newWorld()
    const { coordination } = await world.simulation.run(nodeOn(world.disk, world.host.platform))
    const run = newRun(world.host.platform)
    const { brokerEpoch } = await world.simulation.run(coordination.start(run))
    const broker = coordination.image.cluster.broker(localId)
    expect(broker).toMatchObject({ brokerEpoch, fenced: false, incarnationId: run.incarnationId })
  })

  test('deltas follow on each other, from the empty image on', async () => {
    const world = newWorld()
    const { coordination } = await world.simulation.run(nodeOn(world.disk, world.host.platform))
    let previous = coordination.image
    expect(previous.index).toBe(0)
    coordination.onMetadata((delta, image) => {
      expect(delta.base).toBe(previous)
      expect(image.index).toBeGreaterThan(previous.index)
      previous = image
    })
    await world.simulation.run(coordination.start(newRun(world.host.platform)))
    const names = ['a', 'b', 'c']
    await world.simulation.run(
      Promise.all(names.map((name) => coordination.admin.createTopics([newTopic(name)], admin))),
    )
    expect(coordination.image).toBe(previous)
    expect(previous.topics.size).toBe(3)
  })

  test.each([
    ['without a snapshot', {}],
    ['with snapshots', { maxEntriesBetweenSnapshots: 2 }],
    ['with snapshots by bytes', { maxBytesBetweenSnapshots: 1 }],
  ])('after a crash topics keep their ids, and leader epochs have moved, %s', async (_how, options) => {
    const world = newWorld()
    const first = await startNode(world, options)
    for (const name of ['orders', 'a.b', 'gone']) {
      await world.simulation.run(first.coordination.admin.createTopics([newTopic(name, 2)], admin))
    }
    await world.simulation.run(first.coordination.admin.deleteTopics([{ name: 'gone' }], admin))
    const changes = new Map([['retention.ms', '1']])
    const alter = { resourceType: 'topic', resourceName: 'orders', changes } as const
    expect(await world.simulation.run(first.coordination.admin.alterConfigs([alter], admin))).toEqual([{ ok: true }])
    await world.simulation.runFor(100)
    const before = first.coordination.image
    expect(first.storage.log.snapshot.index > 0).toBe(Object.keys(options).length > 0)

    const { coordination } = await crashAndRestart(world, options)
    const { image } = coordination
    expect([...image.topics.all()].map((topic) => topic.name).sort()).toEqual(['a.b', 'orders'])
    for (const topic of image.topics.all()) {
      expect(topic.topicId).toBe(before.topics.byName(topic.name)?.topicId)
      expect(partitionsOf(image, topic.name)).toEqual(Array(2).fill({ leader: 1, leaderEpoch: 2, isr: [1] }))
    }
    expect(image.configs.of('topic', 'orders')).toEqual(changes)
    expect(image.cluster.broker(localId)?.brokerEpoch).toBeGreaterThan(
      before.cluster.broker(localId)?.brokerEpoch as number,
    )
    const again = await world.simulation.run(coordination.admin.createTopics([newTopic('a_b')], admin))
    expect(again).toMatchObject([{ ok: false, reason: 'invalid-topic' }])
  })

  test('the image after a restart is the image before it, but for the new run, whether or not it came from a snapshot', async () => {
    const images: unknown[] = []
    for (const options of [{}, { maxEntriesBetweenSnapshots: 3 }]) {
      const world = newWorld(7)
      const { coordination } = await startNode(world, options)
      for (let i = 0; i < 10; i++) {
        await world.simulation.run(coordination.admin.createTopics([newTopic(`t${i}`, 3)], admin))
      }
      await world.simulation.run(coordination.allocateProducerIds())
      await world.simulation.runFor(100)
      const node = await crashAndRestart(world, options)
      const { brokers, topics, ...rest } = describeImage(node.coordination.image)
      expect(topics).toHaveLength(10)
      expect(brokers).toHaveLength(1)
      const { brokers: _before, topics: topicsBefore, ...restBefore } = describeImage(coordination.image)
      expect(rest).toEqual({ ...restBefore, index: rest.index, term: rest.term })
      const identityOf = ({ name, topicId, partitions }: (typeof topics)[number]) => [
        name,
        topicId,
        partitions.map(({ replicas, isr }) => [replicas, isr]),
      ]
      expect(topics.map(identityOf)).toEqual(topicsBefore.map(identityOf))
      images.push(partitionsOf(node.coordination.image, 't3'))
    }
    expect(images[0]).toEqual(images[1])
  })

  test('the first image that listeners see after a restart has no leadership of the run before', async () => {
    const world = newWorld()
    const { coordination: first } = await startNode(world)
    await world.simulation.run(first.admin.createTopics([newTopic('orders')], admin))
    world.disk.crash()
    world.host.crash()
    world.host.restart()
    const { coordination } = await world.simulation.run(nodeOn(world.disk, world.host.platform))
    const run = newRun(world.host.platform)
    const leaders: unknown[] = []
    coordination.onMetadata((delta, image) => {
      expect(image.cluster.broker(localId)?.incarnationId).toBe(run.incarnationId)
      leaders.push([delta.isSnapshot, partitionsOf(image, 'orders')])
    })
    await world.simulation.run(coordination.start(run))
    expect(leaders).toEqual([
      [true, [{ leader: -1, leaderEpoch: 1, isr: [1] }]],
      [false, [{ leader: 1, leaderEpoch: 2, isr: [1] }]],
    ])
  })

  test('a restart never waits for the session of the run before', async () => {
    const world = newWorld()
    await startNode(world)
    const crashedMs = world.simulation.nowMs
    await crashAndRestart(world)
    expect(world.simulation.nowMs - crashedMs).toBeLessThan(200)
  })

  test('a controlled stop is clean, leaves nothing to run, and the next start is as after a crash', async () => {
    const world = newWorld()
    const { coordination } = await startNode(world)
    await world.simulation.run(coordination.admin.createTopics([newTopic('orders')], admin))
    await world.simulation.run(coordination.handOver())
    await world.simulation.run(coordination.stop())
    expect(coordination.image.cluster.broker(localId)?.inControlledShutdown).toBe(true)
    const late = coordination.admin.createTopics([newTopic('late')], admin)
    await expect(world.simulation.run(late)).rejects.toMatchObject({ reason: 'stopped' })
    const { eventCount } = world.simulation
    await world.simulation.runFor(60_000)
    expect(world.simulation.eventCount - eventCount).toBeLessThan(5)
    const next = await crashAndRestart(world)
    expect(partitionsOf(next.coordination.image, 'orders')).toEqual([{ leader: 1, leaderEpoch: 2, isr: [1] }])
    expect(next.coordination.image.cluster.broker(localId)).toMatchObject({ inControlledShutdown: false })
  })

  test('requests that are under way when the node stops are told so', async () => {
    const world = newWorld()
    const { coordination } = await startNode(world)
    const creation = coordination.admin.createTopics([newTopic('orders')], admin)
    const outcome = creation.then(
      () => 'created',
      (error: CoordinationError) => error.reason,
    )
    await world.simulation.run(coordination.stop())
    expect(['stopped', 'outcome-unknown']).toContain(await world.simulation.run(outcome))
  })

  test('a disk that fails is a fault: listeners hear of it once, and every request is refused', async () => {
    const world = newWorld()
    const { coordination } = await startNode(world)
    const faults: Error[] = []
    coordination.onFault((error) => faults.push(error))
    world.disk.failNext = true
    const creation = coordination.admin.createTopics([newTopic('orders')], admin)
    await expect(world.simulation.run(creation)).rejects.toBeInstanceOf(CoordinationError)
    await expect(world.simulation.run(coordination.allocateProducerIds())).rejects.toMatchObject({ reason: 'stopped' })
    expect(faults).toHaveLength(1)
    expect(coordination.image.topics.size).toBe(0)
  })

  test('a listener that throws is a fault', async () => {
    const world = newWorld()
    const { coordination } = await startNode(world)
    const faults: Error[] = []
    coordination.onFault((error) => faults.push(error))
    const bug = new Error('a bug')
    coordination.onMetadata(() => {
      throw bug
    })
    const creation = coordination.admin.createTopics([newTopic('orders')], admin)
    await expect(world.simulation.run(creation)).rejects.toMatchObject({ code: 'COORDINATION_FAILED' })
    expect(faults).toEqual([bug])
  })

  test('the log of another cluster is refused, before any of it is published', async () => {
    const world = newWorld()
    const { coordination: first } = await startNode(world)
    await world.simulation.run(first.stop())
    const other = await world.simulation.run(nodeOn(world.disk, world.host.platform, { clusterId: 'another' }))
    const started = other.coordination.start(newRun(world.host.platform))
    await expect(world.simulation.run(started)).rejects.toMatchObject({
      reason: 'wrong-cluster',
      message: expect.stringMatching(/test-cluster.*another/),
    })
    expect(other.coordination.image.index).toBe(0)
  })

  test('the same incarnation that starts again keeps its broker epoch and its leaderships', async () => {
    const world = newWorld()
    const run = newRun(world.host.platform)
    const first = await world.simulation.run(nodeOn(world.disk, world.host.platform))
    const { brokerEpoch } = await world.simulation.run(first.coordination.start(run))
    await world.simulation.run(first.coordination.admin.createTopics([newTopic('orders')], admin))
    await world.simulation.run(first.coordination.stop())
    const second = await world.simulation.run(nodeOn(world.disk, world.host.platform))
    expect(await world.simulation.run(second.coordination.start(run))).toEqual({ brokerEpoch })
    expect(partitionsOf(second.coordination.image, 'orders')).toMatchObject([{ leader: 1, leaderEpoch: 0 }])
  })

  test('a request that takes too long is given up, and the node goes on', async () => {
    const world = newWorld()
    const { coordination } = await startNode(world)
    const hurried = coordination.admin.createTopics([newTopic('orders')], { timeoutMs: 0.001 })
    await expect(world.simulation.run(hurried)).rejects.toMatchObject({ reason: 'timed-out' })
    const [again] = await world.simulation.run(coordination.admin.createTopics([newTopic('orders')], admin))
    expect(again).toMatchObject({ ok: false, reason: 'topic-exists' })
  })

  test.each([0, -1])('a request with %i ms is refused, and nothing is done', async (timeoutMs) => {
    const world = newWorld()
    const { coordination } = await startNode(world)
    const hurried = coordination.admin.createTopics([newTopic('orders')], { timeoutMs })
    await expect(world.simulation.run(hurried)).rejects.toMatchObject({ reason: 'timed-out' })
    const [again] = await world.simulation.run(coordination.admin.createTopics([newTopic('orders')], admin))
    expect(again).toMatchObject({ ok: true })
  })

  test('to validate only changes nothing', async () => {
    const world = newWorld()
    const { coordination } = await startNode(world)
    const options = { ...admin, validateOnly: true }
    const [result] = await world.simulation.run(coordination.admin.createTopics([newTopic('orders')], options))
    expect(result).toMatchObject({ ok: true, name: 'orders' })
    expect(coordination.image.topics.size).toBe(0)
  })

  test('a snapshot is taken when entries are older than the interval, and none when there are no new ones', async () => {
    const world = newWorld()
    const { coordination, storage } = await startNode(world, { maxSnapshotIntervalMs: 5000 })
    await world.simulation.runFor(4000)
    expect(storage.log.snapshot.index).toBe(0)
    await world.simulation.runFor(2000)
    expect(storage.log.snapshot.index).toBe(coordination.image.index)
    const { batchCount } = world.disk
    await world.simulation.runFor(60_000)
    expect(world.disk.batchCount).toBe(batchCount)
  })

  test.each<[string, () => Uint8Array]>([
    ['an unknown record', () => Buffer.of(1, 0x91, 0x92, 0x63, 0x00)],
    ['another format', () => Buffer.of(9)],
    [
      'a newer metadata.version',
      () => encodeRecords([{ type: 'FeatureLevel', name: 'metadata.version', level: metadataVersion.latest + 1 }]),
    ],
    [
      'a record that contradicts',
      () => encodeRecords([{ type: 'RemoveTopic', topicId: newRun(newWorld().host.platform).incarnationId }]),
    ],
  ])('a log with %s stops the node, and it does not start again', async (_what, payload) => {
    const world = newWorld()
    const { coordination, raft } = await startNode(world)
    const faults: Error[] = []
    coordination.onFault((error) => faults.push(error))
    const { image } = coordination
    raft.proposeNow(payload())
    await world.simulation.runUntil(() => faults.length > 0)
    expect(coordination.image).toBe(image)
    await expect(crashAndRestart(world)).rejects.toMatchObject({ message: faults[0]?.message })
  })

  test('an idle node writes nothing', async () => {
    const world = newWorld()
    await startNode(world)
    const { batchCount } = world.disk
    await world.simulation.runFor(60_000)
    expect(world.disk.batchCount).toBe(batchCount)
  })
})

describe('a broker beside the controller that says nothing any more', () => {
  const isFenced = ({ coordination }: TestNode) => coordination.image.cluster.broker(localId)?.fenced

  test('is fenced when its session ends, where it has an event loop of its own, and is back when it speaks again', async () => {
    const world = newWorld()
    const node = await startNode(world, { isBrokerApart: true, heartbeatIntervalMs: 60_000 })
    expect(isFenced(node)).toBe(false)
    await world.simulation.runFor(8_000)
    expect(isFenced(node)).toBe(false)
    await world.simulation.runFor(4_000)
    expect(isFenced(node)).toBe(true)
    await world.simulation.runUntil(() => isFenced(node) === false)
  })

  test('is left alone where both hang together', async () => {
    const world = newWorld()
    const node = await startNode(world, { heartbeatIntervalMs: 60_000 })
    await world.simulation.runFor(50_000)
    expect(isFenced(node)).toBe(false)
  })
})

describe('producer ids', () => {
  test('come in blocks that never overlap, over crashes too', async () => {
    const world = newWorld()
    const blocks: number[] = []
    let node = await startNode(world)
    for (let run = 0; run < 3; run++) {
      const { allocateProducerIds } = node.coordination
      const asked = [1, 2, 3].map(() => allocateProducerIds.call(node.coordination))
      for (const { firstProducerId, count } of await world.simulation.run(Promise.all(asked))) {
        expect(count).toBe(1000)
        blocks.push(firstProducerId)
      }
      node = await crashAndRestart(world)
    }
    expect(blocks).toEqual([...Array(9).keys()].map((i) => i * 1000))
  })

  test('are not to be had before the start', async () => {
    const world = newWorld()
    const { coordination } = await world.simulation.run(nodeOn(world.disk, world.host.platform))
    await expect(world.simulation.run(coordination.allocateProducerIds())).rejects.toMatchObject({
      reason: 'not-registered',
    })
  })
})

describe('crashes at any moment', () => {
  const seeds = [...Array(40).keys()]
  test.each(seeds)('what was acknowledged is there, epochs only grow and ids never repeat: seed %i', async (seed) => {
    const world = newWorld(seed)
    const options = { maxEntriesBetweenSnapshots: 5 }
    const draw = world.simulation.host('dice').platform.random
    const topicIds = new Map<string, string>()
    const producerIds = new Set<number>()
    const epochs = new Map<string, number>()
    let names = 0
    for (let round = 0; round < 6; round++) {
      const { coordination } = round === 0 ? await startNode(world, options) : await crashAndRestart(world, options)
      for (const [name, topicId] of topicIds) expect(coordination.image.topics.byName(name)?.topicId).toBe(topicId)
      for (const { topicId, partitions } of coordination.image.topics.all()) {
        for (const { leaderEpoch, leader } of partitions) {
          expect(leader).toBe(localId)
          expect(leaderEpoch).toBeGreaterThan(epochs.get(topicId) ?? -1)
          epochs.set(topicId, leaderEpoch)
        }
      }
      for (let i = 0; i < 12; i++) {
        const name = `topic-${names++}`
        void coordination.admin.createTopics([newTopic(name)], admin).then(
          ([result]) => {
            if (result?.ok) topicIds.set(name, result.topicId)
          },
          () => undefined,
        )
        void coordination.allocateProducerIds().then(
          ({ firstProducerId }) => {
            expect(producerIds.has(firstProducerId)).toBe(false)
            producerIds.add(firstProducerId)
          },
          () => undefined,
        )
        await world.simulation.runFor(draw.int(6))
      }
    }
    expect(topicIds.size).toBeGreaterThan(10)
  })
})
