import { beforeEach, describe, expect, test } from 'vitest'
import type { LeaderEpoch } from '../../../src/base/index.ts'
import {
  answer,
  CoordinatorRuntime,
  type Now,
  type Outcome,
  type RecordCodec,
  type RuntimeResult,
  type StateMachine,
  type Ticket,
} from '../../../src/coordinator-runtime/index.ts'
import { BatchView, buildBatch, buildControlBatch } from '../../../src/protocol/index.ts'
import { inlineOffload, ManualTime, MemoryStore, recordingLogger } from './support.ts'

interface Entry {
  readonly key: string
  readonly value: string | null
}

const codec: RecordCodec<Entry> = {
  encode: ({ key, value }) => ({ key: Buffer.from(key), value: value === null ? null : Buffer.from(value) }),
  decode(key, value) {
    if (key.toString() === 'broken') throw new Error('Broken record')
    if (key.toString() === 'foreign') return undefined
    return { key: key.toString(), value: value?.toString() ?? null }
  },
}

/** A map of texts: the smallest coordinator. */
class Texts implements StateMachine<Entry, string> {
  readonly texts = new Map<string, string>()
  readonly fired: string[] = []
  loaded = 0
  undone = 0

  replay({ key, value }: Entry): void {
    if (value === null) this.texts.delete(key)
    else this.texts.set(key, value)
  }

  keyOf({ key }: Entry): string {
    return key
  }

  onLoaded(): Outcome<Entry, string> {
    this.loaded++
    return {}
  }

  onTimer(event: string): Outcome<Entry, string> {
    this.fired.push(event)
    return { records: [{ key: 'fired', value: event }] }
  }

  put(key: string, value: string, ticket: Ticket<string>): Outcome<Entry, string> {
    return {
      records: [{ key, value }],
      answers: [answer(ticket, `put ${value}`)],
      onRefused: () => {
        this.undone++
        return {}
      },
    }
  }

  get(key: string, ticket: Ticket<string>): Outcome<Entry, string> {
    return { answers: [answer(ticket, this.texts.get(key) ?? '-')] }
  }
}

let time: ManualTime
let store: MemoryStore
let logger: ReturnType<typeof recordingLogger>
let machines: Texts[]
let runtime: CoordinatorRuntime<Texts, Entry, string>

beforeEach(() => {
  time = new ManualTime()
  store = new MemoryStore()
  logger = recordingLogger()
  machines = []
  runtime = new CoordinatorRuntime<Texts, Entry, string>({
    topic: '__texts',
    store,
    clock: time,
    timers: time,
    offload: inlineOffload,
    logger,
    codec,
    createMachine: () => {
      const machine = new Texts()
      machines.push(machine)
      return machine
    },
    writeTimeoutMs: 5000,
  })
})

async function lead(leaderEpoch: number, partition = 0): Promise<void> {
  runtime.becomeLeader(partition, store.lead(partition, leaderEpoch))
  await time.settle()
}

/** Follows a promise without waiting for it. */
function follow<T>(promise: Promise<RuntimeResult<T>>): { result: RuntimeResult<T> | undefined } {
  const followed: { result: RuntimeResult<T> | undefined } = { result: undefined }
  void promise.then((result) => {
    followed.result = result
  })
  return followed
}

const put = (key: string, value: string, partition = 0) =>
  follow(runtime.run<string>(partition, key, (machine, _now, ticket) => machine.put(key, value, ticket)))
const get = (key: string, partition = 0) =>
  follow(runtime.run<string>(partition, key, (machine, _now, ticket) => machine.get(key, ticket)))
const set = (change: Outcome<Entry, string>) => runtime.run(0, null, () => change)

describe('CoordinatorRuntime.run()', () => {
  test('refuses a partition that this broker does not lead', async () => {
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: false, reason: 'not-coordinator' })
  })

  test('answers a write when the high watermark passes it, and not before', async () => {
    await lead(1)
    store.commitsAtOnce = false
    const write = put('a', '1')
    await time.settle()
    expect(write.result).toBeUndefined()
    expect(machines[0]!.texts.get('a')).toBe('1')
    store.commit()
    await time.settle()
    expect(write.result).toEqual({ ok: true, value: 'put 1' })
  })

  test('holds back a read that saw an uncommitted write of its key, and no other', async () => {
    await lead(1)
    put('b', 'old')
    await time.settle()
    store.commitsAtOnce = false
    put('a', '1')
    const [same, other] = [get('a'), get('b')]
    const all = follow(runtime.run<string>(0, null, (machine, _now, ticket) => machine.get('b', ticket)))
    await time.settle()
    expect(same.result).toBeUndefined()
    expect(all.result).toBeUndefined()
    expect(other.result).toEqual({ ok: true, value: 'old' })
    store.commit()
    await time.settle()
    expect(same.result).toEqual({ ok: true, value: '1' })
    expect(all.result).toEqual({ ok: true, value: 'old' })
  })

  test('writes the records of one decision as one batch', async () => {
    await lead(1)
    await Promise.race([
      set({
        records: [
          { key: 'a', value: '1' },
          { key: 'b', value: '2' },
        ],
      }),
      time.settle(),
    ])
    expect(store.batches()).toHaveLength(1)
    expect(new BatchView(store.batches()[0]!).recordCount).toBe(2)
  })

  test('takes a decision back when its append is refused', async () => {
    await lead(1)
    for (const [refusal, reason] of [
      ['not-enough-replicas', 'coordinator-not-available'],
      ['storage-error', 'not-coordinator'],
      ['record-too-large', 'record-too-large'],
    ] as const) {
      store.refusal = refusal
      const write = put('a', '1')
      await time.settle()
      expect(write.result).toEqual({ ok: false, reason })
    }
    expect(machines[0]!.undone).toBe(3)
    expect(machines[0]!.texts.size).toBe(0)
    store.refusal = undefined
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '-' })
  })

  test('refuses a batch above what the topic takes without asking the log', async () => {
    await lead(1)
    store.maxBytes = 100
    const write = put('a', 'x'.repeat(100))
    await time.settle()
    expect(write.result).toEqual({ ok: false, reason: 'record-too-large' })
    expect(store.batches()).toHaveLength(0)
  })

  test('drops the state when the log says that this replica does not lead any more', async () => {
    await lead(1)
    store.lead(0, 2)
    const write = put('a', '1')
    await time.settle()
    expect(write.result).toEqual({ ok: false, reason: 'not-coordinator' })
    expect(runtime.partitions).toEqual([])
  })

  test('loads the state anew when a write is lost after its append', async () => {
    await lead(1)
    put('a', 'kept')
    await time.settle()
    store.commitsAtOnce = false
    const write = put('a', 'lost')
    const read = get('a')
    store.lose('storage-error')
    await time.settle()
    expect(write.result).toEqual({ ok: false, reason: 'not-coordinator' })
    expect(read.result).toEqual({ ok: false, reason: 'not-coordinator' })
    const again = get('a')
    await time.settle()
    expect(again.result).toEqual({ ok: true, value: 'kept' })
    expect(machines).toHaveLength(2)
  })

  test('fails a write that takes too long, keeps its record and answers later reads when it is committed', async () => {
    await lead(1)
    store.commitsAtOnce = false
    const write = put('a', '1')
    await time.advance(4999)
    expect(write.result).toBeUndefined()
    await time.advance(1)
    expect(write.result).toEqual({ ok: false, reason: 'coordinator-not-available' })
    const slow = get('a')
    await time.advance(5000)
    expect(slow.result).toEqual({ ok: false, reason: 'coordinator-not-available' })
    const read = get('a')
    await time.settle()
    expect(read.result).toBeUndefined()
    store.commit()
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '1' })
    expect(time.timerCount).toBe(0)
  })
})

describe('CoordinatorRuntime timers', () => {
  test('fire once by key, and write what they decide', async () => {
    await lead(1)
    void set({ timers: [{ key: 't', delayMs: 100, event: 'first' }] })
    void set({ timers: [{ key: 't', delayMs: 200, event: 'second' }] })
    void set({
      timers: [{ key: 'u', delayMs: 50, event: 'never' }, { key: 'u' }],
    })
    await time.advance(1000)
    expect(machines[0]!.fired).toEqual(['second'])
    expect(machines[0]!.texts.get('fired')).toBe('second')
  })

  test('are set also when the append of their decision is refused', async () => {
    await lead(1)
    store.refusal = 'not-enough-replicas'
    void set({ records: [{ key: 'a', value: '1' }], timers: [{ key: 't', delayMs: 100, event: 'set' }] })
    await time.advance(100)
    expect(machines[0]!.fired).toEqual(['set'])
  })

  test('end with the leadership', async () => {
    await lead(1)
    void set({ timers: [{ key: 't', delayMs: 100, event: 'late' }] })
    runtime.resign(0, 2 as LeaderEpoch)
    await time.advance(1000)
    expect(machines[0]!.fired).toEqual([])
    expect(time.timerCount).toBe(0)
  })
})

describe('a CoordinatorRuntime whose rules have a time of their own', () => {
  const ruleTime = new ManualTime()
  let changes = 0
  beforeEach(() => {
    changes = 0
    runtime = new CoordinatorRuntime<Texts, Entry, string>({
      topic: '__texts',
      store,
      clock: time,
      timers: time,
      ruleTime: { clock: ruleTime, timers: ruleTime },
      offload: inlineOffload,
      logger,
      codec,
      createMachine: () => new Texts(),
      writeTimeoutMs: 5000,
      onChange: () => changes++,
    })
  })

  test('sets the timers of machines by it, and tells them of it', async () => {
    await lead(1)
    let seenMs = 0
    void runtime.run(0, null, (_machine, { monotonicMs }) => {
      seenMs = monotonicMs
      return { timers: [{ key: 't', delayMs: 50, event: 'fired' }] }
    })
    expect(seenMs).toBe(ruleTime.monotonic())
    changes = 0
    await time.advance(1000)
    expect(changes).toBe(0)
    await ruleTime.advance(50)
    expect(changes).toBe(1) // what the timer wrote
  })

  test('tells of each change, and not of reads', async () => {
    await lead(1)
    changes = 0
    get('a')
    await time.settle()
    expect(changes).toBe(0)
    put('a', '1')
    void set({ timers: [{ key: 't', delayMs: 50, event: 'e' }] })
    await time.settle()
    expect(changes).toBe(2)
  })
})

describe('CoordinatorRuntime.becomeLeader()', () => {
  test.each([true, false])('replays what the log holds, in chunks or by batch: %s', async (readsWholeChunks) => {
    store.readsWholeChunks = readsWholeChunks
    const record = (key: string, value: string | null) => ({
      timestamp: 1,
      key: Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
    })
    store.preload(buildBatch({ records: [record('a', '1'), record('b', '1'), record('c', '1')] }))
    for (const used of ['gzip', 'snappy', 'lz4', 'zstd'] as const) {
      store.preload(buildBatch({ codec: used, records: [record(used, 'packed'), record('a', used)] }))
    }
    store.preload(buildBatch({ records: [record('b', null), record('foreign', 'x'), { timestamp: 1, value: null }] }))
    store.preload(buildBatch({ records: [record('c', 'in doubt')], transactional: true, producerId: 1 }))
    store.preload(
      buildControlBatch({ type: 'abort', coordinatorEpoch: 0, producerId: 1, producerEpoch: 0, timestamp: 1 }),
    )
    await lead(3)
    expect(Object.fromEntries(machines[0]!.texts)).toEqual({
      a: 'zstd',
      c: '1',
      gzip: 'packed',
      snappy: 'packed',
      lz4: 'packed',
      zstd: 'packed',
    })
    expect(machines[0]!.loaded).toBe(1)
  })

  test('answers that it loads until all of the log as it was at the start is committed and replayed', async () => {
    await lead(1)
    put('a', '1')
    await time.settle()
    store.commitsAtOnce = false
    put('a', '2')
    await time.settle()
    await lead(2)
    await time.advance(50)
    const early = get('a')
    await time.settle()
    expect(early.result).toEqual({ ok: false, reason: 'coordinator-load-in-progress' })
    store.commit()
    await time.advance(10)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '2' })
  })

  test('counts in any leader epoch when the topic was forgotten, and who waited is told', async () => {
    await lead(3)
    const waiting = follow(runtime.run<string>(0, 'a', () => ({})))
    runtime.forget()
    await time.settle()
    expect(waiting.result).toEqual({ ok: false, reason: 'not-coordinator' })
    await lead(0)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '-' })
  })

  test('gives the loop back between stretches of work', async () => {
    const records = Array.from({ length: 1000 }, (_, i) => ({
      timestamp: 1,
      key: Buffer.from(`k${i}`),
      value: Buffer.from('v'),
    }))
    store.preload(buildBatch({ records }))
    runtime.becomeLeader(0, store.lead(0, 1))
    // Every look at the clock finds that the stretch is over.
    const { monotonic } = time
    time.monotonic = () => {
      time.monotonicMs += 10
      return monotonic.call(time)
    }
    let turns = 0
    const { defer } = time
    time.defer = (callback) => {
      turns++
      defer.call(time, callback)
    }
    await time.settle()
    expect(machines[0]!.texts.size).toBe(1000)
    expect(turns).toBeGreaterThanOrEqual(15)
  })

  test('takes one turn of the loop for many small batches', async () => {
    for (let i = 0; i < 1000; i++) {
      store.preload(buildBatch({ records: [{ timestamp: 1, key: Buffer.from(`k${i}`), value: Buffer.from('v') }] }))
    }
    let turns = 0
    const { defer } = time
    time.defer = (callback) => {
      turns++
      defer.call(time, callback)
    }
    await lead(1)
    expect(machines[0]!.texts.size).toBe(1000)
    expect(turns).toBe(1)
  })

  test('of many partitions reads four at a time, and serves the first while others wait', async () => {
    const partitions = Array.from({ length: 12 }, (_, partition) => partition)
    for (const partition of partitions) {
      store.preload(
        buildBatch({ records: [{ timestamp: 1, key: Buffer.from('a'), value: Buffer.from('1') }] }),
        partition,
      )
    }
    const open = new Map<number, () => void>()
    const begun: number[] = []
    const { read } = store
    store.read = async (of, leaderEpoch, fromOffset, maxBytes) => {
      begun.push(of.partition)
      await new Promise<void>((resolve) => open.set(of.partition, resolve))
      return await read.call(store, of, leaderEpoch, fromOffset, maxBytes)
    }
    for (const partition of partitions) runtime.becomeLeader(partition, store.lead(partition, 1))
    await time.settle()
    expect(begun).toEqual([0, 1, 2, 3])
    runtime.resign(1, 2 as LeaderEpoch) // what gives up makes place too
    for (const partition of [0, 1]) open.get(partition)!()
    await time.settle()
    expect(begun).toEqual([0, 1, 2, 3, 4, 5])
    const [first, last] = [get('a', 0), get('a', 11)]
    await time.settle()
    expect(first.result).toEqual({ ok: true, value: '1' })
    expect(last.result).toEqual({ ok: false, reason: 'coordinator-load-in-progress' })
    for (let i = 2; i < 12; i++) {
      open.get(i)!()
      await time.settle()
    }
    expect(begun).toEqual(partitions)
    const loaded = get('a', 11)
    await time.settle()
    expect(loaded.result).toEqual({ ok: true, value: '1' })
  })

  test('that waits for the high watermark keeps no other from loading', async () => {
    store.commitsAtOnce = false
    for (const partition of [0, 1, 2, 3, 4, 5]) {
      await lead(1, partition)
      put('a', '1', partition)
    }
    await time.settle()
    for (const partition of [0, 1, 2, 3, 4, 5]) await lead(2, partition)
    store.commit(5)
    await time.advance(50)
    const [waits, loaded] = [get('a', 0), get('a', 5)]
    await time.settle()
    expect(waits.result).toEqual({ ok: false, reason: 'coordinator-load-in-progress' })
    expect(loaded.result).toEqual({ ok: true, value: '1' })
    for (const partition of [0, 1, 2, 3, 4]) store.commit(partition)
    await time.advance(50)
    const late = get('a', 0)
    await time.settle()
    expect(late.result).toEqual({ ok: true, value: '1' })
  })

  test('of a log that cannot be read makes place for the next, each time', async () => {
    for (const partition of [0, 1, 2, 3, 4, 5]) {
      store.preload(
        buildBatch({ records: [{ timestamp: 1, key: Buffer.from('a'), value: Buffer.from('1') }] }),
        partition,
      )
    }
    const { read } = store
    store.read = async (of, ...rest) => {
      if (of.partition < 5) throw new Error('EIO')
      return await read.call(store, of, ...rest)
    }
    for (const partition of [0, 1, 2, 3, 4, 5]) await lead(1, partition)
    await time.advance(10_000)
    const loaded = get('a', 5)
    await time.settle()
    expect(loaded.result).toEqual({ ok: true, value: '1' })
  })

  test('is not disturbed by a write of the epoch before that ends later', async () => {
    await lead(1)
    store.commitsAtOnce = false
    put('a', '1')
    await time.settle()
    await lead(2)
    store.fail('not-leader')
    store.commit()
    await time.advance(100)
    expect(machines).toHaveLength(2)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '1' })
  })

  test('ignores late news of older epochs', async () => {
    await lead(5)
    put('a', '1')
    await time.settle()
    runtime.becomeLeader(0, 4 as LeaderEpoch)
    runtime.becomeLeader(0, 5 as LeaderEpoch)
    runtime.resign(0, 4 as LeaderEpoch)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '1' })
    expect(machines).toHaveLength(1)

    runtime.resign(0, 6 as LeaderEpoch)
    runtime.becomeLeader(0, 6 as LeaderEpoch)
    runtime.becomeLeader(0, 5 as LeaderEpoch)
    expect(runtime.partitions).toEqual([])
  })

  test('begins anew in the epoch that it had when the log of the partition had been offline', async () => {
    await lead(5)
    put('a', '1')
    await time.settle()
    store.epochs.delete(0)
    const refused = put('b', '2')
    await time.settle()
    expect(refused.result).toEqual({ ok: false, reason: 'not-coordinator' })
    expect(runtime.partitions).toEqual([])
    runtime.becomeLeader(0, 4 as LeaderEpoch)
    expect(runtime.partitions).toEqual([])

    await lead(5)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '1' })
  })

  test('fails what waits in the epoch before, and a late commit there changes nothing', async () => {
    await lead(1)
    store.commitsAtOnce = false
    const write = put('a', '1')
    const parked = follow(runtime.run<string>(0, 'a', () => ({})))
    await lead(2)
    expect(write.result).toEqual({ ok: false, reason: 'not-coordinator' })
    expect(parked.result).toEqual({ ok: false, reason: 'not-coordinator' })
    store.commit()
    await time.advance(10)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '1' })
    expect(machines).toHaveLength(2)
  })

  test('gives up a load when the leadership goes meanwhile', async () => {
    store.preload(buildBatch({ records: [{ timestamp: 1, key: Buffer.from('a'), value: Buffer.from('1') }] }))
    runtime.becomeLeader(0, store.lead(0, 1))
    runtime.resign(0, 2 as LeaderEpoch)
    await time.settle()
    expect(machines[0]!.loaded).toBe(0)
    expect(runtime.partitions).toEqual([])

    runtime.becomeLeader(0, 3 as LeaderEpoch)
    await time.settle()
    expect(runtime.partitions).toEqual([])
  })

  test('tries a load that failed again, later each time, and says so', async () => {
    store.preload(buildBatch({ records: [{ timestamp: 1, key: Buffer.from('a'), value: Buffer.from('1') }] }))
    store.readFault = new Error('EIO')
    await lead(1)
    await time.advance(500 + 1000)
    expect(logger.lines).toEqual(Array.from({ length: 3 }, () => 'error coordinator load failed'))
    const early = get('a')
    await time.settle()
    expect(early.result).toEqual({ ok: false, reason: 'coordinator-load-in-progress' })
    store.readFault = undefined
    await time.advance(2000)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: '1' })
  })

  test('does not serve a partition with a record that it cannot read', async () => {
    store.preload(buildBatch({ records: [{ timestamp: 1, key: Buffer.from('broken'), value: null }] }))
    await lead(1)
    const read = get('a')
    await time.settle()
    expect(read.result).toEqual({ ok: false, reason: 'coordinator-load-in-progress' })
    expect(logger.lines).toEqual(['error coordinator load failed'])
    runtime.stop()
    expect(time.timerCount).toBe(0)
  })

  test('keeps partitions apart', async () => {
    await lead(1, 0)
    await lead(7, 3)
    put('a', 'zero', 0)
    put('a', 'three', 3)
    await time.settle()
    const read = get('a', 3)
    runtime.resign(0, 2 as LeaderEpoch)
    await time.settle()
    expect(read.result).toEqual({ ok: true, value: 'three' })
    expect(runtime.partitions).toEqual([3])
  })
})

test('Now tells wall clock and monotonic time apart', async () => {
  await lead(1)
  await time.advance(1234)
  let seen: Now | undefined
  void runtime.run(0, null, (_machine, now) => {
    seen = now
    return {}
  })
  expect(seen).toEqual({ wallMs: time.nowMs, monotonicMs: 1234 })
})
