import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { kafkaJars as broughtJars, findPeer } from '../../test/support/peers.ts'
import { cpuSeconds, statusBytes } from '../machine.ts'
import { UsageError } from '../options.ts'
import { type BrokerUnderTest, createTopic, freePort, killedAtExit, type StartBroker } from '../processes.ts'

/**
 * Apache Kafka as a KRaft broker of one node, with its own defaults but for what a single node needs. Needs `java` and a folder with Kafka's
 * jars. What it uses is read from /proc, so on Linux only.
 */
const ownHeap = '1G' // what Kafka's own start script gives a broker
const formatHeap = '256m'
const jvmOptions = [
  '-server',
  '-XX:+UseG1GC',
  '-XX:MaxGCPauseMillis=20',
  '-XX:InitiatingHeapOccupancyPercent=35',
  '-XX:MaxInlineLevel=15',
  '-Djava.awt.headless=true',
]
export const clusterId = '4L6g3nShT-eMCtK--X86sw'
const startTimeoutMs = 60_000
const pollMs = 100

/** The jars of `scripts/kafka-jars.sh`, or those in `folder`. Throws `UsageError` when they, or java, are missing. */
export function findKafka(folder?: string): { readonly jars: string; readonly version: string } {
  const jars = folder === undefined ? broughtJars : resolve(folder)
  const version = versionIn(jars)
  if (folder !== undefined && version === undefined) {
    throw new UsageError(
      `--kafka-jars ${folder}: allowed is a folder with Kafka's jars, kafka_2.13-4.4.0.jar and all others`,
    )
  }
  const found = findPeer('kafka')
  if ('missing' in found && (folder === undefined || found.missing === 'java')) {
    throw new UsageError(`${found.missing} is not on this machine; \`${found.remedy}\` brings it`)
  }
  return { jars, version: version ?? 'of an unknown version' }
}

function versionIn(jars: string): string | undefined {
  if (!existsSync(jars)) return undefined
  const names = readdirSync(jars).flatMap((name) => /^kafka_[\d.]+-(\d[\d.]*)\.jar$/.exec(name)?.[1] ?? [])
  return names[0]
}

export function startKafka(jars: string): StartBroker {
  return async (directory) => {
    const [port, controllerPort] = [await freePort(), await freePort()]
    await mkdir(directory, { recursive: true })
    const config = join(directory, 'server.properties')
    await writeFile(config, properties(directory, port, controllerPort))
    await java(formatArguments(jars, clusterId, config), directory).ended
    const kafka = java(brokerArguments(jars, config, ownHeap), directory)
    let failure: Error | undefined
    kafka.ended.catch((error: Error) => {
      failure = error
    })
    const deadlineMs = performance.now() + startTimeoutMs
    for (;;) {
      try {
        await createTopic(port, 'started', 1, {})
        break
      } catch (error) {
        if (failure !== undefined) throw failure
        if (performance.now() > deadlineMs) throw error
        await new Promise((resolve) => setTimeout(resolve, pollMs))
      }
    }
    return underTest(port, kafka)
  }
}

/** Of `java`, to format the folders that `config` names. */
export function formatArguments(jars: string, clusterId: string, config: string): string[] {
  return [
    `-Xmx${formatHeap}`,
    '-cp',
    join(jars, '*'),
    'kafka.tools.StorageTool',
    'format',
    '-t',
    clusterId,
    '-c',
    config,
  ]
}

/** Of `java`, to run the broker of `config`. `heap` as java takes it. */
export function brokerArguments(jars: string, config: string, heap: string): string[] {
  return [...jvmOptions, `-Xms${heap}`, `-Xmx${heap}`, '-cp', join(jars, '*'), 'kafka.Kafka', config]
}

function underTest(port: number, kafka: ReturnType<typeof java>): BrokerUnderTest {
  const pid = kafka.child.pid ?? 0
  let cpuBefore = 0
  return {
    name: 'Kafka',
    port,
    async begin() {
      cpuBefore = await cpuSeconds(pid)
    },
    async end() {
      return {
        cpuSeconds: (await cpuSeconds(pid)) - cpuBefore,
        loopDelayP99Ms: undefined,
        loopDelayMaxMs: undefined,
        rssBytes: await statusBytes(pid, 'VmRSS'),
        peakRssBytes: await statusBytes(pid, 'VmHWM'),
      }
    },
    async stop() {
      kafka.child.kill()
      await kafka.ended.catch(() => undefined)
    },
  }
}

function properties(directory: string, port: number, controllerPort: number): string {
  return [
    'process.roles=broker,controller',
    'node.id=1',
    `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
    `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    'controller.listener.names=CONTROLLER',
    `log.dirs=${join(directory, 'data')}`,
    'offsets.topic.replication.factor=1',
    'transaction.state.log.replication.factor=1',
    'transaction.state.log.min.isr=1',
    '',
  ].join('\n')
}

/** A process that ends with this one. `ended` rejects with what it wrote when it ends with a fault. */
export function java(args: readonly string[], directory: string) {
  const child = spawn('java', args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] })
  killedAtExit.add(child)
  let output = ''
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4000)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      killedAtExit.delete(child)
      if (code === 0) resolve()
      else reject(new Error(`java ended with ${code === null ? signal : `code ${code}`}\n${output}`))
    })
  })
  ended.catch(() => undefined) // who doesn't wait for it has killed it
  return { ended, child }
}
