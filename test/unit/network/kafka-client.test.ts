import { afterEach, describe, expect, test } from 'vitest'
import { type Answer, KafkaClient, KafkaClientError, type RequestHandler } from '../../../src/network/index.ts'
import { createRealPlatform, type Listener, type Socket } from '../../../src/platform/index.ts'
import { apis, encodeResponse } from '../../../src/protocol/index.ts'
import { answeringServer } from '../../support/answering-server.ts'

const platform = createRealPlatform()
const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Answers ApiVersions with as many keys as the correlation id says. */
const handler: RequestHandler = {
  handle: (frame): Answer => {
    const correlationId = frame.readInt32BE(4)
    const apiKeys = Array.from({ length: correlationId }, (_, apiKey) => ({ apiKey, minVersion: 0, maxVersion: 1 }))
    return { chunks: encodeResponse(apis.ApiVersions.response, 0, correlationId, { errorCode: 0, apiKeys }) }
  },
  mayOverlap: () => false,
  isBrief: () => false,
}

async function connectTo(port: number, timeoutMs = 5000): Promise<KafkaClient> {
  const client = await KafkaClient.connect({ platform, host: '127.0.0.1', port, clientId: 'test', timeoutMs })
  cleanups.push(() => client.close())
  return client
}

async function serve(requestHandler: RequestHandler): Promise<number> {
  const server = answeringServer(platform, requestHandler)
  cleanups.push(() => server.close(100))
  return (await server.listen({ name: 'PLAINTEXT', host: 'localhost', port: 0 })).port
}

/** A peer that does what the test says with each chunk. */
async function rawPeer(onData: (socket: Socket, chunk: Buffer) => void): Promise<number> {
  const listener: Listener = await platform.network.listen({ host: '127.0.0.1', port: 0 }, (socket) => {
    socket.start({ onData: (chunk) => onData(socket, chunk), onClose: () => {} })
    cleanups.push(() => socket.destroy())
  })
  cleanups.push(() => listener.close())
  return listener.port
}

test('KafkaClient gives each request its own answer', async () => {
  const client = await connectTo(await serve(handler))
  const answers = await Promise.all(Array.from({ length: 20 }, () => client.request(apis.ApiVersions, 0, {})))
  expect(answers.map(({ apiKeys }) => apiKeys.length)).toEqual(Array.from({ length: 20 }, (_, i) => i))
})

test('localhost is served on IPv4 and, where there is one, IPv6', async () => {
  const port = await serve(handler)
  for (const host of ['127.0.0.1', 'localhost']) {
    const client = await KafkaClient.connect({ platform, host, port, clientId: 'test', timeoutMs: 5000 })
    cleanups.push(() => client.close())
    expect((await client.request(apis.ApiVersions, 0, {})).errorCode).toBe(0)
  }
})

describe('KafkaClient fails every waiting request', () => {
  test('when the time is up', async () => {
    const client = await connectTo(await rawPeer(() => {}), 30)
    const first = client.request(apis.ApiVersions, 0, {}, { timeoutMs: 60_000 })
    const second = client.request(apis.ApiVersions, 0, {})
    await expect(second).rejects.toThrow(/ApiVersions within 30 ms/)
    await expect(first).rejects.toThrow(KafkaClientError)
    expect(client.isOpen).toBe(false)
    await expect(client.request(apis.ApiVersions, 0, {})).rejects.toThrow(KafkaClientError)
  })

  test('when the broker closes the connection', async () => {
    const client = await connectTo(await rawPeer((socket) => socket.destroy()))
    await expect(client.request(apis.ApiVersions, 0, {})).rejects.toThrow(KafkaClientError)
  })

  test.each([
    ['an answer to another request', '00000004 00000063'],
    ['an answer that is cut', '00000006 00000000 0000'],
    ['a length out of range', 'ffffffff'],
    ['HTTP', Buffer.from('HTTP/1.1 200 OK\r\n').toString('hex')],
  ])('when it gets %s', async (_name, hex) => {
    const client = await connectTo(
      await rawPeer((socket) => socket.write([Buffer.from(hex.replaceAll(' ', ''), 'hex')])),
    )
    await expect(client.request(apis.ApiVersions, 0, {})).rejects.toThrow(KafkaClientError)
    expect(client.isOpen).toBe(false)
  })
})

test('a request without response leaves the next answer its own', async () => {
  const silentFirst: RequestHandler = {
    handle: (frame, connection) => (frame.readInt16BE(0) === 0 ? 'none' : handler.handle(frame, connection)),
    mayOverlap: () => false,
    isBrief: () => false,
  }
  const client = await connectTo(await serve(silentFirst))
  client.send(apis.Produce, 9, { acks: 0, timeoutMs: 1, topicData: [] })
  expect((await client.request(apis.ApiVersions, 0, {})).apiKeys).toHaveLength(1)
})
