import { writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { type Broker, type BrokerOptions, startBroker } from '../../src/index.ts'
import { freePorts } from '../support/free-ports.ts'
import { rookery } from '../support/rookery-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const stops: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function start(options: BrokerOptions = {}): Promise<Broker> {
  const broker = await startBroker(options)
  stops.push(() => broker.stop())
  return broker
}

/** A broker that tells clients to use `advertised`; resolves with the address at which it really is. */
async function startAdvertising(advertised: string, host = 'localhost'): Promise<string> {
  const port = await closedPort()
  const config = { listeners: `PLAINTEXT://${host}:${port}`, 'advertised.listeners': `PLAINTEXT://${advertised}` }
  await start({ config })
  return `localhost:${port}`
}

interface Finding {
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly message: string
  readonly advice?: string
}

async function examined(bootstrapServers: string, ...args: string[]) {
  const { code, stdout, stderr } = await rookery([
    'doctor',
    '-b',
    bootstrapServers,
    '--timeout',
    '30',
    '--json',
    ...args,
  ])
  expect(stderr).toBe('')
  const findings = JSON.parse(stdout) as Finding[]
  return { code, findings, of: (check: string) => findings.filter((each) => each.check === check) }
}

/** A server that isn't a broker. */
async function serverThat(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

async function closedPort(): Promise<number> {
  const [port] = await freePorts(1)
  return port!
}

describe('rookery doctor', () => {
  test('finds a broker in order, a line for each thing looked at', async () => {
    await using folder = await temporaryFolder()
    const broker = await start({ topics: ['orders'], storage: folder.path })
    const { code, findings, of } = await examined(broker.bootstrapServers)
    expect(findings.filter(({ status }) => status === 'fail')).toEqual([])
    expect(code).toBe(0)
    for (const check of ['bootstrap', 'versions', 'reach', 'clock', 'partitions', 'replication']) {
      expect(of(check)).toMatchObject([{ status: 'ok' }])
    }
    expect(of('disk')[0]?.message).toContain(folder.path)
    if (process.platform === 'linux') expect(of('files')[0]?.message).toContain(`process ${process.pid}`)
    const { stdout } = await rookery(['doctor', '-b', broker.bootstrapServers])
    expect(stdout).toMatch(/^OK {4}bootstrap .*\nOK {4}versions /)
  })

  test('writes only when told to, and leaves no topic behind', async () => {
    const broker = await start()
    const topics = () => rookery(['topics', 'list', '--internal', '--json', '-b', broker.bootstrapServers])
    expect((await examined(broker.bootstrapServers)).of('write')).toEqual([])
    const { code, of } = await examined(broker.bootstrapServers, '--write')
    expect(code).toBe(0)
    expect(of('write')).toMatchObject([{ status: 'ok', message: expect.stringContaining('acks=all') }])
    expect(of('clock')).toMatchObject([{ status: 'ok', message: expect.stringContaining('agree') }])
    expect((await topics()).stdout).toBe('[]\n')
  })

  test('an address that nobody answers at is a failure', async () => {
    const { code, findings } = await examined(`localhost:${await closedPort()}`)
    expect(code).toBe(1)
    expect(findings).toMatchObject([{ check: 'bootstrap', status: 'fail' }])
  })

  test('a broker that advertises a port which is not open, as in a container', async () => {
    const port = await closedPort()
    const address = await startAdvertising(`localhost:${port}`)
    const { code, of } = await examined(address)
    expect(code).toBe(1)
    const [finding] = of('reach')
    expect(finding?.status).toBe('fail')
    expect(finding?.message).toContain(`tells clients to use localhost:${port}`)
    expect(finding?.advice).toContain(`set advertised.listeners=PLAINTEXT://${address}`)
    expect(finding?.advice).toContain('container')
  })

  test('a broker that advertises a name which is only known where it runs', async () => {
    const { code, of } = await examined(await startAdvertising('kafka-inside.invalid:9092'))
    expect(code).toBe(1)
    expect(of('reach')[0]).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('kafka-inside.invalid:9092'),
    })
    expect(of('reach')[0]?.advice).toContain('other containers know')
  })

  test('an address at which another cluster answers', async () => {
    const other = await start()
    const { code, of } = await examined(await startAdvertising(other.bootstrapServers))
    expect(code).toBe(1)
    expect(of('reach')[0]?.message).toContain(`of another cluster answers (${other.clusterId})`)
  })

  const outside = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && each.internal === false)?.address

  test.skipIf(outside === undefined)('a broker elsewhere that advertises localhost', async () => {
    const port = await closedPort()
    const bound = (await startAdvertising(`localhost:${port}`, '0.0.0.0')).split(':')[1]
    const { code, of } = await examined(`${outside}:${bound}`)
    expect(code).toBe(1)
    expect(of('reach')[0]).toMatchObject({ message: expect.stringContaining('is this machine and not the broker') })
    expect(of('reach')[0]?.advice).toContain(`advertised.listeners=PLAINTEXT://${outside}:${bound}`)
  })

  test('looks at the folders that a configuration names', async () => {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'server.properties')
    await writeFile(file, `log.dirs=${folder.path},${join(folder.path, 'missing')}\n`)
    const { of } = await examined(`localhost:${await closedPort()}`, '--config', file)
    expect(of('disk')).toMatchObject([
      { message: expect.stringContaining(folder.path) },
      { status: 'warn', message: expect.stringContaining('There is no folder') },
    ])
    const withConfig = (path: string) => rookery(['doctor', '-b', 'localhost:1', '--config', path])
    const none = join(folder.path, 'none')
    expect(await withConfig(none)).toEqual({ code: 2, stdout: '', stderr: `rookery: There is no file ${none}\n` })
    await writeFile(file, 'num.partitons=1\n')
    expect(await withConfig(file)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('did you mean'),
    })
  })
})

describe('whoever answers at the address', () => {
  const asked = async (address: string, timeout = 30) => {
    const { code, stdout, stderr } = await rookery(['topics', 'list', '-b', address, '--timeout', `${timeout}`])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.trim().split('\n')).toHaveLength(1)
    return stderr
  }

  test('a web server', async () => {
    const address = await serverThat((socket) =>
      socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    )
    expect(await asked(address)).toContain(`${address} does not speak Kafka: it answers in HTTP`)
  })

  test('a listener with TLS', async () => {
    const alert = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46])
    const address = await serverThat((socket) => socket.on('data', () => socket.end(alert)))
    expect(await asked(address)).toContain('it answers in TLS')
  })

  test('one that hangs up', async () => {
    const address = await serverThat((socket) => socket.on('data', () => socket.destroy()))
    expect(await asked(address)).toMatch(/another program, or a listener that wants TLS/)
  })

  test('one that says nothing', async () => {
    const address = await serverThat(() => undefined)
    expect(await asked(address, 2)).toMatch(/No answer to ApiVersions within 2000 ms/)
  })

  test('one that sends anything', async () => {
    const address = await serverThat((socket) => socket.on('data', () => socket.write(Buffer.alloc(4096, 0x7f))))
    expect(await asked(address)).toContain('does not speak Kafka')
  })
})

describe('rookery cluster', () => {
  test('tells nodes, partitions and quorum', async () => {
    const broker = await start({ topics: [{ name: 'orders', partitions: 3 }] })
    const { code, stdout } = await rookery(['cluster', '-b', broker.bootstrapServers, '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      clusterId: broker.clusterId,
      controllerId: 1,
      nodes: [{ id: 1, leads: 3, replicas: 3, fault: null, versions: { Metadata: [0, expect.any(Number)] } }],
      partitions: { topics: 1, partitions: 3, offline: [], underReplicated: [] },
      quorum: { leaderId: 1, voters: [{ id: 1 }], observers: [] },
    })
    const text = await rookery(['cluster', '-b', broker.bootstrapServers, '--apis'])
    expect(text.stdout).toContain(`Cluster ${broker.clusterId}: 1 node, controller 1`)
    expect(text.stdout).toMatch(/^1 topic, 3 partitions: 0 offline, 0 under-replicated$/m)
    expect(text.stdout).toMatch(/^Fetch +\d+ to \d+$/m)
  })

  test('a node that is not reached is told with the reason', async () => {
    const port = await closedPort()
    const address = await startAdvertising(`localhost:${port}`)
    const { code, stdout } = await rookery(['cluster', '-b', address])
    expect(code).toBe(0)
    expect(stdout).toMatch(/ no$/m)
    expect(stdout).toContain(`Node 1: Nobody listens on localhost:${port}`)
  })
})
