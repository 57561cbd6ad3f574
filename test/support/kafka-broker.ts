import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KafkaClient } from '../../src/network/index.ts'
import { createRealPlatform } from '../../src/platform/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { until } from './condition.ts'
import { freePorts } from './free-ports.ts'
import type { Peer } from './peers.ts'
import { type RunningProgram, runPeer, startProgram } from './programs.ts'

/** An Apache Kafka node in a process of its own: broker and controller, on free ports, with its data in a temporary folder. */
export interface KafkaBroker extends AsyncDisposable {
  /** `127.0.0.1:54321` */
  readonly bootstrapServers: string
  readonly port: number
  /** Stops it as one stops a broker, and starts it with the same data and port; `config` comes on top of what it had. */
  restart(config: BrokerSettings): Promise<void>
}

type BrokerSettings = Readonly<Record<string, string | number | boolean>>

export interface KafkaBrokerOptions {
  /** Comes on top of what one node needs. */
  readonly config?: BrokerSettings
  /** Levels of features that are not to be Kafka's newest, by name. */
  readonly features?: Readonly<Record<string, number>>
}

/** Formats a folder, starts the node and waits until it answers Metadata. */
export async function startKafkaBroker(
  peer: Peer,
  { config = {}, features = {} }: KafkaBrokerOptions = {},
): Promise<KafkaBroker> {
  const folder = await mkdtemp(join(tmpdir(), 'rookery-kafka-'))
  let program: RunningProgram | undefined
  const killOnExit = () => program?.kill('SIGKILL')
  const stop = async () => {
    program?.kill('SIGTERM')
    await program?.ended(20_000).catch(() => undefined)
    process.off('exit', killOnExit)
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    const [port, controllerPort] = await freePorts(2)
    if (port === undefined || controllerPort === undefined) throw new Error('No free ports')
    const file = join(folder, 'server.properties')
    const settings = { ...oneNode(join(folder, 'data'), port, controllerPort), ...config }
    const start = async (changed: BrokerSettings) => {
      await writeFile(file, propertiesOf({ ...settings, ...changed }))
      program = startProgram(peer.command, [...peer.args, '-Xmx512M', '-Xms256M', 'kafka.Kafka', file])
      await untilServing(program, port)
    }
    await writeFile(file, propertiesOf(settings))
    const levels = Object.entries(features).flatMap(([name, level]) => ['--feature', `${name}=${level}`])
    const format = ['kafka.tools.StorageTool', 'format', '-t', 'cm9va2VyeS1vcmFjbGUtMQ', '-c', file, ...levels]
    const formatted = await runPeer(peer, format)
    if (formatted.exitCode !== 0) throw new Error(`Kafka's data folder can not be formatted: ${formatted.output}`)
    process.once('exit', killOnExit)
    await start({})
    const restart = async (changed: BrokerSettings) => {
      program?.kill('SIGTERM')
      await program?.ended()
      await start(changed)
    }
    return { bootstrapServers: `127.0.0.1:${port}`, port, restart, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function propertiesOf(settings: BrokerSettings): string {
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('')
}

function oneNode(dataFolder: string, port: number, controllerPort: number): Record<string, string | number> {
  return {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'log.dirs': dataFolder,
    'offsets.topic.replication.factor': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    'group.initial.rebalance.delay.ms': 0,
  }
}

async function untilServing(program: RunningProgram, port: number): Promise<void> {
  let hasEnded = false
  void program.ended(600_000).then(
    () => (hasEnded = true),
    () => (hasEnded = true),
  )
  const isServing = async () => {
    if (hasEnded) throw new Error(`Kafka ended before it served: ${program.stdout}\n${program.stderr}`)
    return await answersMetadata(port)
  }
  await until(isServing, `Kafka serves on ${port}`).catch((error: unknown) => {
    throw new Error(`${(error as Error).message}\n${program.stdout}\n${program.stderr}`)
  })
}

async function answersMetadata(port: number): Promise<boolean> {
  try {
    const platform = createRealPlatform()
    const client = await KafkaClient.connect({ platform, host: '127.0.0.1', port, clientId: 'probe', timeoutMs: 5000 })
    const { brokers } = await client.request(apis.Metadata, 5, { topics: [] }).finally(() => client.close())
    return brokers.length === 1
  } catch {
    return false
  }
}
