import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deferred } from '../../../src/base/index.ts'
import { type Answer, KafkaServer, type RequestHandler, type ResponseLoan } from '../../../src/network/index.ts'
import { type LogFields, type Logger, Metrics } from '../../../src/telemetry/index.ts'
import { until } from '../../support/condition.ts'
import { frameOf, type MemoryNetwork, type MemorySocket, memoryPlatform, settled } from './memory-network.ts'

const overlappingKey = 0
const plainKey = 3
const briefKey = 12

/** int16 key | text */
function request(key: number, text: string): Buffer {
  const head = Buffer.alloc(2)
  head.writeInt16BE(key)
  return frameOf(Buffer.concat([head, Buffer.from(text)]))
}

function answerOf(text: string): { chunks: Buffer[] } {
  return { chunks: [frameOf(Buffer.from(text))] }
}

/** Answers when the test says so. */
class ManualHandler implements RequestHandler {
  readonly begun: string[] = []
  readonly signals: AbortSignal[] = []
  readonly #waiting = new Map<string, (answer: Answer) => void>()
  readonly #rejecting = new Map<string, (error: Error) => void>()

  handle(frame: Buffer, connection: { signal: AbortSignal }): Promise<Answer> {
    const text = frame.toString('utf8', 2)
    this.begun.push(text)
    this.signals.push(connection.signal)
    const { promise, resolve, reject } = deferred<Answer>()
    this.#waiting.set(text, resolve)
    this.#rejecting.set(text, reject)
    return promise
  }

  mayOverlap(key: number): boolean {
    return key === overlappingKey
  }

  isBrief(key: number): boolean {
    return key === briefKey
  }

  async answer(text: string, answer: Answer = answerOf(text)): Promise<void> {
    this.#waiting.get(text)!(answer)
    await settled()
  }

  async fail(text: string, error: Error): Promise<void> {
    this.#rejecting.get(text)!(error)
    await settled()
  }
}

/** Answers at once with what was asked. */
const echo: RequestHandler = {
  handle: (frame) => answerOf(frame.toString('utf8', 2)),
  mayOverlap: (key) => key === overlappingKey,
  isBrief: (key) => key === briefKey,
}

interface Line {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

function collectingLog(): { log: Logger; lines: Line[] } {
  const lines: Line[] = []
  const at = (level: string) => (fields: LogFields, message: string) => void lines.push({ level, message, fields })
  const log: Logger = { child: () => log, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { log, lines }
}

async function serve(handler: RequestHandler, limits: Partial<ConstructorParameters<typeof KafkaServer>[0]> = {}) {
  const { platform, network, time } = memoryPlatform()
  const { log, lines } = collectingLog()
  const server = new KafkaServer({
    platform,
    handler,
    log,
    metrics: new Metrics(),
    maxRequestBytes: 1000,
    maxQueuedBytes: 1_000_000,
    maxIdleMs: 600_000,
    connectionLimits: { max: 100, maxPerAddress: 100, overrides: new Map() },
    ...limits,
  })
  await server.listen({ name: 'PLAINTEXT', host: 'localhost', port: 9092 })
  const warnings = () => lines.filter(({ level }) => level === 'warn' || level === 'error')
  return { server, network, time, lines, warnings }
}

function texts(socket: MemorySocket): string[] {
  return socket.frames.map(String)
}

describe('order', () => {
  test('answers leave in the order of their requests, whichever is ready first', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler)
    const socket = network.accept()
    for (const text of ['a', 'b', 'c']) socket.clientSends(request(overlappingKey, text))
    expect(handler.begun).toEqual(['a', 'b', 'c'])
    await handler.answer('c')
    await handler.answer('b')
    expect(texts(socket)).toEqual([])
    await handler.answer('a')
    expect(texts(socket)).toEqual(['a', 'b', 'c'])
    expect(socket.writes).toHaveLength(1)
  })

  test('a request begins when all before it were answered, unless both may overlap', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler)
    const socket = network.accept()
    socket.clientSends(
      Buffer.concat([
        request(overlappingKey, 'produce 1'),
        request(overlappingKey, 'produce 2'),
        request(plainKey, 'fetch'),
        request(overlappingKey, 'produce 3'),
      ]),
    )
    expect(handler.begun).toEqual(['produce 1', 'produce 2'])
    await handler.answer('produce 2')
    expect(handler.begun).toHaveLength(2)
    await handler.answer('produce 1')
    expect(handler.begun).toEqual(['produce 1', 'produce 2', 'fetch'])
    await handler.answer('fetch')
    await handler.answer('produce 3')
    expect(texts(socket)).toEqual(['produce 1', 'produce 2', 'fetch', 'produce 3'])
  })

  test('requests that came together and are answered at once leave in one write', async () => {
    const { network } = await serve(echo)
    const socket = network.accept()
    const asked = Array.from({ length: 100 }, (_, i) => `request ${i}`)
    socket.clientSends(Buffer.concat(asked.map((text) => request(plainKey, text))))
    expect(texts(socket)).toEqual(asked)
    expect(socket.writes).toHaveLength(1)
  })

  test('every request gets its answer however the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(overlappingKey, plainKey), fc.string({ maxLength: 60 })), { maxLength: 300 }),
        fc.integer({ min: 1, max: 200 }),
        async (asked, cut) => {
          const { network, server } = await serve(echo)
          const socket = network.accept()
          const bytes = Buffer.concat(asked.map(([key, text]) => request(key, text)))
          for (let at = 0; at < bytes.length; at += cut) socket.clientSends(bytes.subarray(at, at + cut))
          expect(texts(socket)).toEqual(asked.map(([, text]) => String(Buffer.from(text))))
          expect(server.statistics).toMatchObject({ requestBytes: 0, responseBytes: 0 })
        },
      ),
      { numRuns: 40 },
    )
  })

  test('a request without response leaves the next answer in its place', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler)
    const socket = network.accept()
    socket.clientSends(Buffer.concat([request(overlappingKey, 'silent'), request(overlappingKey, 'loud')]))
    await handler.answer('loud')
    expect(texts(socket)).toEqual([])
    await handler.answer('silent', 'none')
    expect(texts(socket)).toEqual(['loud'])
    socket.clientSends(request(plainKey, 'next'))
    await handler.answer('next')
    expect(texts(socket)).toEqual(['loud', 'next'])
  })

  test('what is under way on one connection is bounded, and reading waits', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler)
    const socket = network.accept()
    for (let i = 0; i < 200; i++) socket.clientSends(request(overlappingKey, `r${i}`))
    expect(handler.begun).toHaveLength(128)
    expect(socket.isPaused).toBe(true)
    expect(socket.unreadBytes).toBeGreaterThan(0)
    for (let i = 0; i < 200; i++) await handler.answer(`r${i}`)
    expect(texts(socket)).toHaveLength(200)
    expect(socket.isPaused).toBe(false)
  })
})

describe('closing', () => {
  test('a client that goes away aborts what waits for it, and late answers are released', async () => {
    const handler = new ManualHandler()
    const { network, server } = await serve(handler)
    const socket = network.accept()
    socket.clientSends(request(plainKey, 'fetch'))
    expect(handler.signals[0]!.aborted).toBe(false)
    socket.clientCloses()
    expect(handler.signals[0]!.aborted).toBe(true)
    let released = 0
    await handler.answer('fetch', { ...answerOf('late'), release: () => released++ })
    expect(released).toBe(1)
    expect(server.statistics).toEqual({ connections: 0, requestBytes: 0, responseBytes: 0 })
  })

  test('answers that wait for their turn are released when the client goes away', async () => {
    const handler = new ManualHandler()
    const { network, server } = await serve(handler)
    const socket = network.accept()
    socket.clientSends(Buffer.concat([request(overlappingKey, 'first'), request(overlappingKey, 'second')]))
    let released = 0
    await handler.answer('second', { ...answerOf('second'), release: () => released++ })
    expect(released).toBe(0)
    socket.clientCloses()
    expect(released).toBe(1)
    expect(server.statistics.responseBytes).toBe(0)
  })

  test('a buffer is released when it is written, not before', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler)
    const socket = network.accept()
    socket.holdsWrites = true
    socket.clientSends(request(plainKey, 'fetch'))
    let released = 0
    await handler.answer('fetch', { ...answerOf('data'), release: () => released++ })
    expect(texts(socket)).toEqual(['data'])
    expect(released).toBe(0)
    socket.drain()
    expect(released).toBe(1)
  })

  test('a refused request closes its connection after the answers before it, with one line', async () => {
    const handler = new ManualHandler()
    const { network, warnings } = await serve(handler)
    const socket = network.accept()
    const other = network.accept()
    socket.clientSends(Buffer.concat([request(overlappingKey, 'good'), request(overlappingKey, 'bad')]))
    await handler.answer('bad', { close: 'It is bad', details: { apiKey: 0, apiVersion: 2 } })
    expect(socket.hasEnded).toBe(false)
    await handler.answer('good')
    expect(texts(socket)).toEqual(['good'])
    expect(socket.hasEnded).toBe(true)
    expect(warnings()).toEqual([
      {
        level: 'warn',
        message: 'connection closed: request refused',
        fields: { peer: '10.0.0.9:50000', listener: 'PLAINTEXT', apiKey: 0, apiVersion: 2, reason: 'It is bad' },
      },
    ])
    expect(other.hasEnded).toBe(false)
  })

  test('after a refused request no other one of the connection is answered or told, though its answer was ready', async () => {
    const handler = new ManualHandler()
    const { network, warnings } = await serve(handler)
    const socket = network.accept()
    for (const text of ['first', 'second', 'third', 'fourth']) socket.clientSends(request(overlappingKey, text))
    let released = 0
    await handler.answer('second', { ...answerOf('second'), release: () => released++ })
    await handler.answer('third', { close: 'Malformed, too' })
    await handler.answer('first', { close: 'Malformed' })
    expect(socket.hasEnded).toBe(true)
    expect(released).toBe(1)
    await handler.answer('fourth')
    expect(texts(socket)).toEqual([])
    expect(warnings().map(({ fields }) => fields.reason)).toEqual(['Malformed'])
  })

  test('a handler that throws or rejects closes that connection only', async () => {
    const handler = new ManualHandler()
    const { network, warnings } = await serve(handler)
    const socket = network.accept()
    const other = network.accept()
    socket.clientSends(request(plainKey, 'a'))
    other.clientSends(request(plainKey, 'b'))
    await handler.fail('a', new Error('bug'))
    expect(socket.hasEnded).toBe(true)
    expect(warnings()).toMatchObject([{ level: 'error', fields: { error: new Error('bug') } }])
    await handler.answer('b')
    expect(texts(other)).toEqual(['b'])
  })

  test('close lets begun requests be answered and takes no further ones', async () => {
    const handler = new ManualHandler()
    const { network, server } = await serve(handler)
    const socket = network.accept()
    const idle = network.accept()
    socket.clientSends(Buffer.concat([request(plainKey, 'begun'), request(plainKey, 'next')]))
    let hasClosed = false
    const closing = server.close(5000).then(() => {
      hasClosed = true
    })
    await settled()
    expect(network.isListening).toBe(false)
    expect(idle.hasEnded).toBe(true)
    expect(handler.signals[0]!.aborted).toBe(true)
    await handler.answer('begun')
    expect(texts(socket)).toEqual(['begun'])
    expect(handler.begun).toEqual(['begun'])
    expect(socket.hasEnded).toBe(true)
    socket.clientCloses()
    expect(hasClosed).toBe(false)
    idle.clientCloses()
    await closing
  })

  test('close begins no further request when one that was in its way is answered', async () => {
    const handler = new ManualHandler()
    const { network, server, time } = await serve(handler)
    const socket = network.accept()
    for (let i = 0; i < 200; i++) socket.clientSends(request(overlappingKey, `r${i}`))
    const closing = server.close(5000)
    await handler.answer('r0')
    expect(texts(socket)).toEqual(['r0'])
    expect(handler.begun).toHaveLength(128)
    time.advance(5000)
    await closing
  })

  test('close cuts off what is not answered in time', async () => {
    const { network, server, time } = await serve(new ManualHandler())
    const socket = network.accept()
    socket.clientSends(request(plainKey, 'never answered'))
    const closing = server.close(5000)
    await settled()
    time.advance(5000)
    await closing
    expect(socket.isClosed).toBe(true)
    expect(time.pendingTimers).toBe(0)
  })

  test('an idle connection closes after the limit, one that waits for an answer does not', async () => {
    const { network, time } = await serve(new ManualHandler(), { maxIdleMs: 1000 })
    const idle = network.accept()
    const waiting = network.accept()
    const halfSent = network.accept()
    waiting.clientSends(request(plainKey, 'join'))
    halfSent.clientSends(Buffer.from([0, 0, 1]))
    time.advance(999)
    expect(idle.isClosed).toBe(false)
    time.advance(500)
    expect(idle.isClosed).toBe(true)
    expect(halfSent.isClosed).toBe(true)
    expect(waiting.isClosed).toBe(false)
  })

  test('a connection above max.connections is closed at once, with one line now and then', async () => {
    const { network, warnings, time } = await serve(echo, {
      connectionLimits: { max: 1, maxPerAddress: 100, overrides: new Map() },
    })
    const first = network.accept()
    for (let i = 0; i < 3; i++) expect(network.accept().isClosed).toBe(true)
    const reason = 'max.connections reached'
    expect(warnings()).toMatchObject([{ fields: { reason, connections: 1, refused: 1 } }])
    time.advance(10_000)
    network.accept()
    expect(warnings()).toMatchObject([{ fields: { reason } }, { fields: { reason, refused: 3 } }])
    first.clientCloses()
    expect(network.accept().isClosed).toBe(false)
  })

  test('an address has its own limit, or the one of all', async () => {
    const { network, warnings } = await serve(echo, {
      connectionLimits: { max: 100, maxPerAddress: 1, overrides: new Map([['10.0.0.9', 2]]) },
    })
    const closed = ['10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.9', '10.0.0.9', '10.0.0.9'].map(
      (remoteAddress) => network.accept(9092, remoteAddress).isClosed,
    )
    expect(closed).toEqual([false, true, false, false, false, true])
    expect(warnings()).toMatchObject([{ fields: { reason: 'max.connections.per.ip reached' } }])
  })
})

describe('what is no Kafka request', () => {
  test('TLS on a plaintext port is named', async () => {
    const { network, warnings } = await serve(echo)
    const socket = network.accept()
    socket.clientSends(Buffer.from('16030102000100', 'hex'))
    expect(socket.hasEnded).toBe(true)
    expect(warnings()).toMatchObject([{ fields: { reason: 'TLS on a plaintext listener' } }])
  })

  test.each(['GET / HTTP/1.1\r\nHost: x\r\n\r\n', 'POST /topics HTTP/1.1\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\n'])(
    'HTTP is named and told: %j',
    async (text) => {
      const { network, warnings } = await serve(echo)
      const socket = network.accept()
      socket.clientSends(Buffer.from(text))
      expect(socket.written.toString()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*\r\n\r\n.*Kafka protocol.*\n$/)
      expect(socket.hasEnded).toBe(true)
      expect(warnings()).toMatchObject([{ fields: { reason: 'HTTP on a Kafka listener' } }])
    },
  )

  test.each([-1, 1001, 2 ** 31 - 1])('a length of %i closes the connection after earlier answers', async (length) => {
    const { network, warnings } = await serve(echo)
    const socket = network.accept()
    const claim = Buffer.alloc(4)
    claim.writeInt32BE(length)
    socket.clientSends(Buffer.concat([request(plainKey, 'good'), claim, Buffer.alloc(50)]))
    expect(texts(socket)).toEqual(['good'])
    expect(socket.hasEnded).toBe(true)
    expect(warnings()).toHaveLength(1)
    expect(warnings()[0]!.fields.reason).toContain(String(length))
  })

  test('random bytes close their connection at most, and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), async (chunks) => {
        const { network, server } = await serve(echo)
        const bystander = network.accept()
        const socket = network.accept()
        for (const chunk of chunks) socket.clientSends(Buffer.from(chunk))
        socket.clientCloses()
        bystander.clientSends(request(plainKey, 'still here'))
        expect(texts(bystander)).toEqual(['still here'])
        expect(server.statistics).toEqual({ connections: 1, requestBytes: 0, responseBytes: 0 })
      }),
    )
  })
})

describe('memory', () => {
  const sendPart = (socket: MemorySocket, length: number, arrived: number) => {
    const frame = frameOf(Buffer.concat([Buffer.from([0, plainKey]), Buffer.alloc(length - 2, 0x61)]))
    socket.clientSends(frame.subarray(0, arrived))
    return frame.subarray(arrived)
  }

  test('reading stops on all connections while the requests held are above every limit, and goes on after', async () => {
    const handler = new ManualHandler()
    const { network, server } = await serve(handler, { maxQueuedBytes: 2000 })
    const sockets = Array.from({ length: 6 }, () => network.accept())
    for (const [i, socket] of sockets.entries()) socket.clientSends(request(plainKey, String(i).repeat(700)))
    await settled()
    expect(server.statistics.requestBytes).toBeGreaterThan(2000 + 500 + 1000)
    expect(sockets.every((socket) => socket.isPaused)).toBe(true)
    const late = network.accept()
    late.clientSends(request(plainKey, 'late'))
    expect(late.unreadBytes).toBeGreaterThan(0)
    for (const text of ['0', '1', '2', '3']) await handler.answer(text.repeat(700))
    expect(handler.begun).toContain('late')
    expect(sockets.some((socket) => socket.isPaused)).toBe(false)
  })

  test('unfinished requests that use up the limit among them finish one after the other', async () => {
    const { network, server } = await serve(echo, { maxQueuedBytes: 2000 })
    const sockets = Array.from({ length: 5 }, () => network.accept())
    const rests = sockets.map((socket, i) => sendPart(socket, 900, 500 + i))
    await settled()
    expect(server.statistics.requestBytes).toBeGreaterThan(2000)
    for (const [i, socket] of sockets.entries()) socket.clientSends(rests[i]!)
    await settled()
    for (const socket of sockets) expect(socket.frames.map(({ length }) => length)).toEqual([898])
    expect(server.statistics.requestBytes).toBe(0)
  })

  test('small requests are read and answered while unfinished large ones hold all the memory', async () => {
    const { network, server } = await serve(echo, { maxQueuedBytes: 2000 })
    const large = Array.from({ length: 5 }, () => network.accept())
    for (const socket of large) sendPart(socket, 1000, 520)
    await settled()
    expect(server.statistics.requestBytes).toBeGreaterThan(2000)
    const small = network.accept()
    for (const text of ['one', 'two', 'three']) {
      small.clientSends(request(plainKey, text))
      await settled()
    }
    expect(texts(small)).toEqual(['one', 'two', 'three'])
    // What it may hold is its part of a reserve: not enough for a large one of its own.
    sendPart(small, 1000, 150)
    await settled()
    expect(small.isPaused).toBe(true)
  })

  test('a request above the part of its connection borrows the rest at once when nobody else does', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler, { maxQueuedBytes: 2000 })
    for (const text of ['0', '1', '2']) network.accept().clientSends(request(plainKey, text.repeat(700)))
    await settled()
    const large = network.accept()
    const rest = sendPart(large, 900, 150)
    await settled()
    large.clientSends(rest)
    await settled()
    expect(handler.begun).toContain('a'.repeat(898))
  })

  test('a peer that sends no more while others wait for its memory is closed', async () => {
    const { network, time, server, warnings } = await serve(echo, { maxQueuedBytes: 2000 })
    const sockets = Array.from({ length: 5 }, () => network.accept())
    const rests = sockets.map((socket, i) => sendPart(socket, 900, 500 + i))
    await settled()
    const silent = sockets[4]! // it lacks least, so it may read
    for (const [i, socket] of sockets.entries()) if (socket !== silent) socket.clientSends(rests[i]!)
    expect(sockets.filter((socket) => socket.frames.length > 0)).toHaveLength(0)
    time.advance(10_000)
    await settled()
    expect(silent.isClosed).toBe(true)
    expect(sockets.filter((socket) => socket.frames.length > 0)).toHaveLength(4)
    expect(warnings()).toHaveLength(1)
    expect(server.statistics.requestBytes).toBe(0)
  })

  test('above the limit of responses only small answers begin; who reads none is closed', async () => {
    const handler = new ManualHandler()
    const { network, time, server, warnings } = await serve(handler, { maxQueuedBytes: 2000 })
    const slow = network.accept()
    slow.holdsWrites = true
    slow.clientSends(request(plainKey, 'big'))
    await handler.answer('big', answerOf('x'.repeat(3000)))
    expect(server.statistics.responseBytes).toBe(3004)
    const other = network.accept()
    other.clientSends(request(plainKey, 'small'))
    const third = network.accept()
    third.clientSends(request(briefKey, 'heartbeat'))
    await settled()
    expect(handler.begun).toEqual(['big', 'heartbeat'])
    time.advance(10_000)
    await settled()
    expect(slow.isClosed).toBe(true)
    expect(handler.begun).toEqual(['big', 'heartbeat', 'small'])
    expect(warnings()).toHaveLength(1)
    expect(server.statistics.responseBytes).toBe(0)
  })

  test('who holds no answers has a reserve while others do not read theirs', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler, { maxQueuedBytes: 2000 })
    const slow = network.accept()
    slow.holdsWrites = true
    slow.clientSends(request(overlappingKey, 'big'))
    await handler.answer('big', answerOf('x'.repeat(2100)))
    slow.drain()
    slow.holdsWrites = true
    slow.clientSends(request(overlappingKey, 'again'))
    await handler.answer('again', answerOf('x'.repeat(2100)))
    const reader = network.accept()
    for (const text of ['a', 'b']) {
      reader.clientSends(request(plainKey, text))
      await handler.answer(text, answerOf('x'.repeat(300)))
    }
    expect(handler.begun).toEqual(['big', 'again', 'a', 'b'])
    // One that holds an answer itself has no part of the reserve, and nobody has once it is used up.
    reader.holdsWrites = true
    reader.clientSends(request(plainKey, 'c'))
    await handler.answer('c', answerOf('x'.repeat(500)))
    network.accept().clientSends(request(plainKey, 'd'))
    await settled()
    expect(handler.begun).toEqual(['big', 'again', 'a', 'b', 'c'])
  })

  test('the more connections there are, the less one answer may take', async () => {
    const loans: ResponseLoan[] = []
    const handler: RequestHandler = {
      handle: (_frame, connection) => {
        const loan = connection.lendResponseBytes(1e9)
        loans.push(loan)
        loan.giveBack()
        return 'none'
      },
      mayOverlap: () => false,
      isBrief: () => false,
    }
    const limits = { max: 2000, maxPerAddress: 2000, overrides: new Map() }
    const { network } = await serve(handler, { maxQueuedBytes: 128 * 2 ** 20, connectionLimits: limits })
    const first = network.accept()
    first.clientSends(request(plainKey, 'alone'))
    for (let i = 1; i < 64; i++) network.accept()
    first.clientSends(request(plainKey, 'one of 64'))
    for (let i = 64; i < 2000; i++) network.accept()
    first.clientSends(request(plainKey, 'one of 2,000'))
    expect(loans.map(({ bytes }) => bytes / 2 ** 20)).toEqual([32, 8, 1])
  })

  test('answers that are read at the same time share the memory that is left, and none begins when it is lent out', async () => {
    const loans: ResponseLoan[] = []
    const begun: string[] = []
    const handler: RequestHandler = {
      handle: (frame, connection) => {
        begun.push(frame.toString('utf8', 2))
        loans.push(connection.lendResponseBytes(40_000_000))
        return new Promise(() => undefined)
      },
      mayOverlap: () => false,
      isBrief: () => false,
    }
    const { network, server } = await serve(handler, { maxQueuedBytes: 16_000_000 })
    for (let i = 0; i < 30; i++) network.accept().clientSends(request(plainKey, `${i}`))
    await settled()
    const lentBytes = loans.reduce((sum, { bytes }) => sum + bytes, 0)
    expect(loans[0]!.bytes).toBe(4_000_000)
    // The limit, the reserve and one more.
    expect(lentBytes).toBeLessThan(16_000_000 + 4_000_000 + 1024 * 1024)
    expect(server.statistics.responseBytes).toBe(lentBytes)
    expect(begun.length).toBeLessThan(30)
    while (loans.length > 0) {
      for (const loan of loans.splice(0)) loan.giveBack()
      await settled()
    }
    expect(begun).toHaveLength(30)
    expect(server.statistics.responseBytes).toBe(0)
  })

  test('a connection whose client does not read begins no further request', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler)
    const socket = network.accept()
    socket.holdsWrites = true
    socket.clientSends(request(plainKey, 'first'))
    await handler.answer('first')
    socket.clientSends(request(plainKey, 'second'))
    expect(handler.begun).toEqual(['first'])
    expect(socket.isPaused).toBe(true)
    socket.drain()
    expect(handler.begun).toEqual(['first', 'second'])
  })
})

describe('turns of the event loop', () => {
  /** Answers at once, which takes `tookMs` of the event loop. `begun`: what began in each of its turns. */
  async function serveSlowly(tookMs: number) {
    const begun: string[] = []
    let time: { nowMs: number } | undefined
    const handler: RequestHandler = {
      ...echo,
      handle(frame, connection) {
        begun.push(frame.toString('utf8', 2))
        time!.nowMs += tookMs
        return echo.handle(frame, connection)
      },
    }
    const served = await serve(handler)
    time = served.time
    return { ...served, begun }
  }

  test('requests of many connections that come at once begin in many turns, in their order', async () => {
    const { network, begun, warnings } = await serveSlowly(2)
    const sockets = Array.from({ length: 90 }, () => network.accept())
    for (const [i, socket] of sockets.entries()) socket.clientSends(request(plainKey, `${i}`))
    expect(begun).toEqual(['0', '1', '2', '3'])
    const perTurn: number[] = []
    for (let before = begun.length; begun.length < sockets.length; before = begun.length) {
      await new Promise(setImmediate)
      perTurn.push(begun.length - before)
    }
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(4)
    expect(begun).toEqual(sockets.map((_, i) => `${i}`))
    expect(sockets.map(texts)).toEqual(sockets.map((_, i) => [`${i}`]))
    expect(warnings()).toEqual([])
  })

  test('who comes later stands behind those that wait, with its next request too', async () => {
    const { network, begun } = await serveSlowly(5)
    const [a, b, c] = [network.accept(), network.accept(), network.accept()]
    for (const text of ['a1', 'a2', 'a3', 'a4']) a.clientSends(request(plainKey, text))
    b.clientSends(Buffer.concat([request(plainKey, 'b1'), request(plainKey, 'b2')]))
    c.clientSends(request(plainKey, 'c1'))
    await until(() => begun.length === 7, 'all have begun')
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2'])
    expect(texts(a)).toEqual(['a1', 'a2', 'a3', 'a4'])
    expect(a.isPaused || b.isPaused || c.isPaused).toBe(false)
  })

  test('a request with a brief answer does not stand behind all that read much', async () => {
    const { network, begun } = await serveSlowly(5)
    for (let i = 0; i < 50; i++) network.accept().clientSends(request(plainKey, `${i}`))
    network.accept().clientSends(request(briefKey, 'acknowledgement'))
    await until(() => begun.length === 51, 'all have begun')
    expect(begun.indexOf('acknowledgement')).toBeLessThan(5)
  })

  test('answers of many connections that are there at once leave in many turns, brief ones among the first', async () => {
    const handler = new ManualHandler()
    const { network } = await serve(handler, { maxQueuedBytes: 100_000_000 })
    const sockets = Array.from({ length: 40 }, () => network.accept())
    for (const [i, socket] of sockets.entries()) socket.clientSends(request(plainKey, `${i}`))
    const acknowledged = network.accept()
    acknowledged.clientSends(request(briefKey, 'acknowledgement'))
    await until(() => handler.begun.length === 41, 'all have begun')
    const large = { chunks: [frameOf(Buffer.alloc(1_000_000))] }
    const all = sockets.map((_, i) => handler.answer(`${i}`, large))
    all.push(handler.answer('acknowledgement'))
    const done = () => sockets.filter(({ writes }) => writes.length === 1).length
    const perTurn: number[] = []
    let before = 0
    let doneBeforeBrief: number | undefined
    while (before < sockets.length) {
      await new Promise(setImmediate)
      perTurn.push(done() - before)
      before = done()
      if (acknowledged.writes.length === 1) doneBeforeBrief ??= before
    }
    await Promise.all(all)
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(5)
    expect(doneBeforeBrief).toBeLessThanOrEqual(10)
  })

  test('clients that ask again at once do not keep the line standing when there is time for all of them', async () => {
    const { network, begun, time } = await serveSlowly(0)
    const sockets = Array.from({ length: 90 }, () => network.accept())
    sockets[0]!.clientSends(request(briefKey, 'first'))
    time.nowMs += 100 // of one turn
    for (const socket of sockets) socket.clientSends(request(briefKey, 'a'))
    expect(begun).toEqual(['first'])
    expect(sockets.some(({ isPaused }) => isPaused)).toBe(false)
    await until(() => begun.length === 91, 'all have begun')
    for (const socket of sockets) socket.clientSends(request(briefKey, 'b'))
    expect(begun).toHaveLength(181)
  })

  test('what a connection sends while it stands in the line is read up to 64 KiB', async () => {
    const { network, begun } = await serveSlowly(5)
    const [a, b] = [network.accept(), network.accept()]
    for (let i = 0; i < 2; i++) a.clientSends(request(plainKey, `${i}`))
    const large = 'x'.repeat(900)
    for (let i = 0; i < 100; i++) b.clientSends(request(plainKey, large))
    expect(begun).toHaveLength(2)
    expect(b.isPaused).toBe(true)
    expect(b.unreadBytes).toBeGreaterThan(20 * 906)
    await until(() => begun.length === 102, 'all have begun')
    expect(b.unreadBytes).toBe(0)
    expect(b.isPaused).toBe(false)
  })

  test('who closes while it waits is passed over', async () => {
    const { network, begun, server } = await serveSlowly(5)
    const sockets = Array.from({ length: 10 }, () => network.accept())
    for (const [i, socket] of sockets.entries()) socket.clientSends(request(plainKey, `${i}`))
    for (const socket of sockets.slice(4)) socket.clientCloses()
    await until(() => begun.length === 4, 'all have begun')
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    expect(begun).toEqual(['0', '1', '2', '3'])
    expect(server.statistics).toEqual({ connections: 4, requestBytes: 0, responseBytes: 0 })
  })
})

describe('any course of events', () => {
  type Step =
    | { readonly do: 'send'; readonly on: number; readonly key: number; readonly bytes: number; readonly cut: number }
    | { readonly do: 'answer'; readonly index: number; readonly how: 'chunks' | 'none' | 'close' | 'throw' }
    | { readonly do: 'hold' | 'drain' | 'leave'; readonly on: number }
    | { readonly do: 'wait'; readonly ms: number }
    | { readonly do: 'close' }

  const on = fc.integer({ min: 0, max: 3 })
  const key = fc.constantFrom(overlappingKey, overlappingKey, plainKey, briefKey)
  const how = fc.constantFrom('chunks', 'chunks', 'chunks', 'chunks', 'none', 'close', 'throw') as fc.Arbitrary<
    'chunks' | 'none' | 'close' | 'throw'
  >
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({ do: fc.constant('send' as const), on, key, bytes: fc.nat(900), cut: fc.nat(1000) }),
    },
    { weight: 10, arbitrary: fc.record({ do: fc.constant('answer' as const), index: fc.nat(20), how }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('hold' as const, 'drain' as const), on }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), on }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 12_000 }) }) },
    { weight: 1, arbitrary: fc.constant({ do: 'close' as const }) },
  )

  test('answers keep their order, every buffer is released once, and no memory stays counted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const waiting: { text: string; resolve: (answer: Answer) => void; reject: (error: Error) => void }[] = []
        const handler: RequestHandler = {
          handle: (frame) => {
            const { promise, resolve, reject } = deferred<Answer>()
            waiting.push({ text: frame.toString('latin1', 2, 8), resolve, reject })
            return promise
          },
          mayOverlap: (apiKey) => apiKey === overlappingKey,
          isBrief: (apiKey) => apiKey === briefKey,
        }
        const { network, server, time } = await serve(handler, { maxQueuedBytes: 2000 })
        const sockets = Array.from({ length: 4 }, () => network.accept())
        const numbers = [0, 0, 0, 0]
        let answered = 0
        let released = 0
        const answer = (index: number, kind: 'chunks' | 'none' | 'close' | 'throw') => {
          const [request] = waiting.splice(index % Math.max(1, waiting.length), 1)
          if (request === undefined) return
          if (kind === 'throw') request.reject(new Error('bug'))
          else if (kind === 'none') request.resolve('none')
          else if (kind === 'close') request.resolve({ close: 'why' })
          else {
            answered++
            const text = request.text + 'x'.repeat(700)
            request.resolve({ ...answerOf(text), release: () => released++ })
          }
        }
        let closing: Promise<void> | undefined
        for (const each of steps) {
          if (each.do === 'send') {
            const number = String(numbers[each.on]!++).padStart(6, '0')
            const bytes = request(each.key, number + 'y'.repeat(each.bytes))
            sockets[each.on]!.clientSends(bytes.subarray(0, each.cut))
            if (each.cut < bytes.length) sockets[each.on]!.clientSends(bytes.subarray(each.cut))
          } else if (each.do === 'answer') answer(each.index, each.how)
          else if (each.do === 'hold') sockets[each.on]!.holdsWrites = true
          else if (each.do === 'drain') sockets[each.on]!.drain()
          else if (each.do === 'leave') sockets[each.on]!.clientCloses()
          else if (each.do === 'wait') time.advance(each.ms)
          else closing ??= server.close(1000)
          // The limit, one largest request to finish, and what was on its way from each connection.
          expect(server.statistics.requestBytes).toBeLessThanOrEqual(2000 + 1000 + sockets.length * 1004)
          await settled()
        }
        for (const socket of sockets) socket.drain()
        for (let round = 0; round < 200; round++) {
          answer(0, 'chunks')
          await settled()
          if (waiting.length === 0 && sockets.every((socket) => socket.unreadBytes === 0 || socket.isPaused === false))
            break
        }
        for (const socket of sockets) {
          const order = socket.frames.map((frame) => Number(frame.toString('latin1', 0, 6)))
          expect(order).toEqual([...order].sort((a, b) => a - b))
          socket.clientCloses()
        }
        while (waiting.length > 0) answer(0, 'chunks')
        closing ??= server.close(1000)
        await settled()
        time.advance(1000)
        await closing
        await settled()
        expect(released).toBe(answered)
        expect(server.statistics).toEqual({ connections: 0, requestBytes: 0, responseBytes: 0 })
        expect(time.pendingTimers).toBe(0)
      }),
      { numRuns: 150 },
    )
  })
})

test('a server may listen on several listeners and tells each connection which one', async () => {
  const names: string[] = []
  const handler: RequestHandler = {
    handle: (_frame, connection) => {
      names.push(connection.listenerName)
      return 'none'
    },
    mayOverlap: () => false,
    isBrief: () => false,
  }
  const { network, server }: { network: MemoryNetwork; server: KafkaServer } = await serve(handler)
  await server.listen({ name: 'INTERNAL', host: '0.0.0.0', port: 9094 })
  network.accept(9094).clientSends(request(plainKey, 'x'))
  network.accept(9092).clientSends(request(plainKey, 'x'))
  expect(names).toEqual(['INTERNAL', 'PLAINTEXT'])
})
