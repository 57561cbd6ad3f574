import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRealPlatform } from '../../src/platform/index.ts'
import { createSimulation } from '../../src/platform/simulated/index.ts'
import {
  loadGrpcNetwork,
  type RpcChannel,
  RpcError,
  type RpcListener,
  type RpcNetwork,
  type RpcService,
} from '../../src/rpc/index.ts'
import { createAuthority, tlsOf } from '../support/certificates.ts'
import { describeWithPeer } from '../support/peers.ts'
import { createSocketRpc } from '../support/socket-rpc.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

type Within = (body: (network: RpcNetwork, host: string) => Promise<void>) => Promise<void>

const implementations: readonly { name: string; within: Within }[] = [
  { name: 'gRPC', within: async (body) => body(await loadGrpcNetwork(), '127.0.0.1') },
  { name: 'sockets', within: (body) => body(createSocketRpc(createRealPlatform()), '127.0.0.1') },
  {
    name: 'simulated sockets',
    async within(body) {
      const simulation = createSimulation({ seed: 1 })
      const { platform } = simulation.host('a')
      await simulation.run(body(createSocketRpc(platform), 'localhost'))
    },
  },
]

/** Echoes; refuses what is empty, and has a bug for what begins with 9. */
const echo: RpcService = {
  async call(_method, request) {
    if (request.length === 0) throw new RpcError('refused-by-peer', 'nothing was asked')
    if (request[0] === 9) throw new Error('a bug')
    return request
  },
  stream: (_method, stream) => ({
    onMessage(message) {
      if (message[0] === 9) stream.cancel(new RpcError('refused-by-peer', 'not with you'))
      else stream.send(message)
    },
    onClose() {},
  }),
}

async function serving(
  network: RpcNetwork,
  host: string,
  service: RpcService,
  body: (channel: RpcChannel, listener: RpcListener) => Promise<void>,
): Promise<void> {
  const listener = await network.listen({ host, port: 0 }, service)
  const channel = network.connect({ host, port: listener.port })
  try {
    await body(channel, listener)
  } finally {
    channel.close()
    await listener.close()
  }
}

/** Opens a stream, sends `first`, and resolves with how it closed; `onMessage` may do more. */
function converse(
  channel: RpcChannel,
  first: Uint8Array,
  onMessage: (message: Buffer, send: (bytes: Uint8Array) => void, end: () => void) => void = () => undefined,
): Promise<RpcError | undefined> {
  return new Promise((resolve) => {
    const stream = channel.openStream('Converse', {
      onMessage: (message) =>
        onMessage(
          message,
          (bytes) => stream.send(bytes),
          () => stream.end(),
        ),
      onClose: resolve,
    })
    stream.send(first)
  })
}

describe.each(implementations)('messages between nodes, $name', behaviour)

function behaviour({ within }: { readonly within: Within }): void {
  test('a call is answered, or refused with its reason', () =>
    within((network, host) =>
      serving(network, host, echo, async (channel) => {
        expect(await channel.call('Ask', Buffer.from('who?'), 60_000)).toEqual(Buffer.from('who?'))
        const refused = { reason: 'refused-by-peer', message: expect.stringContaining('nothing was asked') }
        await expect(channel.call('Ask', Buffer.alloc(0), 60_000)).rejects.toMatchObject(refused)
        const bug = { reason: 'internal', message: expect.stringContaining('a bug') }
        await expect(channel.call('Describe', Buffer.from([9]), 60_000)).rejects.toMatchObject(bug)
      }),
    ))

  test('a call that is not answered ends at its deadline', () =>
    within((network, host) => {
      const silent: RpcService = { ...echo, call: () => new Promise(() => undefined) }
      return serving(network, host, silent, async (channel) => {
        await expect(channel.call('Ask', Buffer.from('?'), 50)).rejects.toMatchObject({ reason: 'deadline-exceeded' })
      })
    }))

  test('messages of a stream come in order, and both ends see its end', () =>
    within((network, host) =>
      serving(network, host, echo, async (channel) => {
        const received: number[] = []
        const closed = await converse(channel, Buffer.from([0, 0]), (message, send, end) => {
          const count = received.push(message.readUInt16BE())
          const next = Buffer.alloc(2)
          next.writeUInt16BE(count)
          if (count < 300) send(next)
          else end()
        })
        expect(closed).toBeUndefined()
        expect(received).toEqual(Array.from({ length: 300 }, (_, i) => i))
      }),
    ))

  test('a peer refuses a stream with its reason', () =>
    within((network, host) =>
      serving(network, host, echo, async (channel) => {
        const closed = await converse(channel, Buffer.from([9]))
        expect(closed).toMatchObject({ reason: 'refused-by-peer', message: expect.stringContaining('not with you') })
      }),
    ))

  test('a listener that goes closes its streams; then connections are refused, and a new one is found', () =>
    within(async (network, host) => {
      const listener = await network.listen({ host, port: 0 }, echo)
      const channel = network.connect({ host, port: listener.port })
      const closed = await converse(channel, Buffer.from([1]), () => void listener.close())
      expect(closed).toBeInstanceOf(RpcError)
      expect(await converse(channel, Buffer.from([1]))).toMatchObject({ reason: 'connection-refused' })
      const again = await network.listen({ host, port: listener.port }, echo)
      for (;;) {
        // gRPC waits up to half a second before it tries a refused address once more.
        const answer = await channel.call('Ask', Buffer.from('back?'), 60_000).catch((error: RpcError) => error.reason)
        if (answer === 'connection-refused') continue
        expect(answer).toEqual(Buffer.from('back?'))
        break
      }
      channel.close()
      await again.close()
    }))

  test('a closed channel fails what is on it and what comes after', () =>
    within((network, host) =>
      serving(network, host, echo, async (channel) => {
        const closed = await converse(channel, Buffer.from([1]), () => channel.close())
        expect(closed).toMatchObject({ reason: 'cancelled' })
        expect(await converse(channel, Buffer.from([1]))).toMatchObject({ reason: 'cancelled' })
        await expect(channel.call('Ask', Buffer.from('?'), 60_000)).rejects.toMatchObject({ reason: 'cancelled' })
      }),
    ))

  test('a port that is taken is told', () =>
    within((network, host) =>
      serving(network, host, echo, async (_channel, { port }) => {
        await expect(network.listen({ host, port }, echo)).rejects.toMatchObject({ reason: 'address-in-use' })
      }),
    ))
}

describeWithPeer('openssl', 'messages between nodes, gRPC over TLS', () => {
  let network: RpcNetwork
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  beforeAll(async () => {
    folder = await temporaryFolder()
    network = await loadGrpcNetwork(await tlsOf(createAuthority(folder.path, 'ca'), 'node'))
  })
  afterAll(() => folder[Symbol.asyncDispose]())
  behaviour({ within: (body) => body(network, '127.0.0.1') })
  test('garbage harms nobody else', () => sendGarbage(network))
})

test('garbage on the port of gRPC harms nobody else', async () => sendGarbage(await loadGrpcNetwork()))

const sendGarbage = (network: RpcNetwork) =>
  serving(network, '127.0.0.1', echo, async (channel, { port }) => {
    for (const garbage of [
      'GET / HTTP/1.1\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\xff\xff',
      '\x16\x03\x01\x02',
      '\x00'.repeat(100),
    ]) {
      await new Promise<void>((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => socket.end(Buffer.from(garbage, 'latin1')))
        socket.on('error', () => undefined)
        socket.on('close', () => resolve())
        socket.setTimeout(60_000, () => reject(new Error('The server keeps the connection')))
        socket.resume()
      })
      expect(await channel.call('Ask', Buffer.from('fine?'), 60_000)).toEqual(Buffer.from('fine?'))
    }
  })
