import { beforeEach, describe, expect, test } from 'vitest'
import type { Uuid } from '../../../src/base/index.ts'
import type { LogManager, LogSpec, PartitionLog } from '../../../src/log/index.ts'
import { type Platform, replaceFile } from '../../../src/platform/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { appended, batchOf, openLogs, readAll, replaceFiles, topicConfig, topicId } from './support.ts'

const [a, b, c] = ['/data/a', '/data/b', '/data/c'] as const

/** Faults of disks and ends of the process in the midst of moves: an older log never goes on in place of a newer one. */
describe('a log that moved, or was about to', () => {
  let simulation: Simulation
  let host: SimulatedHost
  let logs: LogManager
  let log: PartitionLog

  /** `missing`: can't be opened this time. */
  const open = async (missing: readonly string[] = [], dirs: readonly string[] = [a, b, c]) => {
    for (const path of missing) {
      host.disk.failNext({ operation: 'read', path: new RegExp(`^${path}/meta.properties`), code: 'EIO' })
    }
    logs = await simulation.run(
      openLogs(watched(host.platform), {
        keys: { 'log.dirs': dirs.join(), 'metadata.log.dir': '/data/metadata' },
      }),
    )
  }
  /** Called with the name that a folder was given. */
  let onRenamed: (to: string) => void
  const watched = (platform: Platform): Platform => ({
    ...platform,
    files: replaceFiles(platform.files, {
      renameSync: (from, to) => {
        platform.files.renameSync(from, to)
        onRenamed(to)
      },
    }),
  })
  const get = async (fields: Partial<LogSpec> = {}) => {
    log = await simulation.run(
      logs.getOrCreate({ topic: 'orders', topicId, partition: 0, config: topicConfig(), ...fields }),
    )
    return log
  }
  const crash = async (missing: readonly string[] = [], dirs?: readonly string[]) => {
    host.crash()
    host.restart()
    await open(missing, dirs)
  }
  const restart = async (missing: readonly string[] = [], dirs?: readonly string[]) => {
    await simulation.run(logs.close())
    await open(missing, dirs)
  }
  const write = async (text: string) => {
    for (let i = 0; i < 5; i++) appended(log, batchOf(3, `${text}${i}`))
    await simulation.run(log.flush())
  }
  const homes = () => {
    const holders = logs.directories().filter(({ partitions }) => partitions.some(({ topic }) => topic === 'orders'))
    return holders.map(({ path }) => path).join()
  }
  const move = (path: string) => simulation.run(logs.move('orders', 0, path))
  const moved = async (path: string) => {
    expect(await move(path)).toBe('moving')
    await simulation.runUntil(() => homes() === path)
    await simulation.runFor(200)
  }
  const idOf = (path: string) => logs.directories().find((each) => each.path === path)!.directoryId!
  /** It has moved to `b` and was written to there; that it is no more in `a` is not durable. */
  const switchedUnsynced = async () => {
    onRenamed = (to) => {
      if (/^.data.a.orders-0.*-delete$/.test(to)) fail('sync', /^\/data\/a$/)
    }
    expect(await move(b)).toBe('moving')
    await simulation.runUntil(() => homes() === b)
    await simulation.runUntil(() => isOffline(a))
    await write('second')
  }
  /** That, and power is lost: the folder is in `a` again. */
  const both = async (missing: readonly string[] = []) => {
    for (let seed = 0; ; seed++) {
      expect(seed).toBeLessThan(50)
      await begin(seed)
      await switchedUnsynced()
      host.crash()
      host.restart()
      if (await hasFolder(a)) break
    }
    if (missing.length < 3) await open(missing)
  }
  /** The switch to `b` fails when the copy has its new name there; the log goes on in `a`. */
  const switchFailed = async () => {
    onRenamed = (to) => {
      if (to === `${b}/orders-0`) fail('sync', /^\/data\/b$/)
    }
    expect(await move(b)).toBe('moving')
    await simulation.runUntil(() => isOffline(b))
    await simulation.runFor(100)
    await write('second')
    expect([homes(), await hasFolder(b)]).toEqual([a, true])
  }
  /** It moves from `from`, where it is noted that the copy may take its place, and that is all that was done. */
  const atTheSwitch = async (from: string, to: string) => {
    const note = async () =>
      (await host.platform.files.readFile(`${from}/log-move-checkpoint`, 65_536))?.toString() ?? ''
    expect(await move(to)).toBe('moving')
    while (!(await simulation.run(note())).includes(' to ')) {
      expect(homes()).toBe(from)
      await simulation.runFor(0)
    }
  }
  const syncAll = async (path: string): Promise<void> => {
    const { files } = host.platform
    for (const { name, kind } of (await files.list(path)) ?? []) {
      if (kind === 'directory') {
        await syncAll(`${path}/${name}`)
        continue
      }
      const file = await files.open(`${path}/${name}`, 'write')
      await file.sync()
      await file.close()
    }
    await files.syncDirectory(path)
  }
  const isOffline = (path: string) => logs.directories().find((each) => each.path === path)!.error !== undefined
  const fail = (operation: string, path: RegExp, code: 'EIO' | 'ENOSPC' = 'EIO', skip = 0) =>
    host.disk.failNext({ operation, path, code, skip })
  /** All that was acknowledged is there, in `path`. */
  const isWhole = async (path: string, batches: number) => {
    await get()
    expect(homes()).toBe(path)
    expect(await simulation.run(readAll(log))).toHaveLength(batches)
  }

  const begin = async (seed = 7) => {
    onRenamed = () => {}
    simulation = createSimulation({ seed })
    host = simulation.host('a')
    await open()
    await get()
    await write('first')
    expect(homes()).toBe(a)
  }
  beforeEach(() => begin())
  const hasFolder = async (path: string) =>
    (await simulation.run(host.platform.files.stat(`${path}/orders-0`))) !== undefined
  const damage = (path: string) =>
    simulation.run(replaceFile(host.platform.files, `${path}/orders-0`, 'partition.metadata', Buffer.alloc(80, 'x')))

  describe('of which the metadata says that it is where it was before', () => {
    let directoryId: Uuid
    beforeEach(() => {
      directoryId = idOf(a)
    })
    /** What was acknowledged is in a directory that can't be opened: no empty log is made. */
    const isKept = async (path: string, batches: number) => {
      await expect(get({ directoryId })).rejects.toThrow('Partition orders-0')
      await restart()
      await isWhole(path, batches)
    }

    test('is not made anew there when a later move was given up', async () => {
      await moved(b)
      await write('second')
      expect(await move(c)).toBe('moving')
      expect(await move(b)).toBe('there')
      await restart([b])
      await isKept(b, 10)
    })

    test('is not made anew there when it went on to a third one after a change of mind', async () => {
      await moved(b)
      expect(await move(a)).toBe('moving')
      await moved(c)
      await write('second')
      await restart([c])
      await isKept(c, 10)
    })

    test('is not made anew there when the disk was full as the note of the move was written', async () => {
      fail('write', /^\/data\/a\/log-move-checkpoint/, 'ENOSPC')
      expect(await move(b)).toBe('moving')
      await simulation.runUntil(() => isOffline(a))
      await simulation.runUntil(() => !isOffline(a))
      // After the switch none can be written any more.
      onRenamed = (to) => {
        if (to.endsWith('-delete')) fail('write', /^\/data\/a\/log-move-checkpoint/)
      }
      await get()
      await simulation.runUntil(() => homes() === b)
      await write('second')
      await simulation.runUntil(() => isOffline(a))
      await crash([b])
      await isKept(b, 10)
    })

    test('is not made anew there when a start had found both, and removed the older one', async () => {
      await both()
      directoryId = idOf(a)
      await isWhole(b, 10)
      await restart([b])
      await isKept(b, 10)
    })

    test('is not made anew there when it was made elsewhere, as was asked', async () => {
      await simulation.run(logs.delete('orders', 0))
      expect(await move(c)).toBe('not-here')
      await get({ directoryId })
      expect(homes()).toBe(c)
      await write('second')
      await restart([c])
      await isKept(c, 5)
    })
  })

  test('is offline, and made nowhere else, while the directory that the metadata names is', async () => {
    const directoryId = idOf(a)
    await simulation.run(logs.delete('orders', 0))
    await restart()
    fail('write', /^\/data\/a\//)
    await simulation.run(
      logs.getOrCreate({ topic: 'other', topicId, partition: 0, config: topicConfig(), directoryId }),
    )
    expect(() => appended(logs.get('other', 0)!, batchOf(1, 'lost'))).toThrow()
    await expect(get({ directoryId })).rejects.toThrow('/data/a')
    expect((await get({ directoryId, isNew: true })).logEndOffset).toBe(0)
  })

  describe('that has switched, of which the older copy is back after power was lost', () => {
    test('goes on in the newer one', async () => {
      await both()
      await isWhole(b, 10)
      await restart()
      await isWhole(b, 10)
      expect(await hasFolder(a)).toBe(false)
    })

    test.each(['restart', 'crash'] as const)(
      'is offline while the newer one is missing, also after a %s',
      async (how) => {
        await both([b])
        await expect(get()).rejects.toThrow(
          'Partition orders-0 was being moved when the node ended, and its log in /data/a may lack records that are in another',
        )
        expect(logs.get('orders', 0)).toBeUndefined()
        expect(await move(c)).toBe('partition-offline')
        if (how === 'crash') await crash([b])
        else await restart([b])
        await expect(get()).rejects.toThrow('may lack')
        await restart()
        await isWhole(b, 10)
      },
    )

    test('is offline while the newer one is damaged', async () => {
      await both([a, b, c])
      await damage(b)
      await open()
      await expect(get()).rejects.toThrow()
      expect(logs.faultOf('orders', 0)).toBeDefined()
      await restart()
      await expect(get()).rejects.toThrow()
      await simulation.run(logs.delete('orders', 0))
      expect((await get()).logEndOffset).toBe(0)
      await restart()
      expect((await get()).logEndOffset).toBe(0)
      expect([await hasFolder(a), await hasFolder(b)]).toEqual([false, false])
    })

    test('goes on in the older one when the directory of the newer one is given up', async () => {
      await both([b])
      await restart([], [a, c])
      await isWhole(a, 5)
      await write('third')
      await restart([], [a, c])
      await isWhole(a, 10)
    })

    test('is offline while that is missing where it went on to', async () => {
      await switchedUnsynced()
      await moved(c)
      await write('third')
      await crash([c])
      await expect(get({ directoryId: idOf(a) })).rejects.toThrow('orders-0')
      await restart()
      await isWhole(c, 15)
    })
  })

  test('is not outdated by one of an earlier life that comes back', async () => {
    await restart([], [b, c])
    await get() // made anew: what is in `a` is none of these
    const home = homes()
    await write('anew')
    await write('again')
    await atTheSwitch(home, home === b ? c : b)
    await crash()
    await get()
    expect(homes()).not.toBe(a)
    expect(log.logEndOffset).toBe(30)
  })

  test('goes on nowhere in its older form, which could not be deleted, while it is missing', async () => {
    await restart([], [b, c])
    await get()
    const home = homes()
    await write('anew')
    await write('again')
    await simulation.run(logs.close())
    fail('rename', /^\/data\/a\/orders-0$/)
    await open()
    expect(isOffline(a)).toBe(true)
    await get()
    await write('third')
    await restart([home])
    await expect(get({ directoryId: idOf(a) })).rejects.toThrow('Partition orders-0')
    await restart()
    await get()
    expect([homes(), log.logEndOffset]).toEqual([home, 45])
  })

  test('stays where it goes on without syncs, when its copy failed in the midst of the switch', async () => {
    await restart()
    await get({ config: topicConfig({ 'flush.messages': '9223372036854775807' }) })
    expect(log.acksWaitForFlush).toBe(false)
    let isFailed = false
    onRenamed = (to) => {
      if (to !== `${b}/orders-0` || isFailed) return
      isFailed = true
      fail('write', /^\/data\/b\/.*\.log$/)
      for (let i = 0; i < 5; i++) appended(log, batchOf(3, `acknowledged${i}`))
      fail('write', /^\/data\/a\/log-move-checkpoint/)
      fail('sync', /^\/data\/b$/)
    }
    expect(await move(b)).toBe('moving')
    await simulation.runUntil(() => isFailed)
    expect([await hasFolder(a), await hasFolder(b)]).toEqual([true, true])
    await simulation.run(syncAll('/data')) // the process ends, and the system goes on
    await crash()
    await isWhole(a, 10)
  })

  test('is used where it was, before any switch, although it had been where it goes', async () => {
    await moved(b)
    await moved(a)
    await write('second')
    await atTheSwitch(a, b)
    await crash([c])
    await get()
    expect(log.logEndOffset).toBe(30)
  })

  describe('of which the switch failed', () => {
    test('goes on where it is, and the copy goes', async () => {
      await switchFailed()
      await restart()
      await isWhole(a, 10)
      await restart([a])
      await expect(get({ directoryId: idOf(b) })).rejects.toThrow('orders-0')
    })

    test('is offline while its directory is missing', async () => {
      await switchFailed()
      await restart([a])
      await expect(get()).rejects.toThrow('its log in /data/b may lack records')
      await restart()
      await isWhole(a, 10)
    })

    test('is offline while it is damaged', async () => {
      await switchFailed()
      await simulation.run(logs.close())
      await damage(a)
      await open()
      await expect(get()).rejects.toThrow('partition.metadata')
      await restart()
      await expect(get()).rejects.toThrow('partition.metadata')
    })

    test('and that moved elsewhere then, is offline while that is missing', async () => {
      await switchFailed()
      await moved(c)
      await write('third')
      await restart([c])
      await expect(get()).rejects.toThrow('its log in /data/b may lack records')
      await restart([a])
      await isWhole(c, 15)
      await restart()
      await isWhole(c, 15)
    })

    test('is the one of now when it was deleted, and is here again', async () => {
      await switchFailed()
      await simulation.run(logs.delete('orders', 0))
      await get()
      await write('new')
      await restart()
      await isWhole(a, 5)
      expect(await hasFolder(b)).toBe(false)
    })
  })
})
