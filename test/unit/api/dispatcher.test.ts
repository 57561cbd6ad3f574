import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { servedApis } from '../../../src/api/index.ts'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { apis, type MessageInput } from '../../../src/protocol/index.ts'
import { harness } from './harness.ts'

/** int16 key | int16 version | int32 correlation id | client id "c" | body */
function rawRequest(apiKey: number, apiVersion: number, body: Uint8Array = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(11)
  header.writeInt16BE(apiKey, 0)
  header.writeInt16BE(apiVersion, 2)
  header.writeInt32BE(7, 4)
  header.writeInt16BE(1, 8)
  header.write('c', 10)
  return Buffer.concat([header, body])
}

test.each([
  ['an unknown key', 999, 0, '999'],
  ['LeaderAndIsr', 4, 1, '4'],
  ['Produce 2, though advertised', 0, 2, 'Produce'],
  ['Produce 12', 0, 12, 'Produce'],
  ['Fetch 3', 1, 3, 'Fetch'],
  ['Fetch 19', 1, 19, 'Fetch'],
  ['InitProducerId 6', 22, 6, 'InitProducerId'],
  ['a negative version', 3, -1, 'Metadata'],
])('%s closes the connection and is named', async (_name, apiKey, apiVersion, api) => {
  const { handle } = harness()
  expect(await handle(rawRequest(apiKey, apiVersion))).toMatchObject({
    close: expect.stringContaining('not served'),
    details: { api, apiKey, apiVersion },
  })
})

test('a body that ends too early closes the connection and is named', async () => {
  const { handle } = harness()
  expect(await handle(rawRequest(3, 1, Buffer.from([0, 0, 0, 9])))).toMatchObject({
    close: expect.any(String),
    details: { api: 'Metadata', apiKey: 3, apiVersion: 1 },
  })
})

test.each([0, 1, 7, 9])('a header cut after %i bytes closes the connection', async (length) => {
  const { handle } = harness()
  expect(await handle(rawRequest(3, 1).subarray(0, length))).toHaveProperty('close')
})

describe('hostile requests', () => {
  const served = servedApis.flatMap(({ api, versions }) =>
    Array.from({ length: versions.max - versions.min + 1 }, (_, i) => [api.key, versions.min + i] as const),
  )

  test('random bodies are answered or close the connection, and never throw', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...served), fc.uint8Array({ maxLength: 120 }), async ([key, version], body) => {
        const { handle } = harness()
        const answer = await handle(rawRequest(key, version, body))
        expect(answer === 'none' || 'close' in answer || answer.chunks.length > 0).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  test('random frames are answered or close the connection, and never throw', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 40 }), async (bytes) => {
        const { handle } = harness()
        const answer = await handle(Buffer.from(bytes))
        expect(answer === 'none' || 'close' in answer || answer.chunks.length > 0).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  test.each(served)(
    'API %i version %i refuses counts of 2^31-1 without taking memory for them',
    async (key, version) => {
      const { handle } = harness()
      const before = process.memoryUsage().arrayBuffers
      for (const fill of [0x7f, 0xff]) {
        const answer = await handle(rawRequest(key, version, Buffer.alloc(64, fill)))
        expect(answer === 'none' || 'close' in answer || answer.chunks.length > 0).toBe(true)
      }
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5_000_000)
    },
  )
})

describe('a handler that fails', () => {
  test('gets an answer of its own shape with UNKNOWN_SERVER_ERROR', async () => {
    const { ask, replicas, metrics } = harness()
    replicas.listOutcome = () => {
      throw new Error('A bug')
    }
    const topics = [{ name: 'a', partitions: [{ partitionIndex: 4, timestamp: -1n }] }]
    expect(await ask(apis.ListOffsets, 6, { replicaId: -1, topics })).toMatchObject({
      topics: [{ name: 'a', partitions: [{ partitionIndex: 4, errorCode: -1, offset: -1 }] }],
    })
    expect(metrics.snapshot()).toMatchObject({
      'ErrorsPerSec,request=ListOffsets,error=UNKNOWN_SERVER_ERROR': 1,
      'RequestsPerSec,request=ListOffsets': 1,
    })
  })

  test.each(servedApis.map((each) => [each.api.name, each] as const))(
    '%s has such an answer in every version',
    (_name, { api, versions, fault }) => {
      const { services } = harness()
      expect(services).toBeDefined()
      for (let version = versions.min; version <= versions.max; version++) {
        const empty = emptyBody(api.request.fields) as MessageInput<typeof api.request>
        const body = fault(empty as never, -1, version)
        expect(() => api.response.codec(version)).not.toThrow()
        expect(body).toBeDefined()
      }
    },
  )

  test('a controller that does not answer in time is REQUEST_TIMED_OUT', async () => {
    const { ask, coordination, logLines, metrics } = harness()
    coordination.fault = new CoordinationError('timed-out', 'No controller')
    const topics = [{ name: 'a', numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }]
    expect(await ask(apis.CreateTopics, 7, { topics })).toMatchObject({ topics: [{ name: 'a', errorCode: 7 }] })
    // A client that gives no time makes as many of them as it likes: nobody is to be woken for it.
    expect(logLines).toMatchObject([{ level: 'warn', message: 'request not carried out' }])
    expect(metrics.snapshot()).toMatchObject({
      'ErrorsPerSec,request=CreateTopics,error=UNKNOWN_SERVER_ERROR': 0,
    })
  })

  test('has only the beginning of a long client id in the log', async () => {
    const { handle } = harness()
    const frame = Buffer.concat([Buffer.from([0, 3, 0, 1, 0, 0, 0, 1, 0x75, 0x30]), Buffer.alloc(30_000, 'c')])
    expect(await handle(frame)).toMatchObject({ details: { clientId: 'c'.repeat(200) } })
  })
})

/** A request as it reads with everything at its default. */
function emptyBody(fields: Readonly<Record<string, { readonly default: unknown }>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.default]))
}
