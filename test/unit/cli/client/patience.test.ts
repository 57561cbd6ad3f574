import { beforeEach, expect, test, vi } from 'vitest'
import { RequestRefusedError, UnknownTopicError } from '../../../../src/cli/client/errors.ts'
import { Patience } from '../../../../src/cli/client/patience.ts'
import { ErrorCode } from '../../../../src/protocol/index.ts'

vi.mock('node:timers/promises', () => ({ setTimeout: async () => undefined }))

let nowMs = 0
let said: string[] = []
let told = new Set<string>()

beforeEach(() => {
  nowMs = 0
  said = []
  told = new Set()
})

const patience = (topicsWereThere = false) =>
  new Patience({
    clock: { now: () => nowMs, monotonic: () => nowMs },
    timeoutMs: 30_000,
    told,
    onWaiting: (reason) => said.push(reason),
    waits: () => true,
    topicsWereThere,
  })

const moving = new RequestRefusedError('Offset of a-0', ErrorCode.NOT_LEADER_OR_FOLLOWER)
const damaged = new RequestRefusedError('Offset of a-0', ErrorCode.KAFKA_STORAGE_ERROR)

/** Fails every 100 ms with what `failure` gives; resolves with the time after which it was given up. */
async function failing(one: Patience, failure: () => Error): Promise<number> {
  const startMs = nowMs
  for (;;) {
    try {
      await one.wait(failure())
    } catch {
      return nowMs - startMs
    }
    nowMs += 100
  }
}

test('one thing that fails is told once, with the time that is left', async () => {
  expect(await failing(patience(), () => moving)).toBeCloseTo(30_000, -3)
  expect(said).toEqual([expect.stringMatching(/^Offset of a-0: .*Trying again for 29 s$/)])
})

test('what is tried within something that is tried again says nothing twice', async () => {
  const outer = patience()
  for (let round = 0; round < 20; round++) {
    const inner = patience()
    await outer.wait(moving)
    nowMs += 1000
    await inner.wait(moving)
    inner.reset()
  }
  expect(said).toHaveLength(1)
})

test('a failure that comes again after a success is told again', async () => {
  const one = patience()
  for (let outage = 0; outage < 2; outage++) {
    await one.wait(moving)
    nowMs += 2000
    await one.wait(moving)
    one.reset()
    nowMs += 3_600_000
  }
  expect(said).toHaveLength(2)
})

test('a damaged partition is given up soon, and not told before', async () => {
  expect(await failing(patience(), () => damaged)).toBeLessThan(6000)
  expect(said).toEqual([])
})

test('a topic that was never there is given up at once, one that was soon', async () => {
  const gone = new UnknownTopicError('a', undefined)
  expect(await failing(patience(), () => gone)).toBe(0)
  expect(await failing(patience(true), () => gone)).toBeGreaterThan(4000)
  expect(await failing(patience(true), () => gone)).toBeLessThan(6000)
})
