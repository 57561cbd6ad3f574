import { beforeEach, describe, expect, test } from 'vitest'
import type { LogManager, PartitionLog } from '../../../src/log/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { appended, batchOf, type Keys, offsetsOf, openLog, openLogs, readAll, recordsOf } from './support.ts'

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
  const fill = (log: PartitionLog, batches: number, text = 'v', from = 0) => {
    for (let i = from; i < from + batches; i++) appended(log, batchOf(3, `${text}${i}${'x'.repeat(100)}`))
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
})
