import { beforeEach, describe, expect, test } from 'vitest'
import type { LeaderEpoch, Uuid } from '../../../src/base/index.ts'
import { parseConfig } from '../../../src/config/index.ts'
import { type LogManager, type PartitionLog, StorageError } from '../../../src/log/index.ts'
import { pause, replaceFile } from '../../../src/platform/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import {
  appended,
  batchOf,
  type Keys,
  offsetsOf,
  openLog,
  openLogs,
  readAll,
  recordsOf,
  topicConfig,
} from './support.ts'

const [a, b, c] = ['/data/a', '/data/b', '/data/c'] as const
const small = { 'internal.segment.bytes': 2000, 'index.interval.bytes': 100 }

describe('a log that moves to another directory', () => {
  let simulation: Simulation
  let host: SimulatedHost
  let logs: LogManager
  let placed: string[]

  const open = async (keys: Keys = {}) => {
    logs = await simulation.run(openLogs(host.platform, { keys: { 'log.dirs': `${a},${b},${c}`, ...keys } }))
    placed = []
    logs.setListener({
      onDirectoryOffline: () => {},
      onDirectoryOnline: () => {},
      onPlaced: (log, directoryId) => {
        const { path } = logs.directories().find((each) => each.directoryId === directoryId)!
        placed.push(`${log.topic}-${log.partition} ${path}`)
      },
    })
  }
  beforeEach(async () => {
    simulation = createSimulation({ seed: 7 })
    host = simulation.host('a')
    await open()
  })

  /** A log in `a`, as one is made where there are fewest. */
  const logIn = (keys: Keys = small) => simulation.run(openLog(logs, keys))
  const fill = (log: PartitionLog, batches: number, text = 'v', from = 0, bytes = 100) => {
    for (let i = from; i < from + batches; i++) appended(log, batchOf(3, `${text}${i}${'x'.repeat(bytes)}`))
  }
  /** More than is copied at a time: some 700 kB. */
  const fillMuch = (log: PartitionLog) => fill(log, 400, 'v', 0, 550)
  const slow = { 'replica.alter.log.dirs.io.max.bytes.per.second': 100_000 }
  /** A node whose moves take seconds, and its log, with 400 batches on disk. */
  const slowlyFilled = async (topicKeys?: Keys) => {
    await simulation.run(logs.close())
    await open(slow)
    const log = await logIn(topicKeys)
    fillMuch(log)
    await simulation.run(log.flush())
    return log
  }
  const move = (path: string, partition = 0) => simulation.run(logs.move('orders', partition, path))
  const homeOf = (log: PartitionLog): string[] =>
    logs
      .directories()
      .filter(({ partitions }) => partitions.includes(log))
      .map(({ path }) => path)
  const copies = () =>
    logs.directories().flatMap(({ path, copies }) => copies.map(({ offsetLag }) => `${path} ${offsetLag}`))
  const untilIn = (log: PartitionLog, path: string) => simulation.runUntil(() => homeOf(log).join() === path)
  const names = async (path: string) => {
    const listed = (await simulation.run(host.platform.files.list(path))) ?? []
    return listed.filter(({ kind }) => kind === 'directory').map(({ name }) => name)
  }

  test('is the same log, with all its records, in the other directory', async () => {
    const log = await logIn()
    fill(log, 50)
    await simulation.run(log.flush())
    const before = await simulation.run(readAll(log))
    expect(homeOf(log)).toEqual([a])
    expect(await move(b)).toBe('moving')
    expect(copies()).toEqual([`${b} 150`])
    await untilIn(log, b)
    expect(copies()).toEqual([])
    expect(logs.get('orders', 0)).toBe(log)
    expect(await simulation.run(readAll(log))).toEqual(before)
    await simulation.runFor(100)
    expect(placed).toEqual([`orders-0 ${a}`, `orders-0 ${b}`])
    expect(await names(a)).toEqual([])
    expect(await names(b)).toEqual(['orders-0'])
    fill(log, 20, 'after')
    await simulation.run(log.flush())
    await simulation.run(logs.close())
    await open()
    const again = await logIn()
    expect(homeOf(again)).toEqual([b])
    expect(offsetsOf(await simulation.run(readAll(again))).at(-1)).toEqual([207, 209])
  })

  test('takes appends all the while, and loses none at the switch', async () => {
    const log = await logIn()
    fill(log, 100)
    expect(await move(b)).toBe('moving')
    let written = 100
    await simulation.runUntil(() => {
      if (written < 3000) fill(log, 1, 'v', written++)
      return homeOf(log).join() === b
    })
    fill(log, 1, 'v', written++)
    await simulation.run(log.flush())
    const values = recordsOf(await simulation.run(readAll(log))).map(({ value }) => value?.replace(/x*-\d$/, ''))
    expect(values).toEqual(Array.from({ length: written * 3 }, (_, i) => `v${Math.floor(i / 3)}`))
  })

  test('goes on after a restart with what was copied before', async () => {
    await slowlyFilled()
    await move(b)
    await simulation.runFor(3000)
    const [lag] = copies()
    expect(lag).toMatch(/^.data.b [1-9]/)
    host.kill()
    host.restart()
    await open(slow)
    const again = await logIn()
    expect(copies()).toHaveLength(1)
    expect(Number(copies()[0]!.split(' ')[1])).toBeLessThanOrEqual(Number(lag!.split(' ')[1]))
    await untilIn(again, b)
    expect(await simulation.run(readAll(again))).toHaveLength(400)
  })

  test('keeps to the speed that is allowed, and to a new one from then on', async () => {
    await simulation.run(logs.close())
    await open({ 'replica.alter.log.dirs.io.max.bytes.per.second': 100_000 })
    const log = await logIn({})
    for (let i = 0; i < 100; i++) appended(log, batchOf(1, 'x'.repeat(20_000)))
    await simulation.run(log.flush())
    const { clock } = host.platform
    const startMs = clock.monotonic()
    await move(b)
    await untilIn(log, b)
    const expectedMs = (log.sizeBytes * 1000) / 100_000
    const tookMs = clock.monotonic() - startMs
    expect(tookMs).toBeGreaterThan(expectedMs * 0.8)
    expect(tookMs).toBeLessThan(expectedMs * 1.1 + 100)
    const unlimited = parseConfig({ overrides: { 'log.dirs': a } }).values
    logs.updateBrokerConfig(unlimited)
    const againMs = clock.monotonic()
    await move(c)
    await untilIn(log, c)
    expect(clock.monotonic() - againMs).toBeLessThan(expectedMs / 10)
  })

  test('asked for the directory that it is in, stays there, and the copy goes', async () => {
    const log = await logIn()
    fill(log, 200)
    expect(await move(a)).toBe('there')
    expect(await move(b)).toBe('moving')
    expect(await move(b)).toBe('moving')
    expect(await move(a)).toBe('there')
    expect(copies()).toEqual([])
    await simulation.runFor(1000)
    expect(homeOf(log)).toEqual([a])
    expect([await names(a), await names(b)]).toEqual([['orders-0'], []])
  })

  test('asked for yet another directory, goes there', async () => {
    const log = await logIn()
    fill(log, 200)
    await simulation.run(log.flush())
    expect(await move(b)).toBe('moving')
    await simulation.runFor(2)
    expect(await move(c)).toBe('moving')
    await untilIn(log, c)
    await simulation.runFor(1000)
    expect([await names(a), await names(b), await names(c)]).toEqual([[], [], ['orders-0']])
    expect(await simulation.run(readAll(log))).toHaveLength(200)
  })

  test('is told why it can not move', async () => {
    const log = await logIn()
    fill(log, 1)
    expect(await move('/data/other')).toBe('directory-not-found')
    expect(await move(`${b}/`)).toBe('directory-not-found')
    expect(await move(b, 1)).toBe('not-here')
    const long = await simulation.run(openLog(logs, small, 0, 'x'.repeat(220)))
    expect(await simulation.run(logs.move(long.topic, 0, b))).toBe('name-too-long')
    host.disk.failNext({ operation: 'write', path: /^\/data\/c\//, code: 'EIO' })
    const other = await simulation.run(openLog(logs, small, 2, 'other'))
    expect(homeOf(other)).toEqual([c])
    expect(() => appended(other, batchOf(1, 'lost'))).toThrow()
    expect(await move(c)).toBe('directory-offline')
    expect(await simulation.run(logs.move('other', 2, b))).toBe('partition-offline')
  })

  test('that is not there yet is made where it was asked to be', async () => {
    expect(await move(c)).toBe('not-here')
    const log = await logIn()
    expect(homeOf(log)).toEqual([c])
  })

  test('without a record goes at once, and is made in the other directory with its first', async () => {
    const log = await logIn()
    expect(await move(c)).toBe('moving')
    await untilIn(log, c)
    fill(log, 3)
    await simulation.run(log.flush())
    expect([await names(a), await names(c)]).toEqual([[], ['orders-0']])
  })

  test.each(['delete', 'recreate'] as const)('leaves nothing behind when it is meanwhile asked to %s', async (what) => {
    const log = await logIn({ ...small, 'file.delete.delay.ms': 0 })
    fill(log, 200)
    await move(b)
    await simulation.runFor(2)
    if (what === 'delete') await simulation.run(logs.delete('orders', 0))
    const newId = 'BBBBBBBBBBBBBBBBBBBBBQ' as Uuid
    const config = topicConfig(small)
    const other = await simulation.run(logs.getOrCreate({ topic: 'orders', topicId: newId, partition: 0, config }))
    expect(copies()).toEqual([])
    expect(other.logEndOffset).toBe(0)
    await simulation.runFor(1000)
    expect([await names(a), await names(b)]).toEqual([[], []])
  })

  test('is deleted, though the other directory fails when the copy is', async () => {
    await slowlyFilled({ ...small, 'file.delete.delay.ms': 0 })
    await move(b)
    await simulation.runFor(500)
    host.disk.failNext({ operation: 'rename', path: /^\/data\/b\/.*future$/, code: 'EIO' })
    await expect(simulation.run(logs.delete('orders', 0))).rejects.toThrow(StorageError)
    await simulation.runFor(1000)
    expect(await names(a)).toEqual([])
    await simulation.run(logs.close())
    await open()
    expect(logs.partitions()).toEqual([])
  })

  test('of which a copy is left, while the topic was made anew, begins without it', async () => {
    const log = await logIn()
    fill(log, 200)
    await move(b)
    await simulation.runFor(5)
    expect(copies()).toHaveLength(1)
    await simulation.run(log.flush())
    host.crash()
    const { files } = host.restart()
    await simulation.run(files.removeTree(`${a}/orders-0`))
    await open()
    expect(copies()).toEqual([])
    await simulation.runFor(100)
    expect(await names(b)).toEqual([])
  })

  test('stays whole when the other directory fails, and can go elsewhere', async () => {
    const log = await logIn()
    fill(log, 200)
    await simulation.run(log.flush())
    host.disk.failNext({ operation: 'write', path: /future.*00500\.log$|future.*log$/, code: 'EIO' })
    await move(b)
    await simulation.runUntil(() => logs.directories()[1]!.error !== undefined)
    await simulation.runFor(10)
    expect(log.isOnline).toBe(true)
    fill(log, 10, 'after')
    await simulation.run(log.flush())
    expect(await move(c)).toBe('moving')
    await untilIn(log, c)
    expect(await simulation.run(readAll(log))).toHaveLength(210)
    await simulation.run(logs.close())
    await open()
    const again = await logIn()
    expect(homeOf(again)).toEqual([c])
    expect(await simulation.run(readAll(again))).toHaveLength(210)
  })

  describe('to a directory that failed', () => {
    /** Half a copy stays in `b`, which fails, and works again only after a restart. */
    const halfMoved = async () => {
      const log = await slowlyFilled({ ...small, 'file.delete.delay.ms': 0 })
      await move(b)
      await simulation.runFor(3000)
      host.disk.failNext({ operation: 'write', path: /future.*log$/, code: 'EIO' })
      await simulation.runUntil(() => logs.directories()[1]!.error !== undefined)
      await simulation.runFor(100)
      return log
    }
    const restart = async () => {
      await simulation.run(logs.close())
      await open()
    }
    /** Nothing moves, and nothing is left in `b`. */
    const staysIn = async (path: string, log: PartitionLog) => {
      await simulation.runFor(2000)
      expect([homeOf(log), copies(), await names(b)]).toEqual([[path], [], []])
    }

    test('went elsewhere meanwhile, and stays there when that is back', async () => {
      const log = await halfMoved()
      logs.updateBrokerConfig(parseConfig({ overrides: { 'log.dirs': a } }).values)
      expect(await move(c)).toBe('moving')
      await untilIn(log, c)
      const before = await simulation.run(readAll(log))
      await restart()
      const again = await logIn()
      await staysIn(c, again)
      expect(await simulation.run(readAll(again))).toEqual(before)
    })

    test('was told to stay, and does when that is back', async () => {
      await halfMoved()
      expect(await move(a)).toBe('there')
      await restart()
      await staysIn(a, await logIn())
    })

    test('was moved to other brokers and back, and does not go on when that is back', async () => {
      await halfMoved()
      await simulation.run(logs.delete('orders', 0))
      const anew = await logIn()
      expect(homeOf(anew)).toEqual([a])
      for (let i = 0; i < 5; i++) appended(anew, batchOf(3, `anew${i}`))
      await simulation.run(anew.flush())
      const before = await simulation.run(readAll(anew))
      await restart()
      const again = await logIn()
      await staysIn(a, again)
      expect(await simulation.run(readAll(again))).toEqual(before)
    })

    test('was moved to other brokers, and leaves nothing when that is back', async () => {
      await halfMoved()
      await simulation.run(logs.delete('orders', 0))
      await restart()
      await simulation.runFor(1000)
      expect([copies(), logs.partitions(), await names(b)]).toEqual([[], [], []])
    })

    test('goes on when that is back if the node was stopped before it noticed', async () => {
      await slowlyFilled()
      await move(b)
      await simulation.runFor(3000)
      await simulation.run(logs.close())
      host.disk.failNext({ operation: 'read', path: /^\/data\/b\/meta.properties/, code: 'EIO' })
      await open(slow)
      expect(logs.directories().map(({ error }) => error !== undefined)).toEqual([false, false, true])
      await logIn()
      await restart()
      expect(copies()).toHaveLength(1)
      const again = await logIn()
      await untilIn(again, b)
      expect(await simulation.run(readAll(again))).toHaveLength(400)
    })
  })

  describe('and finds another of its name elsewhere', () => {
    const newId = 'BBBBBBBBBBBBBBBBBBBBBQ' as Uuid
    const newLog = (isNew = false) =>
      simulation.run(
        logs.getOrCreate({ topic: 'orders', topicId: newId, partition: 0, config: topicConfig(small), isNew }),
      )
    const failed = async (path: string) => {
      host.disk.failNext({ operation: 'read', path: new RegExp(`^${path}/meta.properties`), code: 'EIO' })
      await open()
    }

    test.each([b, c])('of a topic that was deleted while %s was away gives way to the one of now', async (away) => {
      // In `away`, a log with a later epoch and more records than the one of now will have.
      for (const partition of away === c ? [1, 2] : [1]) await simulation.run(openLog(logs, small, partition))
      const old = await logIn()
      expect(homeOf(old)).toEqual([away])
      for (let i = 0; i < 9; i++) appended(old, batchOf(3, `old${i}`), { leaderEpoch: 9 as LeaderEpoch })
      await simulation.run(old.flush())
      await simulation.run(logs.close())
      await failed(away)
      const log = await newLog(true)
      fill(log, 2, 'new')
      await simulation.run(log.flush())
      const before = await simulation.run(readAll(log))
      await simulation.run(logs.close())
      await open()
      const again = await newLog()
      expect(await simulation.run(readAll(again))).toEqual(before)
      expect(homeOf(again)).not.toEqual([away])
      await simulation.runFor(100_000)
      expect(await names(away)).toEqual([])
      await simulation.run(logs.close())
      await open()
      expect(await simulation.run(readAll(await newLog()))).toEqual(before)
    })

    test('of which one is damaged is the whole one', async () => {
      await move(c)
      const old = await logIn()
      fill(old, 3)
      await simulation.run(old.flush())
      await simulation.run(logs.close())
      const { files } = host.platform
      await simulation.run(files.makeDirectory(`${a}/orders-0`))
      await simulation.run(replaceFile(files, `${a}/orders-0`, 'partition.metadata', Buffer.alloc(80, 'x')))
      await open()
      expect(logs.faultOf('orders', 0)).toBeUndefined()
      const again = await logIn()
      expect(homeOf(again)).toEqual([c])
      expect(again.logEndOffset).toBe(9)
    })

    test('of which a damaged one is in a directory before it is the whole one', async () => {
      await move(c)
      const old = await logIn()
      await simulation.run(old.flush())
      const { files } = host.platform
      await simulation.run(logs.close())
      await simulation.run(files.makeDirectory(`${a}/orders-0`))
      await simulation.run(replaceFile(files, `${a}/orders-0`, 'partition.metadata', Buffer.alloc(80, 'x')))
      await open()
      const log = await newLog(true)
      expect(logs.get('orders', 0)).toBe(log)
      expect(logs.faultOf('orders', 0)).toBeUndefined()
    })

    describe('of a topic that was deleted while a disk was full', () => {
      const fullDisk = (path: string, log: PartitionLog) => {
        host.disk.failNext({ operation: 'write', path: new RegExp(`^${path}/orders-0/.*log$`), code: 'ENOSPC' })
        const leaderEpoch = 9 as LeaderEpoch
        expect(() => appended(log, batchOf(1, 'lost'), { leaderEpoch })).toThrow(/^Disk full/)
      }
      const untilBack = async () => {
        await simulation.runUntil(() => logs.directories().every(({ error }) => error === undefined))
        await simulation.runFor(100)
      }
      const oldInA = async () => {
        const old = await logIn({ ...small, 'file.delete.delay.ms': 0 })
        for (let i = 0; i < 9; i++) appended(old, batchOf(3, `old${i}`), { leaderEpoch: 9 as LeaderEpoch })
        await simulation.run(old.flush())
        return old
      }
      const expectNew = async (log: PartitionLog) => {
        await untilBack()
        expect(logs.get('orders', 0)).toBe(log)
        expect(logs.faultOf('orders', 0)).toBeUndefined()
        expect(homeOf(log)).not.toEqual([a])
        expect(await names(a)).toEqual([])
        const before = await simulation.run(readAll(log))
        await simulation.run(logs.close())
        await open()
        expect(await simulation.run(readAll(await newLog()))).toEqual(before)
      }

      test.each(['whole', 'damaged'])('gives way when that is back, %s', async (state) => {
        fullDisk(a, await oldInA())
        host.disk.failNext({ operation: 'rename', path: /^\/data\/a\/orders-0/, code: 'ENOSPC' })
        await expect(simulation.run(logs.delete('orders', 0))).rejects.toThrow()
        const log = await newLog(true)
        fill(log, 2, 'new')
        await simulation.run(log.flush())
        if (state === 'damaged') {
          const file = await simulation.run(host.platform.files.open(`${a}/orders-0/leader-epoch-checkpoint`, 'write'))
          await simulation.run(file.write([Buffer.from('x')], 0))
          await simulation.run(file.close())
        }
        await expectNew(log)
      })

      test('is in no way of the new one meanwhile', async () => {
        fullDisk(a, await oldInA())
        const log = await newLog(true)
        fill(log, 2, 'new')
        await simulation.run(log.flush())
        await expectNew(log)
      })

      describe('and whose log is still there', () => {
        let before: Buffer[]
        let home: string
        const logOf = (path: string) => logs.directories().find((each) => each.path === path)!.partitions[0]!

        /** The old one in `c`, the new one elsewhere, and nobody has said yet which one counts. */
        beforeEach(async () => {
          for (const partition of [1, 2]) await simulation.run(openLog(logs, small, partition))
          await oldInA()
          await simulation.run(logs.close())
          await failed(c)
          const log = await newLog(true)
          fill(log, 2, 'new')
          await simulation.run(log.flush())
          before = await simulation.run(readAll(log))
          home = homeOf(log)[0]!
          await simulation.run(logs.close())
          await open()
          expect([await names(c), await names(home)]).toEqual([['orders-0'], ['orders-0']])
        })

        test('does not take the new one along when that one comes back', async () => {
          fullDisk(home, logOf(home))
          await untilBack()
          const log = await newLog()
          expect((await simulation.run(readAll(log))).slice(0, 2)).toEqual(before)
          expect(homeOf(log)).toEqual([home])
          await simulation.runFor(100_000)
          expect(await names(c)).toEqual([])
        })

        test('does not keep the new one when both are deleted', async () => {
          fullDisk(a, logOf(home))
          expect(home).toBe(a)
          host.disk.failNext({ operation: 'rename', path: /^\/data\/a\/orders-0/, code: 'ENOSPC' })
          await expect(simulation.run(logs.delete('orders', 0))).rejects.toThrow()
          await simulation.runFor(100_000)
          expect(await names(c)).toEqual([])
        })
      })
    })

    test('that its directory brings back from a full disk is gone', async () => {
      const old = await logIn({ ...small, 'file.delete.delay.ms': 0 })
      fill(old, 3, 'old')
      await simulation.run(old.flush())
      host.disk.failNext({ operation: 'write', path: /^\/data\/a\/orders-0\/.*log$/, code: 'ENOSPC' })
      expect(() => appended(old, batchOf(1, 'lost'))).toThrow(/^Disk full/)
      host.disk.failNext({ operation: 'rename', path: /^\/data\/a\/orders-0/, code: 'ENOSPC' })
      await expect(simulation.run(logs.delete('orders', 0))).rejects.toThrow()
      const log = await logIn()
      expect(homeOf(log)).not.toEqual([a])
      fill(log, 2, 'new')
      await simulation.runUntil(() => logs.directories()[0]!.error === undefined)
      await simulation.runFor(100)
      expect(logs.get('orders', 0)).toBe(log)
      expect(await names(a)).toEqual([])
    })
  })

  test('is not made anew where another directory comes back before its own', async () => {
    const first = await logIn({ ...small, 'file.delete.delay.ms': 0 })
    const second = await simulation.run(openLog(logs, { ...small, 'file.delete.delay.ms': 0 }, 1))
    expect([homeOf(first), homeOf(second)]).toEqual([[a], [b]])
    for (const log of [first, second]) {
      fill(log, 3)
      await simulation.run(log.flush())
    }
    let attempts = 0
    // With many partitions their opening lasts until another directory is being opened.
    const openUntilBack = async () => {
      while (logs.directories()[1]!.error !== undefined) {
        attempts++
        await openLog(logs, small, 1).catch(() => undefined)
        await new Promise<void>((resolve) => host.platform.timers.set(0.05, resolve))
      }
    }
    let opened: Promise<void> | undefined
    logs.setListener({
      onDirectoryOffline: () => {},
      onPlaced: () => {},
      onDirectoryOnline: () => {
        opened ??= openUntilBack()
      },
    })
    for (const path of [a, b]) {
      host.disk.failNext({ operation: 'write', path: new RegExp(`^${path}/orders-.*log$`), code: 'ENOSPC' })
    }
    expect(() => appended(first, batchOf(1, 'lost'))).toThrow(/^Disk full/)
    expect(() => appended(second, batchOf(1, 'lost'))).toThrow(/^Disk full/)
    await simulation.runUntil(() => logs.directories().every(({ error }) => error === undefined))
    await simulation.run(opened!)
    expect(attempts).toBeGreaterThan(0)
    const again = await simulation.run(openLog(logs, small, 1))
    expect(homeOf(again)).toEqual([b])
    expect(again.logEndOffset).toBeGreaterThanOrEqual(9)
  })

  test('fails with its own directory, and moves on when that is back', async () => {
    const log = await slowlyFilled()
    await move(b)
    await simulation.runFor(500)
    host.disk.failNext({ operation: 'write', path: /^\/data\/a\/orders-0\/.*log$/, code: 'ENOSPC' })
    expect(() => appended(log, batchOf(1, 'lost'))).toThrow(/^Disk full/)
    expect(log.isOnline).toBe(false)
    await simulation.runUntil(() => logs.directories()[0]!.error === undefined)
    const again = await logIn()
    await untilIn(again, b)
    expect(await simulation.run(readAll(again))).toSatisfy((found: unknown[]) => found.length >= 400)
  })

  test('gives a disk that it filled its room back', async () => {
    const log = await logIn()
    fill(log, 200)
    await simulation.run(log.flush())
    host.disk.capacityBytes = host.disk.usedBytes + log.sizeBytes / 2
    await move(b)
    await simulation.runUntil(() => logs.directories()[1]!.error !== undefined)
    expect(log.isOnline).toBe(true)
    await simulation.runFor(20_000)
    expect(await names(b)).toEqual([])
    host.disk.capacityBytes = 2 ** 40
    await simulation.runUntil(() => logs.directories()[1]!.error === undefined)
    expect(copies()).toEqual([])
    await move(b)
    await untilIn(log, b)
  })

  test('that is cut and filled with other records takes those along', async () => {
    const log = await logIn()
    fill(log, 100)
    log.setHighWatermark(30)
    await move(b)
    await simulation.runFor(3)
    await simulation.run(log.truncateTo(60))
    for (let i = 0; i < 50; i++) appended(log, batchOf(3, `other${i}`), { leaderEpoch: 2 as LeaderEpoch })
    await simulation.run(log.truncateTo(90))
    for (let i = 0; i < 50; i++) appended(log, batchOf(3, `last${i}`), { leaderEpoch: 3 as LeaderEpoch })
    const before = await simulation.run(readAll(log))
    await untilIn(log, b)
    expect(await simulation.run(readAll(log))).toEqual(before)
    await simulation.run(log.flush())
    host.crash()
    host.restart()
    await open()
    const again = await logIn()
    expect(homeOf(again)).toEqual([b])
    expect(await simulation.run(readAll(again))).toEqual(before)
  })

  test('begins within a batch there too, when records before were deleted', async () => {
    const log = await logIn()
    fill(log, 50)
    await simulation.run(log.deleteRecordsBefore(31, 150))
    await move(b)
    await simulation.runFor(1)
    await simulation.run(log.deleteRecordsBefore(40, 150))
    const before = await simulation.run(readAll(log))
    await untilIn(log, b)
    expect(log.logStartOffset).toBe(40)
    expect(await simulation.run(readAll(log))).toEqual(before)
    await simulation.run(log.flush())
    host.crash()
    host.restart()
    await open()
    const again = await logIn()
    expect([homeOf(again), again.logStartOffset]).toEqual([[b], 40])
    expect(await simulation.run(readAll(again))).toEqual(before)
  })

  test('loses what retention takes meanwhile, and no more', async () => {
    const log = await slowlyFilled({ ...small, 'retention.bytes': 100_000 })
    log.setHighWatermark(1200)
    await move(b)
    await simulation.runFor(100)
    await simulation.run(logs.enforceRetention())
    expect(log.logStartOffset).toBeGreaterThan(300)
    const { logStartOffset } = log
    const before = await simulation.run(readAll(log))
    await untilIn(log, b)
    expect(log.logStartOffset).toBe(logStartOffset)
    expect(await simulation.run(readAll(log))).toEqual(before)
    expect(log.sizeBytes).toBeLessThan(200_000)
  })

  test('is not compacted while it moves, and is then, with nothing that was deleted', async () => {
    const keys = { ...small, 'cleanup.policy': 'compact', 'min.cleanable.dirty.ratio': 0, 'delete.retention.ms': 0 }
    const log = await slowlyFilled(keys)
    log.setHighWatermark(log.logEndOffset)
    await move(b)
    await simulation.runFor(100)
    const { sizeBytes } = log
    await simulation.run(logs.clean())
    expect(log.sizeBytes).toBe(sizeBytes)
    await untilIn(log, b)
    await simulation.runFor(100)
    await simulation.run(logs.clean())
    expect(log.sizeBytes).toBeLessThan(sizeBytes / 5)
    const keysLeft = recordsOf(await simulation.run(readAll(log))).map(({ key }) => key)
    expect(new Set(keysLeft)).toEqual(new Set(['k0', 'k1', 'k2']))
    // Of a compacted log nothing is gone on with: it may have been compacted since.
    await move(c)
    await simulation.runFor(1)
    host.kill()
    host.restart()
    await open()
    const again = await logIn(keys)
    await simulation.runUntil(() => copies().length === 0)
    expect(recordsOf(await simulation.run(readAll(again)))).toHaveLength(keysLeft.length)
  })

  test('readers that were reading the old files read on', async () => {
    const log = await logIn()
    fill(log, 300)
    await simulation.run(log.flush())
    await move(b)
    const results: number[] = []
    let isDone = false
    const reader = (async () => {
      while (!isDone) {
        results.push((await readAll(log, 0)).length)
        await pause(host.platform.timers, 0.1)
      }
    })()
    await untilIn(log, b)
    await simulation.runFor(50)
    isDone = true
    await simulation.run(reader)
    expect(new Set(results)).toEqual(new Set([300]))
  })
})
