import { describe, expect, test } from 'vitest'
import {
  type AppendOutcome,
  type ControllerAnswer,
  ControllerLoop,
  createTopics,
  fenceBroker,
} from '../../../src/controller/index.ts'
import type { MetadataImage, MetadataRecord } from '../../../src/metadata/index.ts'
import { brokerId, describeImage, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { anyConfig, settings } from './support.ts'

/** A log of which the test says when an entry is stored. */
class FakeSink {
  readonly entries: (readonly MetadataRecord[])[] = []
  next: AppendOutcome = 'appended'
  readonly #firstIndex: number

  constructor(firstIndex: number) {
    this.#firstIndex = firstIndex
  }

  nextIndex = () => this.#firstIndex + this.entries.length

  append(records: readonly MetadataRecord[]): AppendOutcome {
    if (this.next === 'appended') this.entries.push(records)
    return this.next
  }
}

const start = imageOf(registration(1))

function setUp(options: { maxQueuedRequests?: number; maxUnstoredRecords?: number } = {}) {
  const sink = new FakeSink(start.index + 1)
  const loop = new ControllerLoop({ sink, maxQueuedRequests: 10, maxUnstoredRecords: 10_000, ...options })
  return { sink, loop }
}

function active(options: { maxQueuedRequests?: number; maxUnstoredRecords?: number } = {}) {
  const parts = setUp(options)
  parts.loop.activate(start)
  return parts
}

let nextTopicId = 1

function create(name: string) {
  const topicIds = [uuid(nextTopicId++)]
  const request = { name, partitionCount: 1, replicationFactor: 1, configs: new Map() }
  const context = { settings, configRules: anyConfig, validateOnly: false, topicIds, placementStart: 0 }
  return (head: MetadataImage) => createTopics(head, [request], context)
}

const read = (head: MetadataImage) => ({ records: [], response: head.topics.size })

/** What a promise has come to by now. */
async function outcomeOf<T>(promise: Promise<T>): Promise<T | 'waiting'> {
  const waiting = new Promise<'waiting'>((resolve) => setImmediate(() => resolve('waiting')))
  return await Promise.race([promise, waiting])
}

function reasonOf(answer: ControllerAnswer<readonly { ok: boolean }[]> | 'waiting') {
  if (answer === 'waiting' || !answer.ok) return answer
  return answer.response.map(({ ok }) => ok)
}

describe('ControllerLoop', () => {
  test('a decision sees what was decided before it, though nothing is stored', async () => {
    const { sink, loop } = active()
    const first = loop.submit(create('orders'))
    const second = loop.submit(create('orders'))
    expect(sink.entries).toHaveLength(1)
    expect(await outcomeOf(first)).toBe('waiting')
    expect(await outcomeOf(second)).toBe('waiting')
    loop.onStored(start.index + 1)
    expect(reasonOf(await first)).toEqual([true])
    expect(reasonOf(await second)).toEqual([false])
  })

  test('no answer leaves before its own entry is stored, and answers leave in order', async () => {
    const { loop } = active()
    const answers = ['a', 'b', 'c'].map((name) => loop.submit(create(name)))
    const states = async () => (await Promise.all(answers.map(outcomeOf))).map((answer) => answer !== 'waiting')
    expect(await states()).toEqual([false, false, false])
    loop.onStored(start.index + 2)
    expect(await states()).toEqual([true, true, false])
    loop.onStored(start.index + 3)
    expect(await states()).toEqual([true, true, true])
  })

  test('a read waits for the highest entry decided before it, and for none when all is stored', async () => {
    const { loop } = active()
    expect(await loop.submit(read)).toEqual({ ok: true, response: 0, index: start.index })
    void loop.submit(create('a'))
    const second = loop.submit(read)
    void loop.submit(create('b'))
    expect(await outcomeOf(second)).toBe('waiting')
    loop.onStored(start.index + 1)
    expect(await second).toEqual({ ok: true, response: 1, index: start.index + 1 })
  })

  test('the head is the image that replaying the entries gives', () => {
    const { sink, loop } = active()
    for (const name of ['a', 'b', 'c']) void loop.submit(create(name))
    let image = start
    for (const records of sink.entries) image = step(image, records).image
    expect(describeImage(loop.head as MetadataImage)).toEqual(describeImage(image))
  })

  test('while inactive every request is refused at once', async () => {
    const { sink, loop } = setUp()
    expect(await loop.submit(create('a'))).toEqual({ ok: false, reason: 'not-controller', mayBeStored: false })
    expect(sink.entries).toEqual([])
    expect(loop.head).toBeUndefined()
  })

  test('losing leadership fails what waits, says what may be stored, and drops the head', async () => {
    const { loop } = active({ maxUnstoredRecords: 1 })
    const stored = loop.submit(create('a'))
    loop.onStored(start.index + 1)
    const decided = loop.submit(create('b'))
    const queued = loop.submit(create('c'))
    loop.deactivate()
    expect(reasonOf(await stored)).toEqual([true])
    expect(await decided).toEqual({ ok: false, reason: 'not-controller', mayBeStored: true })
    expect(await queued).toEqual({ ok: false, reason: 'not-controller', mayBeStored: false })
    expect(loop.head).toBeUndefined()
  })

  test('losing leadership fails a read that saw what may be lost', async () => {
    const { loop } = active()
    void loop.submit(create('a'))
    const seen = loop.submit(read)
    loop.deactivate()
    expect(await seen).toEqual({ ok: false, reason: 'not-controller', mayBeStored: false })
  })

  test('after leadership was lost and won again nothing of the old head is left, and late news of it does no harm', async () => {
    const { sink, loop } = active()
    void loop.submit(create('a'))
    loop.deactivate()
    sink.entries.length = 0
    loop.activate(start)
    expect(loop.head).toBe(start)
    const again = loop.submit(create('a'))
    loop.onStored(start.index)
    expect(await outcomeOf(again)).toBe('waiting')
    loop.onStored(start.index + 1)
    expect(reasonOf(await again)).toEqual([true])
  })

  test('an append that is refused ends the activity, of this request and of those before', async () => {
    const { sink, loop } = active()
    const before = loop.submit(create('a'))
    sink.next = 'not-controller'
    const refused = loop.submit(create('b'))
    expect(await refused).toEqual({ ok: false, reason: 'not-controller', mayBeStored: false })
    expect(await before).toEqual({ ok: false, reason: 'not-controller', mayBeStored: true })
    expect(loop.head).toBeUndefined()
  })

  test('a decision that throws is rejected alone and leaves nothing behind', async () => {
    const { sink, loop } = active()
    const bug = new Error('a bug')
    const thrown = loop.submit(() => {
      throw bug
    })
    const contradicts = loop.submit(() => ({
      records: [{ type: 'NoOp' }, { type: 'RemoveTopic', topicId: uuid(999) }],
      response: undefined,
    }))
    const fine = loop.submit(create('a'))
    await expect(thrown).rejects.toBe(bug)
    await expect(contradicts).rejects.toThrow('a topic that is removed exists')
    loop.onStored(start.index + 1)
    expect(reasonOf(await fine)).toEqual([true])
    expect(sink.entries).toHaveLength(1)
  })

  test('more records than one entry takes are cut, and answered after the last', async () => {
    const { sink, loop } = active()
    const records = Array<MetadataRecord>(105_000).fill({ type: 'NoOp' })
    const answer = loop.submit(() => ({ records, response: 'done' }))
    expect(sink.entries.map((entry) => entry.length)).toEqual([50_000, 50_000, 5_000])
    loop.onStored(start.index + 2)
    expect(await outcomeOf(answer)).toBe('waiting')
    loop.onStored(start.index + 3)
    expect(await answer).toEqual({ ok: true, response: 'done', index: start.index + 3 })
  })

  test('fencing a broker that leads 10,000 partitions and follows 20,000 is one entry', () => {
    const replicas = Array.from(
      { length: 30_000 },
      (_, i) =>
        [
          [1, 2, 3],
          [2, 3, 1],
          [3, 1, 2],
        ][i % 3]!,
    )
    const image = imageOf(...[1, 2, 3].map((id) => registration(id)), ...topicRecords('orders', uuid(1), replicas))
    const sink = new FakeSink(image.index + 1)
    const loop = new ControllerLoop({ sink, maxQueuedRequests: 10, maxUnstoredRecords: 10 })
    loop.activate(image)
    void loop.submit((head) => ({ records: fenceBroker(head, brokerId(1), settings), response: undefined }))
    expect(sink.entries.map((entry) => entry.length)).toEqual([30_001])
    expect(loop.head?.topics.ledBy(brokerId(1))).toEqual([])
    loop.deactivate()
  })

  test('requests wait while too much is not stored, are decided in order when it is, and are refused past the bound', async () => {
    const { sink, loop } = active({ maxUnstoredRecords: 2, maxQueuedRequests: 2 })
    const answers = ['a', 'b', 'c', 'd'].map((name) => loop.submit(create(name)))
    expect(sink.entries).toHaveLength(1)
    expect(await answers[3]).toEqual({ ok: false, reason: 'overloaded', mayBeStored: false })
    loop.onStored(start.index + 1)
    expect(sink.entries).toHaveLength(2)
    loop.onStored(start.index + 2)
    expect(sink.entries.map(([record]) => (record?.type === 'Topic' ? record.name : undefined))).toEqual([
      'a',
      'b',
      'c',
    ])
  })

  test('a full sink is tried again when something is stored, before anything else is decided', async () => {
    const { sink, loop } = active()
    const first = loop.submit(create('a'))
    sink.next = 'full'
    const second = loop.submit(create('b'))
    const third = loop.submit(create('b'))
    expect(sink.entries).toHaveLength(1)
    sink.next = 'appended'
    loop.onStored(start.index + 1)
    expect(reasonOf(await first)).toEqual([true])
    expect(sink.entries).toHaveLength(2)
    expect(await outcomeOf(second)).toBe('waiting')
    loop.onStored(start.index + 2)
    expect(reasonOf(await second)).toEqual([true])
    expect(reasonOf(await third)).toEqual([false])
  })

  test('what a full sink did not take is dropped with leadership', async () => {
    const { sink, loop } = active()
    sink.next = 'full'
    const unsent = loop.submit(create('a'))
    loop.deactivate()
    expect(await unsent).toMatchObject({ ok: false, reason: 'not-controller' })
    sink.next = 'appended'
    loop.activate(start)
    loop.onStored(start.index + 1)
    expect(sink.entries).toEqual([])
  })
})
