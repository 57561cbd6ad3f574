import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { emptyImage, type MetadataImage } from '../../../src/metadata/index.ts'
import { RaftStorageError } from '../../../src/raft/index.ts'
import { until } from '../../support/condition.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { describeImage } from '../metadata/support.ts'
import { configOf, localId, OpenPlane, planeKinds, recorder, timeoutMs } from './control-planes.ts'

// What holds for a control plane wherever it runs.

const metadataLog = '__cluster_metadata-0'

describe.each(planeKinds)('a control plane $name', (kind) => {
  test('leads a quorum of its own, and gives every step once, in order, before what rests on it', async () => {
    await using folder = await temporaryFolder()
    await using open = await OpenPlane.open(kind, folder.path)
    const { quorum, steps } = open
    expect(quorum.state).toEqual({ leaderId: null, term: 0, isActive: false, waitsForRoom: false })
    await quorum.start()
    await open.active()
    expect(quorum.state).toMatchObject({ leaderId: 1, isActive: true })
    expect(quorum.state.term).toBeGreaterThan(0)

    const answers = await Promise.all(['a', 'b', 'c'].map((name) => open.createTopic(name)))
    for (const answer of answers) {
      expect(answer).toMatchObject({ ok: true, response: [{ ok: false, reason: 'invalid-replication-factor' }] })
      expect(quorum.image.index).toBeGreaterThanOrEqual(answer.ok ? answer.index : 0)
    }
    const registered = await open.registerBroker()
    expect(registered).toMatchObject({ ok: true, response: { ok: true } })
    await until(() => quorum.image.index >= (registered.ok ? registered.index : 0), 'the image has the broker')
    expect(quorum.image.cluster.broker(localId)).toMatchObject({ fenced: true })
    let previous: MetadataImage = emptyImage
    for (const { delta, image } of steps) {
      expect(delta.base).toBe(previous)
      expect(image.index).toBeGreaterThan(previous.index)
      previous = image
    }
    expect(quorum.image).toBe(previous)
    expect(open.changes).toBeGreaterThan(0)
    expect(open.faults).toEqual([])
  })

  test.each([
    ['without a snapshot', {}],
    ['with snapshots', { 'metadata.log.max.record.bytes.between.snapshots': 1 }],
  ])('has the same image after a restart, %s', async (_how, overrides) => {
    await using folder = await temporaryFolder()
    let before: unknown
    {
      await using open = await OpenPlane.open(kind, folder.path, overrides)
      await open.quorum.start()
      await open.active()
      for (let run = 0; run < 5; run++) {
        await open.registerBroker()
        const answer = await open.setMaxConnections(run + 1)
        expect(answer).toMatchObject({ ok: true })
        await until(() => open.quorum.image.index >= (answer.ok ? answer.index : 0), 'the image has the answer')
      }
      if ('metadata.log.max.record.bytes.between.snapshots' in overrides) {
        await until(() => open.lines.some(({ message }) => message === 'raft snapshot taken'), 'a snapshot is taken')
      }
      const { index: _index, term: _term, ...rest } = describeImage(open.quorum.image)
      before = rest
    }
    await using again = await OpenPlane.open(kind, folder.path, overrides)
    await again.quorum.start()
    await again.active()
    const { index: _index, term: _term, ...rest } = describeImage(again.quorum.image)
    expect(rest).toEqual(before)
    expect(again.steps[0]?.delta.isSnapshot).toBe('metadata.log.max.record.bytes.between.snapshots' in overrides)
  })

  test('refuses requests until it leads, and when it does no more', async () => {
    await using folder = await temporaryFolder()
    await using open = await OpenPlane.open(kind, folder.path)
    expect(await open.createTopic('early')).toEqual({ ok: false, reason: 'not-controller', mayBeStored: false })
    await open.quorum.start()
    await open.active()
    await open.quorum.stop()
    expect(await open.createTopic('late')).toEqual({ ok: false, reason: 'not-controller', mayBeStored: false })
    expect(open.quorum.state.isActive).toBe(false)
    expect(open.faults).toEqual([])
  })

  test('is stopped once, however often it is asked to, and another takes its folder', async () => {
    await using folder = await temporaryFolder()
    const first = await OpenPlane.open(kind, folder.path)
    await first.quorum.start()
    await Promise.all([first.quorum.stop(), first.quorum.stop()])
    await first.quorum.stop()
    await first.plane.stop()
    await first.plane.stop()
    await using second = await OpenPlane.open(kind, folder.path)
    await second.quorum.start()
    expect(second.faults).toEqual([])
  })

  test('does not start on a damaged log, and says so with the error of its storage', async () => {
    await using folder = await temporaryFolder()
    {
      await using open = await OpenPlane.open(kind, folder.path)
      await open.quorum.start()
      await open.active()
    }
    const witness = join(folder.path, metadataLog, 'quorum-state')
    const bytes = await readFile(witness)
    bytes[bytes.length - 1]! ^= 1
    await writeFile(witness, bytes)
    const error = await OpenPlane.open(kind, folder.path).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(RaftStorageError)
    expect(error).toMatchObject({ name: 'RaftStorageError', code: 'RAFT_STORAGE_FAILED' })
    expect((error as Error).message).toContain('quorum-state')
  })

  test('has a fault when its storage fails, once, and decides nothing after it', async () => {
    await using folder = await temporaryFolder()
    await using open = await OpenPlane.open(kind, folder.path)
    await open.quorum.start()
    await open.active()
    const witness = join(folder.path, metadataLog, 'quorum-state')
    await rm(witness)
    await mkdir(join(witness, 'in the way'), { recursive: true }) // no file takes the place of a folder
    await until(async () => {
      await open.createTopic('t')
      await open.registerBroker()
      return open.faults.length > 0
    }, 'the failed write is a fault')
    expect(open.faults[0]).toBeInstanceOf(Error)
    expect(open.quorum.state).toMatchObject({ leaderId: null, isActive: false })
    expect(await open.createTopic('after')).toEqual({ ok: false, reason: 'not-controller', mayBeStored: false })
    expect(open.faults).toHaveLength(1)
  })

  test('has a fault when its log is of another cluster', async () => {
    await using folder = await temporaryFolder()
    {
      await using open = await OpenPlane.open(kind, folder.path)
      await open.quorum.start()
      await open.active()
    }
    await using other = await OpenPlane.open(kind, folder.path, { clusterId: 'another' })
    const error = await other.quorum.start().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(CoordinationError)
    expect(error).toMatchObject({ reason: 'wrong-cluster' })
    expect(other.faults).toHaveLength(1)
    expect(other.faults[0]).toMatchObject({ reason: 'wrong-cluster' })
  })

  test('has a fault when its listener throws, and gives it nothing more', async () => {
    await using folder = await temporaryFolder()
    await using open = await OpenPlane.open(kind, folder.path)
    await open.quorum.start()
    await open.active()
    const bug = new Error('a bug')
    const stepsBefore = open.steps.length
    open.onStep = () => {
      throw bug
    }
    await open.registerBroker()
    await until(() => open.faults.length > 0, 'the fault is told')
    expect(open.faults).toEqual([bug])
    await open.registerBroker()
    expect(open.steps.length).toBe(stepsBefore + 1)
    expect(open.faults).toHaveLength(1)
  })

  test('rejects a request whose decision has a bug, and goes on', async () => {
    await using folder = await temporaryFolder()
    await using open = await OpenPlane.open(kind, folder.path)
    await open.quorum.start()
    await open.active()
    const broken = { requests: [null as never], validateOnly: false }
    await expect(open.quorum.ask(localId, 'createTopics', broken, timeoutMs)).rejects.toThrow('Cannot destructure')
    expect(await open.registerBroker()).toMatchObject({ ok: true })
    expect(open.faults).toEqual([])
  })

  test('says what it does through the logger that it was given', async () => {
    await using folder = await temporaryFolder()
    await using open = await OpenPlane.open(kind, folder.path)
    await open.quorum.start()
    await open.active()
    expect(open.lines).toContainEqual({
      level: 'info',
      fields: { part: 'coordination', controllerEpoch: open.quorum.state.term },
      message: 'became the controller',
    })
  })

  test('that waits for voters of a new cluster says for whom, and ends when it is given up', async () => {
    await using folder = await temporaryFolder()
    const opening = kind.create(
      configOf({
        'log.dirs': folder.path,
        'node.id': 1,
        listeners: 'PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0',
        'controller.listener.names': 'CONTROLLER',
        'controller.quorum.voters': '1@127.0.0.1:1,2@127.0.0.1:2',
      }),
      recorder([]),
    )
    const identity = opening.identify().catch((reason: unknown) => reason)
    expect(await opening.unreached()).toEqual([])
    opening.giveUp()
    expect(await identity).toMatchObject({ reason: 'stopped' })
    await opening.stop()
  })
})
