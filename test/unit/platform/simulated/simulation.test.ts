import { expect, test } from 'vitest'
import type { Platform, Socket } from '../../../../src/platform/index.ts'
import {
  createSimulation,
  HostCrashedError,
  type Simulation,
  SimulationStuckError,
} from '../../../../src/platform/simulated/index.ts'

test('two runs of one seed have the same trace, with crashes in between, and other seeds have others', async () => {
  const first = await busyRun(7)
  const second = await busyRun(7)
  expect(second.traceLines).toEqual(first.traceLines)
  expect(second.traceHash()).toBe(first.traceHash())
  expect(second.nowMs).toBe(first.nowMs)
  expect(first.traceLines.length).toBeGreaterThan(300)
  const hashes = new Set<string>()
  for (let seed = 0; seed < 20; seed++) hashes.add((await busyRun(seed)).traceHash())
  expect(hashes.size).toBe(20)
})

test('under faults of every kind a seed replays exactly, and what arrives is a prefix of what was sent', async () => {
  for (let seed = 0; seed < 25; seed++) {
    const first = await faultyRun(seed)
    expect(await faultyRun(seed)).toEqual(first)
    expect(first.sent.startsWith(first.received)).toBe(true)
  }
})

test('one other byte, place, time or order makes another trace', async () => {
  const traceOf = async (body: (platform: Platform) => Promise<void>): Promise<string> => {
    const simulation = createSimulation({ seed: 1 })
    await simulation.run(body(simulation.host('a').platform))
    return simulation.traceHash()
  }
  const write = async ({ files }: Platform, text: string, position: number, name = 'f'): Promise<void> => {
    const file = await files.open(`/data/${name}`, 'create')
    file.writeSync([Buffer.from(text)], position)
  }
  const wait = ({ timers }: Platform, ms: number): Promise<void> => new Promise((resolve) => timers.set(ms, resolve))
  const traces = await Promise.all([
    traceOf((platform) => write(platform, 'x', 0)),
    traceOf((platform) => write(platform, 'y', 0)),
    traceOf((platform) => write(platform, 'x', 1)),
    traceOf((platform) => write(platform, 'x', 0, 'g')),
    traceOf((platform) => wait(platform, 1).then(() => write(platform, 'x', 0))),
    traceOf((platform) => wait(platform, 2).then(() => write(platform, 'x', 0))),
    traceOf(async (platform) => {
      platform.random.float()
      await write(platform, 'x', 0)
    }),
  ])
  expect(new Set(traces).size).toBe(traces.length)
})

test('a dead process reaches nothing: no timer, no file, no socket, no promise', async () => {
  const simulation = createSimulation({ seed: 3 })
  const host = simulation.host('a')
  const other = simulation.host('b')
  const received: Buffer[] = []
  const { socket, file, platform } = await simulation.run(
    (async () => {
      await other.platform.network.listen({ host: '::', port: 1 }, (accepted) =>
        accepted.start({ onData: (chunk) => void received.push(Buffer.from(chunk)), onClose: () => {} }),
      )
      const opened = await host.platform.files.open('/data/f', 'create')
      await host.platform.files.syncDirectory('/data')
      const connected = await host.platform.network.connect({ host: 'b', port: 1, timeoutMs: 100 })
      connected.start({ onData: () => {}, onClose: () => reached.push('onClose') })
      return { socket: connected, file: opened, platform: host.platform }
    })(),
  )
  const reached: string[] = []
  const watch = (name: string, promise: Promise<unknown>): void => {
    const settle = (): void => void reached.push(name)
    promise.then(settle, settle)
  }
  platform.timers.set(1, () => reached.push('timer'))
  platform.timers.defer(() => reached.push('defer'))
  watch('write', file.write([Buffer.from('x')], 0))
  watch(
    'listen',
    platform.network.listen({ host: '::', port: 5 }, () => {}),
  )
  host.crash()
  for (const call of [
    () => file.writeSync([Buffer.from('y')], 0),
    () => file.readSync(Buffer.alloc(1), 0),
    () => file.sizeSync(),
    () => file.truncateSync(9),
    () => platform.files.openSync('/data/g', 'create'),
    () => socket.write([Buffer.from('z')]),
    () => socket.end(),
    () => socket.destroy(),
    () => platform.random.float(),
  ]) {
    expect(call).toThrow(HostCrashedError)
  }
  watch('sync', file.sync())
  watch('close', file.close())
  watch('open', platform.files.open('/data/g', 'create'))
  watch('rename', platform.files.rename('/data/f', '/data/h'))
  watch('connect', platform.network.connect({ host: 'b', port: 1, timeoutMs: 10 }))
  platform.timers.set(0, () => reached.push('late timer'))
  host.restart()
  await simulation.runFor(5000)
  expect(reached).toEqual([])
  expect(received).toEqual([])
  expect(await simulation.run(host.platform.files.list('/data'))).toEqual([{ name: 'f', kind: 'file' }])
  expect(await simulation.run(host.platform.files.readFile('/data/f', 9))).toEqual(Buffer.alloc(0))
})

test('a directory lock dies with its process, and ids go on after a restart', async () => {
  const simulation = createSimulation({ seed: 3 })
  const host = simulation.host('a')
  await simulation.run(host.platform.files.lockDirectory('/data'))
  const ids = [host.platform.random.uuid()]
  host.crash()
  host.restart()
  await simulation.run(host.platform.files.lockDirectory('/data'))
  ids.push(host.platform.random.uuid())
  expect(new Set(ids).size).toBe(2)
})

test('peers of a crashed host see a reset, and a down host refuses', async () => {
  const { simulation, client, server } = await connected()
  simulation.host('b').crash()
  await simulation.runUntil(() => client.closes.length > 0)
  expect(client.closes).toMatchObject([{ systemCode: 'ECONNRESET' }])
  expect(server.closes).toEqual([])
  const { network } = simulation.host('a').platform
  await expect(simulation.run(network.connect({ host: 'b', port: 9092, timeoutMs: 1000 }))).rejects.toMatchObject({
    systemCode: 'ECONNREFUSED',
  })
  await expect(simulation.run(network.connect({ host: 'nobody', port: 1, timeoutMs: 1000 }))).rejects.toMatchObject({
    systemCode: 'ENOTFOUND',
  })
})

test('a cut link stalls one direction, and what was sent arrives in order when it heals', async () => {
  const { simulation, client, server } = await connected()
  simulation.network.cut('a', 'b')
  for (const text of ['1', '2', '3']) {
    client.socket.write([Buffer.from(text)])
    await simulation.runFor(3)
  }
  server.socket.write([Buffer.from('back')])
  await simulation.runUntil(() => client.text() === 'back')
  expect(server.text()).toBe('')
  simulation.network.heal('a', 'b')
  client.socket.write([Buffer.from('4')])
  await simulation.runUntil(() => server.text() === '1234')
})

test('data stays in order when a link is cut and healed at any moment', async () => {
  const { simulation, client, server } = await connected()
  const { random } = simulation.host('a').platform
  let expected = ''
  for (let i = 0; i < 500; i++) {
    client.socket.write([Buffer.from(`<${i}>`)])
    expected += `<${i}>`
    if (random.int(3) === 0) simulation.network.cut('a', 'b')
    await simulation.runFor(random.float())
    if (random.int(3) === 0) simulation.network.heal('a', 'b')
  }
  client.socket.end()
  await simulation.runFor(5)
  simulation.network.healAll()
  await simulation.runUntil(() => server.closes.length === 1)
  expect(server.closes).toEqual([undefined])
  expect(server.text()).toBe(expected)
})

test('connecting across a partition times out, and succeeds when it heals in time', async () => {
  const { simulation } = await connected()
  simulation.network.partition(['a'], ['b'])
  const { network } = simulation.host('a').platform
  const start = simulation.nowMs
  await expect(simulation.run(network.connect({ host: 'b', port: 9092, timeoutMs: 3000 }))).rejects.toMatchObject({
    systemCode: 'ETIMEDOUT',
  })
  expect(simulation.nowMs - start).toBeCloseTo(3000, 0)
  const connecting = network.connect({ host: 'b', port: 9092, timeoutMs: 3000 })
  await simulation.runFor(500)
  simulation.network.healAll()
  expect((await simulation.run(connecting)).remoteAddress).toBe('10.0.0.2')
})

test('a crash behind a partition shows only when it heals', async () => {
  const { simulation, client } = await connected()
  simulation.network.partition(['a'], ['b'])
  simulation.host('b').crash()
  await simulation.runFor(10_000)
  expect(client.closes).toEqual([])
  simulation.network.healAll()
  await simulation.runUntil(() => client.closes.length === 1)
})

test('delay adds to the latency of one direction', async () => {
  const { simulation, client, server } = await connected()
  simulation.network.delay('a', 'b', 500)
  const start = simulation.nowMs
  client.socket.write([Buffer.from('slow')])
  await simulation.runUntil(() => server.text() === 'slow')
  expect(simulation.nowMs - start).toBeGreaterThan(500)
  server.socket.write([Buffer.from('fast')])
  await simulation.runUntil(() => client.text() === 'fast')
  expect(simulation.nowMs - start).toBeLessThan(502)
})

test('data arrives in pieces other than it was written in, in order', async () => {
  const { simulation, client, server } = await connected()
  for (let i = 0; i < 200; i++) {
    client.socket.write([Buffer.from(`<${i}>`)])
    if (i % 3 === 0) await simulation.runFor(0.05)
  }
  const expected = Array.from({ length: 200 }, (_, i) => `<${i}>`).join('')
  await simulation.runUntil(() => server.text() === expected)
  expect(server.chunks.some((chunk) => !chunk.toString().startsWith('<'))).toBe(true)
  expect(server.chunks.some((chunk) => chunk.toString().split('<').length > 2)).toBe(true)
})

test('a listener on localhost is for its own host only', async () => {
  const simulation = createSimulation({ seed: 1 })
  const [a, b] = [simulation.host('a'), simulation.host('b')]
  await simulation.run(b.platform.network.listen({ host: 'localhost', port: 9092 }, () => {}))
  const dial = (from: Platform, host: string): Promise<Socket> =>
    simulation.run(from.network.connect({ host, port: 9092, timeoutMs: 1000 }))
  await expect(dial(a.platform, 'b')).rejects.toMatchObject({ systemCode: 'ECONNREFUSED' })
  expect((await dial(b.platform, '::1')).remotePort).toBe(9092)
})

test('a paused process does nothing until it is resumed, while its system accepts and buffers', async () => {
  const { simulation, client, server } = await connected()
  const b = simulation.host('b')
  const fired: number[] = []
  b.platform.timers.set(10, () => fired.push(simulation.nowMs))
  b.pause()
  client.socket.write([Buffer.from('held')])
  const { network } = simulation.host('a').platform
  await simulation.run(network.connect({ host: 'b', port: 9092, timeoutMs: 100 }))
  await simulation.runFor(5000)
  expect(fired).toEqual([])
  expect(server.text()).toBe('')
  // A sender fills the window and is then held back.
  client.socket.write([Buffer.alloc(1_000_000)])
  await simulation.runFor(1000)
  expect(client.socket.queuedBytes).toBeGreaterThan(500_000)
  b.resume()
  await simulation.runUntil(() => server.text().length === 1_000_004)
  expect(fired.length).toBe(1)
  expect(fired[0]).toBeGreaterThanOrEqual(6000)
})

test('the wall clock jumps either way, and monotonic time does not', async () => {
  const simulation = createSimulation({ seed: 1 })
  const host = simulation.host('a')
  const { clock } = host.platform
  const [now, monotonic] = [clock.now(), clock.monotonic()]
  host.jumpClock(-60_000)
  await simulation.runFor(1000)
  expect(clock.now() - now).toBe(-59_000)
  expect(clock.monotonic() - monotonic).toBe(1000)
  expect(simulation.host('b').platform.clock.now()).toBe(now + 1000)
})

test('promises settle between two events however deep they are', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { timers } = simulation.host('a').platform
  const order: string[] = []
  timers.set(1, async () => {
    for (let i = 0; i < 1000; i++) await null
    order.push('deep')
  })
  timers.set(1, () => order.push('next'))
  await simulation.runFor(1)
  expect(order).toEqual(['deep', 'next'])
})

test('a run that waits for what never happens says so', async () => {
  const simulation = createSimulation({ seed: 5 })
  await expect(simulation.run(new Promise(() => {}))).rejects.toThrow(SimulationStuckError)
  const { timers } = simulation.host('a').platform
  const again = (): void => void timers.set(1000, again)
  again()
  await expect(simulation.runUntil(() => false, { maxVirtualMs: 5000 })).rejects.toThrow('5000 virtual ms (seed 5)')
  expect(simulation.nowMs).toBeLessThanOrEqual(5000)
})

test('an error thrown by a callback or a check ends the run, and the next run goes on', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { timers } = simulation.host('a').platform
  timers.set(1, () => {
    throw new Error('Thrown by a timer')
  })
  await expect(simulation.runFor(10)).rejects.toThrow('Thrown by a timer')
  await expect(simulation.run(Promise.reject(new Error('Rejected')))).rejects.toThrow('Rejected')
  let count = 0
  simulation.checkAfterEachEvent(() => {
    if (count > 2) throw new Error('Invariant')
  })
  for (let i = 1; i < 10; i++) timers.set(i, () => count++)
  await expect(simulation.runFor(100)).rejects.toThrow('Invariant')
  expect(count).toBe(3)
})

test('cancelled timers do not pile up, and the rest still runs in order', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { timers, random } = simulation.host('a').platform
  const due: number[] = []
  const ran: number[] = []
  for (let i = 0; i < 2000; i++) {
    const delayMs = random.int(1000)
    const timer = timers.set(delayMs, () => ran.push(delayMs))
    if (i % 5 === 0) due.push(delayMs)
    else timer.cancel()
  }
  await simulation.runFor(1001)
  expect(ran).toEqual(due.sort((a, b) => a - b))
  expect(simulation.eventCount).toBe(400)
})

interface Watched {
  readonly socket: Socket
  readonly chunks: Buffer[]
  readonly closes: (Error | undefined)[]
  text(): string
}

function watched(socket: Socket): Watched {
  const chunks: Buffer[] = []
  const closes: (Error | undefined)[] = []
  socket.start({ onData: (chunk) => void chunks.push(Buffer.from(chunk)), onClose: (error) => void closes.push(error) })
  return { socket, chunks, closes, text: () => Buffer.concat(chunks).toString('latin1') }
}

/** Hosts a and b, and a connection from a to b's port 9092. */
async function connected(): Promise<{ simulation: Simulation; client: Watched; server: Watched }> {
  const simulation = createSimulation({ seed: 11 })
  const [a, b] = [simulation.host('a'), simulation.host('b')]
  let server: Watched | undefined
  await simulation.run(
    b.platform.network.listen({ host: '0.0.0.0', port: 9092 }, (socket) => {
      server ??= watched(socket)
    }),
  )
  const socket = await simulation.run(a.platform.network.connect({ host: 'b', port: 9092, timeoutMs: 1000 }))
  return { simulation, client: watched(socket), server: server! }
}

/** Two servers that store what clients send them, with a crash of each. */
async function busyRun(seed: number): Promise<Simulation> {
  const simulation = createSimulation({ seed, tracing: 'lines' })
  const serve = async ({ network, files, random }: Platform): Promise<void> => {
    const file = await files.open('/data/log', 'create')
    await files.syncDirectory('/data')
    await network.listen({ host: '::', port: 9092 }, (socket) =>
      socket.start({
        onData: async (lent) => {
          const chunk = Buffer.from(lent)
          file.writeSync([chunk, random.bytes(4)], file.sizeSync())
          await file.sync()
          socket.write([chunk])
        },
        onClose: () => {},
      }),
    )
  }
  const client = simulation.host('client').platform
  for (const name of ['a', 'b']) {
    const host = simulation.host(name)
    await simulation.run(serve(host.platform))
    for (let round = 0; round < 2; round++) {
      const socket = await simulation.run(client.network.connect({ host: name, port: 9092, timeoutMs: 1000 }))
      let isClosed = false
      let receivedBytes = 0
      socket.start({
        onData: (chunk) => {
          receivedBytes += chunk.length
          socket.write([client.random.bytes(100)])
        },
        onClose: () => {
          isClosed = true
        },
      })
      socket.write([client.random.bytes(5000)])
      await simulation.runUntil(() => receivedBytes > 7000)
      host.crash()
      await simulation.runUntil(() => isClosed)
      await simulation.run(serve(host.restart()))
    }
  }
  return simulation
}

/** A sender and a receiver on a network and hosts that get cut, delayed, paused, killed and crashed. */
async function faultyRun(seed: number): Promise<{ hash: string; sent: string; received: string }> {
  const simulation = createSimulation({ seed })
  const { random } = simulation.host('chooser').platform
  const [a, b] = [simulation.host('a'), simulation.host('b')]
  let received = ''
  await simulation.run(
    b.platform.network.listen({ host: '::', port: 1 }, (socket) =>
      socket.start({
        onData: (chunk) => {
          received += chunk.toString('latin1')
          if (random.int(4) === 0) {
            socket.pause()
            b.platform.timers.set(random.int(20), () => socket.resume())
          }
        },
        onClose: () => {},
      }),
    ),
  )
  const socket = await simulation.run(a.platform.network.connect({ host: 'b', port: 1, timeoutMs: 1000 }))
  let isClosed = false
  socket.start({
    onData: () => {},
    onClose: () => {
      isClosed = true
    },
  })
  let sent = ''
  const faults = [
    () => simulation.network.cut('a', 'b'),
    () => simulation.network.heal('a', 'b'),
    () => simulation.network.partition(['a'], ['b']),
    () => simulation.network.healAll(),
    () => simulation.network.delay('a', 'b', random.int(50)),
    () => a.pause(),
    () => a.resume(),
    () => b.pause(),
    () => b.resume(),
    () => a.jumpClock(random.int(1000) - 500),
  ]
  for (let i = 0; i < 200 && !isClosed; i++) {
    const text = `<${i}>`.repeat(1 + random.int(200))
    sent += text
    socket.write([Buffer.from(text)])
    faults[random.int(faults.length)]!()
    await simulation.runFor(random.float() * 10)
  }
  if (random.int(2) === 0) a.crash()
  else b.kill()
  simulation.network.healAll()
  b.resume()
  await simulation.runFor(5000)
  return { hash: simulation.traceHash(), sent, received }
}
