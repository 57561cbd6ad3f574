import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../support/condition.ts'
import { addressOfNode, Links, waysBetween, waysFrom } from '../../support/links.ts'

/** Node 2: tells everybody who connects what it hears, in capitals. */
function startEcho(port: number): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => socket.write(`${bytes}`.toUpperCase()))
  })
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)))
}

/** A connection of node `id`. */
function dial(id: number, port: number): { readonly socket: Socket; heard: string; ending: string | undefined } {
  const socket = connect({ host: '127.0.0.1', port, localAddress: addressOfNode(id) })
  const seen = { socket, heard: '', ending: undefined as string | undefined }
  socket.on('data', (bytes) => (seen.heard += `${bytes}`))
  socket.on('error', ({ message }) => (seen.ending = message))
  socket.on('close', () => (seen.ending ??= 'closed'))
  return seen
}

describe('links', () => {
  let server: Server
  let links: Links
  let port: number
  const dialled: Socket[] = []

  beforeEach(async () => {
    server = await startEcho(0)
    links = new Links()
    port = await links.add(2, (server.address() as { port: number }).port)
  })
  afterEach(async () => {
    for (const socket of dialled.splice(0)) socket.destroy()
    await links[Symbol.asyncDispose]()
    server.close()
  })

  function open(id: number): ReturnType<typeof dial> {
    const connection = dial(id, port)
    dialled.push(connection.socket)
    return connection
  }

  test('pass everything while all ways are open', async () => {
    const one = open(1)
    one.socket.write('hello')
    await until(() => one.heard === 'HELLO', 'the answer')
  })

  test('hold what is sent on a way until it is open again, and nothing else', async () => {
    const [one, three] = [open(1), open(3)]
    one.socket.write('a')
    three.socket.write('a')
    await until(() => one.heard === 'A' && three.heard === 'A', 'both are connected')
    links.hold(['1>2'])
    one.socket.write('b')
    three.socket.write('b')
    await until(() => three.heard === 'AB', 'the other one hears')
    expect(one.heard).toBe('A')
    links.heal()
    await until(() => one.heard === 'AB', 'what was held arrives')
  })

  test('hold answers on the way back alone', async () => {
    const received: string[] = []
    server.on('connection', (socket) => socket.on('data', (bytes) => received.push(`${bytes}`)))
    const one = open(1)
    one.socket.write('a')
    await until(() => one.heard === 'A', 'it is connected')
    links.hold(['2>1'])
    one.socket.write('b')
    await until(() => received.join('') === 'ab', 'the server hears')
    expect(one.heard).toBe('A')
    links.heal()
    await until(() => one.heard === 'AB', 'the answer arrives')
  })

  test('connect no further than to themselves over a way that is held', async () => {
    let connectionCount = 0
    server.on('connection', () => connectionCount++)
    links.hold(waysBetween([1], [2]))
    const [one, three] = [open(1), open(3)]
    one.socket.write('a')
    three.socket.write('a')
    await until(() => three.heard === 'A', 'the other one is connected')
    expect(connectionCount).toBe(1)
    links.heal()
    await until(() => one.heard === 'A', 'it is connected now')
  })

  test('delay what is sent, in its order', async () => {
    const one = open(1)
    one.socket.write('a')
    await until(() => one.heard === 'A', 'it is connected')
    links.delay(waysFrom([1], [2]), 100)
    const startMs = performance.now()
    one.socket.write('b')
    one.socket.write('c')
    await until(() => one.heard === 'ABC', 'the answers')
    expect(performance.now() - startMs).toBeGreaterThan(95)
  })

  test('end with a reset what is between two nodes', async () => {
    const [one, three] = [open(1), open(3)]
    one.socket.write('a')
    three.socket.write('a')
    await until(() => one.heard === 'A' && three.heard === 'A', 'both are connected')
    links.reset(2, 1)
    await until(() => one.ending !== undefined, 'it is closed')
    expect(one.ending).toMatch(/ECONNRESET/)
    three.socket.write('b')
    await until(() => three.heard === 'AB', 'the other one is not')
  })

  test('refuse while nobody listens behind them, and pass when somebody does again', async () => {
    const address = server.address() as { port: number }
    server.close()
    await once(server, 'close')
    await until(async () => {
      const connection = open(1)
      await until(() => connection.ending !== undefined, 'it ends')
      return connection.ending?.includes('ECONNREFUSED') === true
    }, 'it is refused')
    server = await startEcho(address.port)
    await until(async () => {
      const connection = open(1)
      connection.socket.write('a')
      await until(() => connection.heard !== '' || connection.ending !== undefined, 'an answer or an end')
      return connection.heard === 'A'
    }, 'it is answered')
  })
})
