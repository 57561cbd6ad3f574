import { describe, expect, test } from 'vitest'
import type { Uuid } from '../../../src/base/index.ts'
import { parseConfig } from '../../../src/config/index.ts'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { ControlThread } from '../../../src/node/control-thread.ts'
import { startNode } from '../../../src/node/index.ts'
import { createRealPlatform, type Thread, type Threads } from '../../../src/platform/index.ts'
import { portsOfNodes, votersOf } from '../../support/cluster-processes.ts'
import { until } from '../../support/condition.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { newTopic } from '../coordination/support.ts'
import {
  configOf,
  localId,
  newUuid,
  OpenPlane,
  type PlaneKind,
  recorder,
  timeoutMs,
  watchedThreads,
} from './control-planes.ts'

const incarnationId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid

/** In a thread that a test can stop behind the back of the plane. */
function inThreads(threads: Threads): PlaneKind {
  return {
    name: 'in a thread',
    create: (config, logger) => new ControlThread({ config, threads, logger, incarnationId: newUuid() }),
  }
}

/** A thread that is none: the test says what comes from it. */
function fakeThreads(): Threads & {
  readonly posted: unknown[]
  say(message: unknown): void
  end(error?: Error): void
} {
  const posted: unknown[] = []
  let onMessage: ((message: unknown) => void) | undefined
  let onEnd: ((error: Error | undefined) => void) | undefined
  const thread: Thread = {
    post: (message) => {
      posted.push(message)
    },
    onMessage: (listener) => {
      onMessage = listener
    },
    onEnd: (listener) => {
      onEnd = listener
    },
    stop: async () => onEnd?.(undefined),
  }
  return { posted, start: () => thread, say: (message) => onMessage?.(message), end: (error) => onEnd?.(error) }
}

describe('a thread that ends by itself', () => {
  test('is a fault of the quorum, told once, and ends all that is asked of it', async () => {
    await using folder = await temporaryFolder()
    const threads = watchedThreads()
    await using open = await OpenPlane.open(inThreads(threads), folder.path)
    await open.quorum.start()
    await open.active()
    const asked = Promise.all([open.createTopic('a'), open.createTopic('b')]).catch((error: unknown) => error)
    await threads.started[0]?.stop()
    expect(await asked).toMatchObject({ reason: 'stopped' })
    expect(open.faults).toHaveLength(1)
    expect(open.faults[0]).toBeInstanceOf(CoordinationError)
    expect(open.quorum.state).toMatchObject({ leaderId: null, isActive: false })
    await expect(open.createTopic('c')).rejects.toBe(open.faults[0])
    await expect(open.plane.unreached()).rejects.toBe(open.faults[0])
    open.plane.giveUp()
    await Promise.all([open.quorum.stop(), open.quorum.stop(), open.plane.stop()])
    expect(open.faults).toHaveLength(1)
  })

  test('tells what nobody in it caught as the cause, and keeps a node from starting', async () => {
    const threads = fakeThreads()
    const plane = inThreads(threads).create(configOf({}), recorder([]))
    const identity = plane.identify().catch((error: unknown) => error)
    const bug = new Error('a bug in the thread')
    threads.end(bug)
    expect(await identity).toMatchObject({ reason: 'stopped', cause: bug })
    await expect(plane.open({} as never)).rejects.toMatchObject({ cause: bug })
    await plane.stop()
  })

  test('ends the node, which says why and can be stopped', async () => {
    await using folder = await temporaryFolder()
    const [ports] = await portsOfNodes(1)
    const threads = watchedThreads()
    const lines: Parameters<typeof recorder>[0] = []
    const overrides = {
      'log.dirs': folder.path,
      listeners: `PLAINTEXT://127.0.0.1:${ports!.client},CONTROLLER://127.0.0.1:${ports!.controller}`,
      'controller.listener.names': 'CONTROLLER',
      'controller.quorum.bootstrap.servers': `127.0.0.1:${ports!.controller}`,
    }
    const node = await startNode({
      config: parseConfig({ overrides }),
      platform: createRealPlatform(),
      logger: recorder(lines),
      threads,
      openRaftStorage: () => Promise.reject(new Error('it is the thread that opens it')),
    })
    try {
      expect(node.controllerId).toBe(node.brokerId)
      const [created] = await node.admin.createTopics([newTopic('orders')], { timeoutMs })
      expect(created).toMatchObject({ ok: true })
      await threads.started[0]?.stop()
      await expect(node.ended).rejects.toMatchObject({ code: 'COORDINATION_FAILED', reason: 'stopped' })
      expect(lines.map(({ message }) => message)).toContain('node has to end')
    } finally {
      await node.stop()
    }
  })

  test('answers nothing that is still asked of it when it is stopped', async () => {
    const threads = fakeThreads()
    const plane = inThreads(threads).create(configOf({}), recorder([]))
    const unreached = plane.unreached().catch((error: unknown) => error)
    const stopping = plane.stop()
    threads.say({ type: 'answer', id: 2, result: undefined })
    await stopping
    expect(await unreached).toMatchObject({ reason: 'stopped' })
  })

  test('is no fault once the node has stopped it', async () => {
    await using folder = await temporaryFolder()
    const open = await OpenPlane.open(inThreads(watchedThreads()), folder.path)
    await open.quorum.start()
    await open[Symbol.asyncDispose]()
    expect(open.faults).toEqual([])
    await expect(open.createTopic('late')).rejects.toMatchObject({ reason: 'stopped' })
  })
})

describe('what comes from a thread', () => {
  test('is logged with its fields and errors, at its level', () => {
    const threads = fakeThreads()
    const lines: Parameters<typeof recorder>[0] = []
    void new ControlThread({ config: configOf({}), threads, logger: recorder(lines), incarnationId })
    const error = {
      name: 'RpcError',
      message: 'Gone',
      stack: undefined,
      fields: { reason: 'unavailable' },
      cause: undefined,
    }
    threads.say({
      type: 'log',
      level: 'warn',
      fields: { part: 'peers', nodeId: 2 },
      errors: { error },
      message: 'lost',
    })
    expect(lines).toMatchObject([
      {
        level: 'warn',
        fields: { part: 'peers', nodeId: 2, error: { message: 'Gone', reason: 'unavailable' } },
        message: 'lost',
      },
    ])
  })

  test('changes nothing any more after a fault', async () => {
    const threads = fakeThreads()
    const plane = inThreads(threads).create(configOf({}), recorder([]))
    const opening = plane.open({} as never)
    threads.say({ type: 'answer', id: 1, result: undefined })
    const quorum = await opening
    const faults: Error[] = []
    let changes = 0
    quorum.listen({
      onStep: () => undefined,
      onChange: () => {
        changes++
      },
      onFault: (error) => faults.push(error),
    })
    threads.say({ type: 'state', state: { leaderId: localId, term: 3, isActive: true, waitsForRoom: false } })
    expect(quorum.state).toEqual({ leaderId: localId, term: 3, isActive: true, waitsForRoom: false })
    const error = { name: 'RaftStorageError', message: 'Damaged', stack: undefined, fields: {}, cause: undefined }
    threads.say({ type: 'fault', error })
    threads.say({ type: 'state', state: { leaderId: localId, term: 4, isActive: true, waitsForRoom: false } })
    threads.say({ type: 'fault', error })
    expect(quorum.state).toEqual({ leaderId: null, term: 3, isActive: false, waitsForRoom: false })
    expect(faults.map(({ message }) => message)).toEqual(['Damaged'])
    expect(changes).toBe(1)
  })

  test('is a fault where it makes no sense', async () => {
    const threads = fakeThreads()
    const plane = inThreads(threads).create(configOf({}), recorder([]))
    const opening = plane.open({} as never)
    threads.say({ type: 'answer', id: 1, result: undefined })
    const faults: Error[] = []
    const quorum = await opening
    quorum.listen({ onStep: () => undefined, onChange: () => undefined, onFault: (error) => faults.push(error) })
    const data = Uint8Array.of(250, 1, 2)
    threads.say({
      type: 'committed',
      entries: { firstIndex: 1, terms: Float64Array.of(1), lengths: Int32Array.of(3), data },
    })
    expect(faults).toHaveLength(1)
    expect(faults[0]?.name).toBe('MetadataFormatError')
  })
})

describe('three threads that are a quorum', () => {
  test('keep leader and term, and commit, while the event loop beside them stands still for longer than an election takes', async () => {
    await using folder = await temporaryFolder()
    const ports = await portsOfNodes(3)
    const opening = ports.map(({ client, controller }, i) =>
      OpenPlane.open(inThreads(watchedThreads()), `${folder.path}/${i + 1}`, {
        'node.id': i + 1,
        listeners: `PLAINTEXT://127.0.0.1:${client},CONTROLLER://127.0.0.1:${controller}`,
        'controller.listener.names': 'CONTROLLER',
        'controller.quorum.voters': votersOf(ports),
        'controller.quorum.fetch.timeout.ms': 2000,
        'controller.quorum.election.timeout.ms': 2000,
      }),
    )
    const planes = await Promise.all(opening)
    try {
      await Promise.all(planes.map(({ quorum }) => quorum.start()))
      const leader = () => planes.find(({ quorum }) => quorum.state.isActive)
      const isWhole = () =>
        planes.every(({ quorum }) => quorum.state.leaderId !== null && quorum.image.clusterId !== '')
      await until(() => leader() !== undefined && isWhole(), 'the quorum has a leader')
      const before = planes.map(({ quorum }) => quorum.state)
      const { leaderId } = before[0]!

      const asked = leader()!.setMaxConnections(7)
      standStill(8000)
      expect(await asked).toMatchObject({ ok: true })
      const described = await planes[0]!.quorum.ask(leaderId!, 'describeQuorum', {}, timeoutMs)
      expect(described).toMatchObject({ ok: true, response: { leaderId, term: before[0]!.term } })
      expect(planes.map(({ quorum }) => quorum.state)).toEqual(before)
      for (const { quorum } of planes) {
        await until(() => quorum.image.configs.of('broker', '').get('max.connections') === '7', 'each has the change')
      }
      for (const { faults } of planes) expect(faults).toEqual([])
    } finally {
      await Promise.all(planes.map((plane) => plane[Symbol.asyncDispose]()))
    }
  })
})

/** Nothing else happens on this event loop meanwhile. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
