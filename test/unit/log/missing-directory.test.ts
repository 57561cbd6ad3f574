import { beforeEach, describe, expect, test } from 'vitest'
import { type Uuid, zeroUuid } from '../../../src/base/index.ts'
import type { LogManager, LogSpec } from '../../../src/log/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { appended, batchOf, openLogs, readAll, topicConfig, topicId } from './support.ts'

const [a, b, c] = ['/data/a', '/data/b', '/data/c'] as const
const newId = 'BBBBBBBBBBBBBBBBBBBBBQ' as Uuid

/** Three partitions were made, in `a`, `b` and `a`, and the first two written to. Then one of the directories can't be opened. */
describe('a partition of which there is no log in the directories that could be opened', () => {
  let simulation: Simulation
  let host: SimulatedHost
  let logs: LogManager

  const open = async (missing: readonly string[] = [], dirs: readonly string[] = [a, b]) => {
    for (const path of missing) {
      host.disk.failNext({ operation: 'read', path: new RegExp(`^${path}/meta.properties`), code: 'EIO' })
    }
    logs = await simulation.run(openLogs(host.platform, { keys: { 'log.dirs': dirs.join() } }))
  }
  const get = (partition: number, fields: Partial<LogSpec> = {}) =>
    simulation.run(logs.getOrCreate({ topic: 'orders', topicId, partition, config: topicConfig(), ...fields }))
  const homeOf = (partition: number) =>
    logs
      .directories()
      .filter(({ partitions }) => partitions.some((log) => log.partition === partition))
      .map(({ path }) => path)
  const idOf = (path: string) => logs.directories().find((each) => each.path === path)!.directoryId!
  const restart = async (missing?: readonly string[], dirs?: readonly string[]) => {
    await simulation.run(logs.close())
    await open(missing, dirs)
  }

  beforeEach(async () => {
    simulation = createSimulation({ seed: 7 })
    host = simulation.host('a')
    await open()
    for (const partition of [0, 1, 2]) {
      const log = await get(partition)
      if (partition === 2) continue
      appended(log, batchOf(3, `orders-${partition}`))
      await simulation.run(log.flush())
    }
    expect([0, 1, 2].map(homeOf)).toEqual([[a], [b], [a]])
  })

  test('is offline, told with the directory and what to do, and has all its records when that is back', async () => {
    const before = await simulation.run(readAll(logs.get('orders', 1)!))
    await restart([b])
    await expect(get(1)).rejects.toThrow(
      'Partition orders-1 may be in a log directory that cannot be opened, /data/b: it is offline until the node starts ' +
        'with that directory, or starts empty when that is taken out of log.dirs',
    )
    expect(logs.get('orders', 1)).toBeUndefined()
    expect(await simulation.run(readAll(await get(0)))).toHaveLength(1)
    await restart()
    expect(await simulation.run(readAll(await get(1)))).toEqual(before)
  })

  test('is told with all directories that are missing', async () => {
    await restart([b, c], [a, b, c])
    await expect(get(1)).rejects.toThrow(
      'Partition orders-1 may be in one of the log directories that cannot be opened, /data/b, /data/c: it is offline until ' +
        'the node starts with those directories, or starts empty when those are taken out of log.dirs',
    )
  })

  test('is offline also if it was never written to: nobody knows', async () => {
    await restart([b])
    await expect(get(2)).rejects.toThrow('orders-2')
    await expect(get(2, { directoryId: zeroUuid })).rejects.toThrow('orders-2')
    await restart()
    expect((await get(2)).logEndOffset).toBe(0)
  })

  test('is made where the metadata says that it is, in a directory that works', async () => {
    const directoryId = idOf(a)
    for (const partition of [8, 9]) await get(partition) // `a` is not where the fewest are
    await restart([b])
    expect((await get(2, { directoryId })).logEndOffset).toBe(0)
    expect(homeOf(2)).toEqual([a])
    await restart()
    await get(2, { directoryId: idOf(b) })
    expect(homeOf(2)).toEqual([b])
  })

  test('is offline where the metadata says that it is in the missing one', async () => {
    const directoryId = idOf(b)
    await restart([b])
    await expect(get(2, { directoryId })).rejects.toThrow('orders-2')
  })

  test('is offline where it moved into the missing one, of which the metadata was not told', async () => {
    const directoryId = idOf(a)
    const before = await simulation.run(readAll(logs.get('orders', 0)!))
    expect(await simulation.run(logs.move('orders', 0, b))).toBe('moving')
    await simulation.runUntil(() => homeOf(0).join() === b)
    await simulation.runFor(1000)
    await restart([b])
    await expect(get(0, { directoryId })).rejects.toThrow('orders-0')
    await restart()
    expect(await simulation.run(readAll(await get(0)))).toEqual(before)
    await simulation.run(logs.delete('orders', 0))
    await restart([b])
    expect((await get(0, { directoryId })).logEndOffset).toBe(0)
  })

  test('is made if it is new', async () => {
    await restart([b])
    const log = await get(3, { isNew: true })
    appended(log, batchOf(3, 'new'))
    await simulation.run(log.flush())
    await restart()
    expect((await get(3)).logEndOffset).toBe(3)
    expect(homeOf(3)).toEqual([a])
  })

  test('leaves the log of an older topic of its name alone until it can be made', async () => {
    await restart([b])
    await expect(get(0, { topicId: newId })).rejects.toThrow('orders-0')
    expect(logs.get('orders', 0)?.topicId).toBe(topicId)
    expect((await get(0, { topicId: newId, isNew: true })).logEndOffset).toBe(0)
  })

  test('starts empty when the missing directory is taken out of log.dirs', async () => {
    await restart([b])
    await restart([], [a])
    expect((await get(1)).logEndOffset).toBe(0)
  })

  test('can not be moved', async () => {
    await restart([b])
    await expect(get(1)).rejects.toThrow()
    expect(await simulation.run(logs.move('orders', 1, a))).toBe('partition-offline')
    await simulation.run(logs.delete('orders', 1))
    expect(await simulation.run(logs.move('orders', 1, a))).toBe('not-here')
    expect((await get(1, { isNew: true })).logEndOffset).toBe(0)
  })

  test('of a directory that failed while the node ran has all its records after a restart', async () => {
    const before = await simulation.run(readAll(logs.get('orders', 1)!))
    host.disk.failNext({ operation: 'write', path: /^\/data\/b\/orders-1\/.*log$/, code: 'EIO' })
    expect(() => appended(logs.get('orders', 1)!, batchOf(1, 'lost'))).toThrow()
    await expect(get(1)).rejects.toThrow('/data/b')
    expect((await get(4)).logEndOffset).toBe(0)
    expect(homeOf(4)).toEqual([a])
    await restart()
    expect(await simulation.run(readAll(await get(1)))).toEqual(before)
  })
})
