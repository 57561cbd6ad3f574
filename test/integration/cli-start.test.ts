import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { portsOfNodes } from '../support/cluster-processes.ts'
import { RookeryProcess, type RunOptions, rookery } from '../support/rookery-process.ts'

let folder: string
const running: RookeryProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rookery-cli-'))
})

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.signal('SIGKILL')))
  rmSync(folder, { recursive: true, force: true })
})

/** A broker on a free port; its data is in `folder` when nothing else is said. */
function launch(args: readonly string[] = [], options: RunOptions = {}): RookeryProcess {
  const own = ['--override', 'listeners=PLAINTEXT://localhost:0', '--override', `log.dirs=${join(folder, 'data')}`]
  const broker = new RookeryProcess(['start', ...own, ...args], options)
  running.push(broker)
  return broker
}

async function started(args: readonly string[] = [], options: RunOptions = {}): Promise<RookeryProcess> {
  const broker = launch(args, options)
  await broker.untilSays('node started')
  return broker
}

/** Where it listens, from the line of its JSON log. */
function addressOf(broker: RookeryProcess): string {
  const line = broker.stdout.split('\n').find((each) => each.includes('"node started"'))
  const { endpoints } = JSON.parse(line!) as { endpoints: { host: string; port: number }[] }
  return `${endpoints[0]!.host}:${endpoints[0]!.port}`
}

async function topicsOf(broker: RookeryProcess): Promise<Record<string, number>> {
  const { stdout } = await rookery(['topics', 'list', '--json', '-b', addressOf(broker)])
  const topics = JSON.parse(stdout) as { name: string; partitions: number }[]
  return Object.fromEntries(topics.map(({ name, partitions }) => [name, partitions]))
}

describe('rookery start', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('stops cleanly at %s and exits with 0', async (signal) => {
    const broker = await started()
    const { code, stderr } = await broker.signal(signal)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(broker.stdout).toContain('"node stopped"')
    expect(existsSync(join(folder, 'data', '.kafka_cleanshutdown'))).toBe(true)
  })

  test('stops cleanly when the signal comes while it starts', async () => {
    const broker = launch(['--log-level', 'debug'])
    await broker.untilSays('raft role changed')
    const { code, stderr } = await broker.signal('SIGTERM')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  test('tells a person what it serves, where the data is, what it ignores and how to stop', async () => {
    const broker = launch(['--log-format', 'human', '--override', 'num.network.threads=3'])
    await broker.untilSays('Ctrl-C')
    expect(broker.stdout).toMatch(/serves Kafka clients on localhost:\d+\n/)
    expect(broker.stdout).toContain(`Data     ${join(folder, 'data')} (cluster `)
    expect(broker.stdout).toContain('Ignored  num.network.threads: ')
  })

  test('keeps its data in ./data unless told otherwise', async () => {
    const broker = new RookeryProcess(
      ['start', '--override', 'listeners=PLAINTEXT://localhost:0', '--log-format', 'human'],
      { cwd: folder },
    )
    running.push(broker)
    await broker.untilSays('Ctrl-C')
    expect(broker.stdout).toContain(`Data     ${join(folder, 'data')} (cluster `)
  })

  test('writes JSON lines, and nothing else, where no person reads', async () => {
    const broker = await started(['--override', 'num.network.threads=3'])
    const lines = broker.stdout.trim().split('\n')
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(entries).toContainEqual(expect.objectContaining({ level: 'warn', keys: ['num.network.threads'] }))
  })

  test('creates topics of options, file and environment', async () => {
    const file = join(folder, 'topics.json')
    writeFileSync(file, '["from-file", {"name": "from-file-2", "partitions": 2}]')
    const args = ['--topic', 'from-option:3,another', '--topics-file', file]
    const broker = await started(args, { env: { ROOKERY_TOPICS: 'from-environment:4' } })
    expect(await topicsOf(broker)).toEqual({
      another: 1,
      'from-environment': 4,
      'from-file': 1,
      'from-file-2': 2,
      'from-option': 3,
    })
  })

  test('takes the environment over the file, and overrides over both', async () => {
    const file = join(folder, 'server.properties')
    writeFileSync(file, 'num.partitions=2\nlog.retention.hours=3\n')
    const env = { ROOKERY_NUM_PARTITIONS: '3' }
    const broker = await started(['--config', file, '--topic', 'a'], { env })
    expect(await topicsOf(broker)).toEqual({ a: 3 })
    await broker.signal('SIGTERM')
    const again = await started(['--config', file, '--topic', 'b', '--override', 'num.partitions=4'], { env })
    expect(await topicsOf(again)).toEqual({ a: 3, b: 4 })
  })

  test('takes the settings of the KRaft quick start, as a quorum of one that others may join', async () => {
    const file = join(folder, 'server.properties')
    const [ports] = await portsOfNodes(1)
    const { client, controller } = ports!
    writeFileSync(file, quickStart.replaceAll('9092', `${client}`).replaceAll('9093', `${controller}`))
    const listeners = `listeners=PLAINTEXT://:${client},CONTROLLER://:${controller}`
    const broker = await started(['--config', file, '--override', listeners])
    expect(broker.stdout).toContain('"msg":"new cluster formed"')
    expect(broker.stdout).not.toContain('controller listener not opened')
  })
})

describe('rookery start refuses', () => {
  test('settings that cannot be used, all of them at once, with 2', async () => {
    const args = [
      '--override',
      'num.partitons=1',
      '--override',
      'log.segment.bytes=x',
      '--topic',
      'a:b',
      '--config',
      'gone',
    ]
    const { code, stdout, stderr } = await launch(args).finished
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('There is no file gone')
    expect(stderr).toContain('--topic: a:b: partitions are a number')
    const second = await launch(['--override', 'num.partitons=1', '--override', 'log.segment.bytes=x']).finished
    expect(second.code).toBe(2)
    expect(second.stderr).toContain('did you mean num.partitions?')
    expect(second.stderr).toContain('log.segment.bytes=x')
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })

  test('a port that is taken, a folder in use and a folder of another cluster, each in one sentence, with 1', async () => {
    const broker = await started()
    const port = ['--override', `listeners=PLAINTEXT://${addressOf(broker)}`]
    const taken = await launch([...port, '--override', `log.dirs=${join(folder, 'other')}`]).finished
    expect(taken.code).toBe(1)
    expect(taken.stderr).toMatch(/^rookery: localhost:\d+ is in use by another program: .*\n$/)
    const locked = await launch().finished
    expect(locked.code).toBe(1)
    expect(locked.stderr).toMatch(/^rookery: Folder .* is in use by process \d+: .*\n$/)
    await broker.signal('SIGTERM')
    const clusterId = createHash('sha256').update('another').digest('base64url').slice(0, 22)
    const foreign = await launch(['--override', `cluster.id=${clusterId}`]).finished
    expect(foreign.code).toBe(1)
    expect(foreign.stderr).toMatch(/^rookery: .*\n$/)
    for (const each of [clusterId, join(folder, 'data'), 'mv ']) expect(foreign.stderr).toContain(each)
  })

  test('a folder that can not be made, and an address that is none, naming the key, without a line of the log', async () => {
    const file = join(folder, 'a-file')
    writeFileSync(file, '')
    const noFolder = await launch(['--override', `log.dirs=${file}`]).finished
    expect(noFolder).toMatchObject({ code: 1, stdout: '' })
    expect(noFolder.stderr).toMatch(/^rookery: .*a-file is not a folder: .*log\.dirs=FOLDER\n$/)
    const foreign = await launch(['--override', 'listeners=PLAINTEXT://192.0.2.1:0']).finished
    expect(foreign).toMatchObject({ code: 1, stdout: '' })
    expect(foreign.stderr).toMatch(/^rookery: listeners: 192\.0\.2\.1:0 is no address of this machine: /)
  })

  test('a security protocol that is not built, instead of serving plaintext', async () => {
    const { code, stderr } = await launch(['--override', 'listeners=SSL://localhost:0']).finished
    expect(code).toBe(2)
    expect(stderr).toContain('SSL is not built yet')
  })
})

/** The keys and values of Apache Kafka's config/server.properties for a first start. */
const quickStart = `
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
`
