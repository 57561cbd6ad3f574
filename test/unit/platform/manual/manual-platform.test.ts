import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createManualPlatform, createMemoryFiles, createRealPlatform } from '../../../../src/platform/index.ts'
import { turn, until } from '../../../support/condition.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

const startMs = Date.UTC(2020, 0, 1)

function manual(files = createMemoryFiles()) {
  return createManualPlatform({ ...createRealPlatform(), files }, startMs)
}

test('the clock begins where it is told to, stands still, and moves as far as it is moved', async () => {
  const { still, advance } = manual()
  const { clock } = still
  const monotonic = clock.monotonic()
  await until(() => performance.now() % 5 > 0, 'some real time')
  expect([clock.now(), clock.monotonic()]).toEqual([startMs, monotonic])
  await advance(1.5)
  expect([clock.now(), clock.monotonic()]).toEqual([startMs + 1, monotonic + 1.5])
  await advance(0.5)
  expect(clock.now()).toBe(startMs + 2)
})

test('timers run in the order of their moments, those of one moment as they were set, each at its moment', async () => {
  const { still, advance } = manual()
  const ran: string[] = []
  const note = (name: string) => () => ran.push(`${name}@${still.clock.now() - startMs}`)
  still.timers.set(30, note('c'))
  still.timers.set(10, note('a1'))
  still.timers.set(10, note('a2'))
  still.timers.set(20, note('cancelled')).cancel()
  still.timers.set(20, () => {
    note('b')()
    still.timers.set(0, note('at once'))
    still.timers.set(5, note('b + 5'))
    still.timers.set(100, note('late'))
  })
  await advance(9)
  expect(ran).toEqual([])
  await advance(91)
  expect(ran).toEqual(['a1@10', 'a2@10', 'b@20', 'at once@20', 'b + 5@25', 'c@30'])
  await advance(20)
  expect(ran.at(-1)).toBe('late@120')
})

test('a timer that another one of its moment cancels does not run', async () => {
  const { still, advance } = manual()
  const ran: string[] = []
  still.timers.set(10, () => second.cancel())
  const second = still.timers.set(10, () => ran.push('second'))
  await advance(10)
  expect(ran).toEqual([])
})

test('timers of fractions of a millisecond come due', async () => {
  const { still, advance } = manual()
  let ran = 0
  const again = (): void => {
    ran++
    still.timers.set(0.1, again)
  }
  still.timers.set(0.1, again)
  for (let i = 0; i < 10; i++) await advance(0.1)
  expect(ran).toBe(10)
})

test('advance waits for what timers began in files, handles included, before time goes on', async () => {
  await using folder = await temporaryFolder()
  const { platform, still, advance } = manual(createRealPlatform().files)
  const done: string[] = []
  still.timers.set(10, async () => {
    const file = await platform.files.open(join(folder.path, 'a'), 'create')
    await file.write([Buffer.from('x')], 0)
    await file.sync()
    await file.close()
    await platform.files.rename(join(folder.path, 'a'), join(folder.path, 'b'))
    done.push(`written@${still.clock.now() - startMs}`)
  })
  still.timers.set(20, () => done.push('next'))
  await advance(20)
  expect(done).toEqual(['written@10', 'next'])
})

test('advance waits for deferred work, and for what it began before', async () => {
  const { still, advance } = manual()
  let turns = 0
  const again = (): void => {
    if (++turns < 20) still.timers.defer(again)
  }
  still.timers.defer(again)
  await advance(0)
  expect(turns).toBe(20)
})

test('several advances are one after the other; what a timer throws is told, and the next goes on', async () => {
  const { still, advance } = manual()
  const ran: number[] = []
  for (const ms of [5, 15, 25]) still.timers.set(ms, () => ran.push(still.clock.now() - startMs))
  still.timers.set(10, () => {
    throw new Error('of a timer')
  })
  const outcomes = await Promise.allSettled([advance(10), advance(10), advance(10)])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
  expect(ran).toEqual([5, 15, 25])
})

test('a wait of the running clock ends in real time, or when the other is moved, whichever is first', async () => {
  const { running, advance } = manual()
  const ended: string[] = []
  running.timers.set(5, () => ended.push('real'))
  running.timers.set(1_000_000, () => ended.push('moved'))
  running.timers.set(5, () => ended.push('cancelled')).cancel()
  await until(() => ended.length > 0, 'the short wait is over')
  expect(ended).toEqual(['real'])
  const before = running.clock.monotonic()
  await advance(1_000_000)
  expect(ended).toEqual(['real', 'moved'])
  expect(running.clock.monotonic() - before).toBeGreaterThanOrEqual(1_000_000)
  await turn()
  expect(ended).toHaveLength(2)
})
