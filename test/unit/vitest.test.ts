import { createConnection } from 'node:net'
import { expect, test } from 'vitest'
import { type RookeryContext, rookeryGlobalSetup } from '../../src/vitest.ts'
import { connect } from '../support/kafka-connection.ts'
import { produceBatch } from '../support/producing.ts'

test('a global set-up starts a broker, tells tests of it, empties it before tests run again, and stops it', async () => {
  let provided: RookeryContext | undefined
  let rerun: (() => Promise<void>) | undefined
  const tearDown = await rookeryGlobalSetup({ topics: ['orders'] })({
    provide: (_key, value) => {
      provided = value
    },
    onTestsRerun: (callback) => {
      rerun = callback
    },
  })
  const { bootstrapServers, port, clusterId } = provided!
  expect(structuredClone(provided)).toEqual({ bootstrapServers: `localhost:${port}`, port, clusterId })
  const client = await connect(bootstrapServers)
  const batch = { records: [{ timestamp: 1, value: Buffer.from('a') }] }
  expect(await produceBatch(client, 'orders', 0, batch)).toBe(0)
  expect(await produceBatch(client, 'orders', 0, batch)).toBe(1)
  await rerun!()
  expect(await produceBatch(client, 'orders', 0, batch)).toBe(0)
  client.close()
  await tearDown()
  await expect(
    new Promise((resolve, reject) =>
      createConnection({ host: '127.0.0.1', port }, () => resolve('connected')).on('error', reject),
    ),
  ).rejects.toThrow('ECONNREFUSED')
})
