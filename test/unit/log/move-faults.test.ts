import { expect, test } from 'vitest'
import { type LeaderEpoch, type Uuid, zeroUuid } from '../../../src/base/index.ts'
import type { LogManager, PartitionLog } from '../../../src/log/index.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'
import { appended, batchOf, drawing, openLogs, readAll, topicConfig } from './support.ts'

const paths = ['/data/a', '/data/b', '/data/c'] as const
const keys = { 'log.dirs': paths.join(), 'metadata.log.dir': '/data/metadata' }
const config = topicConfig({ 'internal.segment.bytes': 700, 'file.delete.delay.ms': 0 })

interface Outcome {
  readonly moves: number
  readonly offline: number
  readonly deletions: number
}

/**
 * One partition is moved, written to and deleted through crashes, while calls on its disks fail, directories are missing at some starts,
 * and what the metadata says of its directory is old. What was told durable is never missing from a log that can be opened, and in the
 * end it can be opened.
 */
async function runSeed(seed: number): Promise<Outcome> {
  const simulation = createSimulation({ seed })
  const host = simulation.host('a')
  const draw = drawing(seed)
  let topics = 0
  let topicId = zeroUuid
  let known = zeroUuid
  let batches: Buffer[] = []
  let durable = 0
  let logs!: LogManager
  let log: PartitionLog | undefined
  let [moves, offline, deletions] = [0, 0, 0]
  let mayKill = true
  const disarms: (() => void)[] = []

  const recreate = () => {
    topicId = `AAAAAAAAAAAAAAAAAAAA${String.fromCharCode(65 + topics++)}Q` as Uuid
    known = zeroUuid
    batches = []
    durable = 0
  }
  const get = async (isNew: boolean) => {
    log = undefined
    const of = topicId
    try {
      log = await simulation.run(
        logs.getOrCreate({ topic: 'orders', topicId, partition: 0, config, directoryId: known, isNew }),
      )
    } catch {
      offline++
      return
    }
    if (!log.isOnline) return
    const count = durable
    const reading = log
    const found = await simulation.run(
      readAll(log).catch((error: unknown) => {
        if (reading.isOnline) throw error
        return undefined
      }),
    )
    if (found === undefined) return // its directory failed meanwhile
    expect(found.length, 'nothing that was told durable is lost').toBeGreaterThanOrEqual(count)
    const isSame = found.every((bytes, i) => batches[i]?.equals(bytes))
    expect([found.length <= batches.length, isSame], 'and nothing else is there').toEqual([true, true])
    batches = batches.slice(0, found.length)
    log.setListener({
      onFlushed: (offset) => {
        if (topicId !== of) return
        durable = Math.max(durable, offset / 2)
      },
      onFailed: () => {},
      onLogStartMoved: () => {},
    })
  }
  const open = async (mayLack: boolean) => {
    const missing = mayLack && draw(2) === 0 ? paths.filter(() => draw(3) === 0) : []
    if (missing.length < paths.length) {
      for (const path of missing) {
        host.disk.failNext({ operation: 'read', path: `${path}/meta.properties`, code: 'EIO' })
      }
    }
    logs = await simulation.run(openLogs(host.platform, { keys }))
    logs.setListener({
      onDirectoryOffline: () => {},
      onDirectoryOnline: () => {},
      onPlaced: (placed, directoryId) => {
        if (placed.topicId === topicId && draw(3) > 0) known = directoryId
      },
    })
  }
  const armFault = () => {
    const path = paths[draw(3)]!
    const files = ['', '/orders-0', '/log-move-checkpoint', '/[a-z-]*checkpoint', '/orders-0.*future']
    const operation = (['write', 'sync', 'rename', 'sync'] as const)[draw(4)]!
    const disarm = host.disk.failNext({
      operation,
      path: new RegExp(`^${path}${files[draw(files.length)]!}`),
      code: operation !== 'sync' && draw(2) === 0 ? 'ENOSPC' : 'EIO',
      skip: draw(2) === 0 ? 0 : draw(6),
    })
    disarms.push(disarm)
    // What a sync failed to write is in the system's memory still: to a process that is killed there it looks as if it were on the disk.
    mayKill &&= operation !== 'sync'
  }

  const isUsable = () => log?.isOnline === true
  recreate()
  for (let run = 0; run < 8; run++) {
    try {
      await open(run > 0)
    } catch {
      host.crash() // all disks are gone: another start
      host.restart()
      continue
    }
    await get(run === 0)
    const steps = 10 + draw(50)
    for (let step = 0; step < steps; step++) {
      const action = draw(20)
      if (log === undefined || !isUsable()) {
        await simulation.runFor(action < 4 ? 6000 : 1)
        await get(false)
        if (!isUsable() && draw(4) === 0) break
      } else if (action < 5) {
        void logs.move('orders', 0, paths[draw(3)]!).then(
          (answer) => {
            if (answer === 'moving') moves++
          },
          () => {},
        )
      } else if (action < 7) {
        armFault()
      } else if (action === 7 && draw(6) === 0) {
        deletions++
        recreate()
        await simulation.run(logs.delete('orders', 0)).catch(() => {})
        await get(true)
      } else if (action < 10) {
        void log.flush().catch(() => {})
      } else {
        const bytes = batchOf(2, `${topics}/${run}/${step}${'x'.repeat(draw(150))}`)
        batches.push(bytes) // what fails may be found later all the same
        try {
          appended(log, bytes, { leaderEpoch: (run + 1) as LeaderEpoch })
        } catch {
          expect(log.isOnline).toBe(false)
        }
      }
      await simulation.runFor(draw(40) / 10)
    }
    if (draw(3) === 0) await simulation.run(logs.close()).catch(() => {})
    for (const disarm of disarms.splice(0)) disarm()
    if (draw(2) === 0 && mayKill) host.kill()
    else host.crash()
    mayKill = true
    host.restart()
  }
  host.crash()
  host.restart()
  await open(false)
  await get(false)
  expect(log?.isOnline, 'it is online when nothing fails').toBe(true)
  return { moves, offline, deletions }
}

test.each([0, 1, 2, 3])(
  'no acknowledged record is lost in moves between failing directories (seeds %i * 20)',
  { timeout: 120_000 },
  async (group) => {
    let [moves, offline, deletions] = [0, 0, 0]
    for (let seed = group * 20; seed < group * 20 + 20; seed++) {
      try {
        const outcome = await runSeed(seed)
        moves += outcome.moves
        offline += outcome.offline
        deletions += outcome.deletions
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error })
      }
    }
    expect([moves > 60, offline > 30, deletions > 3]).toEqual([true, true, true])
  },
)
