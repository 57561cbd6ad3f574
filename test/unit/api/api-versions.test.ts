import { expect, test } from 'vitest'
import { servedApis } from '../../../src/api/index.ts'
import { apis, encodeRequest } from '../../../src/protocol/index.ts'
import { harness } from './harness.ts'

const client = { clientSoftwareName: 'kafka-js', clientSoftwareVersion: '1.2.3' }

test('ApiVersions lists every served API with its range, by key', async () => {
  const { ask } = harness()
  const { errorCode, apiKeys } = await ask(apis.ApiVersions, 3, client)
  expect(errorCode).toBe(0)
  const ranges = apiKeys.map(({ apiKey, minVersion, maxVersion }) => `${apiKey}:${minVersion}-${maxVersion}`)
  expect(ranges.join(' ')).toBe(
    '0:0-11 1:4-18 2:1-11 3:0-13 8:2-10 9:1-10 10:0-6 11:0-9 12:0-4 13:0-5 14:0-5 15:0-6 16:0-5 18:0-4 19:2-7 20:1-6 ' +
      '21:0-2 22:0-5 23:2-4 32:1-4 33:0-2 34:1-2 35:1-5 37:0-3 42:0-2 43:0-2 44:0-1 45:0-1 46:0-0 47:0-0 55:0-2 57:0-2 ' +
      '60:0-2 61:0-0 64:0-0 74:0-1 75:0-0 80:0-1 81:0-0',
  )
})

test.each([0, 1, 2, 3, 4])('ApiVersions answers version %i', async (version) => {
  const { ask } = harness()
  const { errorCode, apiKeys } = await ask(apis.ApiVersions, version, version >= 3 ? client : {})
  expect(errorCode).toBe(0)
  expect(apiKeys).toHaveLength(servedApis.length)
})

test.each([
  ['5 with cluster and node id', '0012 0005 00000007 0002 6a34 00 02 61 02 31 00 00000001 00'],
  ['5 with tags in the header that make no sense', '0012 0005 00000007 0002 6a34 ff ff ff ff ff'],
  ['6, whose header and body nobody knows', '0012 0006 00000007 7fff ff ff'],
  ['9 without a client id', '0012 0009 00000007 ffff'],
])('ApiVersions %s gets the fallback: version 0, error 35 and its own range', async (_name, hex) => {
  const { handle } = harness()
  const answer = await handle(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
  if (answer === 'none' || 'close' in answer) throw new Error('No response')
  expect(Buffer.concat(answer.chunks).toString('hex')).toBe(
    '00000010' + '00000007' + '0023' + '00000001' + '001200000004',
  )
})

test('the header of a flexible ApiVersions response has no tags', async () => {
  const { handle } = harness()
  const request = encodeRequest(apis.ApiVersions.request, 3, { correlationId: 7, clientId: 'c' }, client)
  const answer = await handle(Buffer.concat(request).subarray(4))
  if (answer === 'none' || 'close' in answer) throw new Error('No response')
  const bytes = Buffer.concat(answer.chunks)
  expect(bytes.subarray(4, 11).toString('hex')).toBe(
    `000000070000${(servedApis.length + 1).toString(16).padStart(2, '0')}`,
  )
})

test.each([
  ['', '1.0'],
  ['name', ''],
  ['na me', '1.0'],
  ['-name', '1.0'],
  ['name', '1.0-'],
])('ApiVersions with software %j %j is an invalid request in its own version', async (name, version) => {
  const { ask } = harness()
  const body = { clientSoftwareName: name, clientSoftwareVersion: version }
  expect(await ask(apis.ApiVersions, 3, body)).toMatchObject({ errorCode: 42, apiKeys: [] })
})

test('features that this broker supports are told, and the levels of those that have one', async () => {
  const { ask, coordination } = harness()
  coordination.features.set('metadata.version', 2)
  coordination.features.set('eligible.leader.replicas.version', 0)
  expect(await ask(apis.ApiVersions, 4, client)).toMatchObject({
    finalizedFeaturesEpoch: 7,
    finalizedFeatures: [{ name: 'metadata.version', maxVersionLevel: 2, minVersionLevel: 2 }],
    supportedFeatures: [
      { name: 'metadata.version', minVersion: 1, maxVersion: 2 },
      { name: 'eligible.leader.replicas.version', minVersion: 0, maxVersion: 1 },
    ],
  })
  // Readers of version 3 fail at a lowest level of 0.
  expect((await ask(apis.ApiVersions, 3, client)).supportedFeatures).toMatchObject([{ name: 'metadata.version' }])
})
