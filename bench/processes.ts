import { type ChildProcess, fork } from 'node:child_process'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { KafkaClient } from '../src/network/index.ts'
import { createRealPlatform } from '../src/platform/index.ts'
import { apis } from '../src/protocol/index.ts'
import type { BrokerMessage, BrokerSettings, Usage } from './broker.ts'
import type { LoadJob, LoadReport, Measured } from './load.ts'

/** A broker that a benchmark puts load on: Rookery, or a peer beside it. */
export interface BrokerUnderTest {
  readonly name: string
  readonly port: number
  /** What is used from here on is measured, up to `end`. */
  begin(): Promise<void>
  end(): Promise<Usage>
  stop(): Promise<void>
}

/** Starts a broker whose data is in `directory`. */
export type StartBroker = (directory: string) => Promise<BrokerUnderTest>

export interface ForkedBroker extends BrokerUnderTest {
  /** As a crash of the process does: nothing is closed. */
  kill(): Promise<void>
}

/** `profileDirectory`: where each broker leaves a CPU profile when it ends. */
export function startRookery(profileDirectory?: string): (directory: string) => Promise<ForkedBroker> {
  const execArgv = profileDirectory === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profileDirectory]
  return (directory) => startFork(directory, execArgv)
}

async function startFork(directory: string, execArgv: string[]): Promise<ForkedBroker> {
  const overrides = { 'log.dirs': directory, listeners: 'PLAINTEXT://127.0.0.1:0' }
  const { child, serving, ended, begin, end } = forkBroker({ overrides }, execArgv)
  return {
    name: 'Rookery',
    port: await serving,
    begin,
    end,
    async stop() {
      child.send('stop')
      await ended
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** As the program sets it for itself. */
const poolThreads = 16

/** A broker's process. `serving` has its port; it ends with this process. */
export function forkBroker(settings: BrokerSettings, execArgv: string[]) {
  const threads = poolThreads + (settings.members?.length ?? 0)
  const child = forkOf('broker.ts', execArgv, { UV_THREADPOOL_SIZE: String(threads) })
  killedAtExit.add(child)
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      killedAtExit.delete(child)
      resolve()
    })
  })
  child.send(settings)
  return {
    child,
    ended,
    serving: next<BrokerMessage, 'serving'>(child, 'serving').then(({ port }) => port),
    async begin(): Promise<void> {
      child.send('begin')
      await next<BrokerMessage, 'began'>(child, 'began')
    },
    async end(): Promise<Usage> {
      child.send('end')
      return (await next<BrokerMessage, 'usage'>(child, 'usage')).usage
    },
  }
}

/** Processes that are not to outlive this one, whatever ends it: a stopped one would not notice. */
export const killedAtExit = new Set<{ kill(signal: NodeJS.Signals): unknown }>()
process.once('exit', () => {
  for (const child of killedAtExit) child.kill('SIGKILL')
})

/**
 * Creates a topic over the protocol, so that any broker can be asked. Resolves, when all its replicas are in sync, with the ports of
 * the leaders by partition.
 */
export async function createTopic(
  port: number,
  name: string,
  partitions: number,
  configs: Readonly<Record<string, string>>,
  replicationFactor = 1,
): Promise<number[]> {
  const platform = createRealPlatform()
  const options = { platform, host: '127.0.0.1', port, clientId: 'bench', timeoutMs: 30_000 }
  const client = await KafkaClient.connect(options)
  const topic = {
    name,
    numPartitions: partitions,
    replicationFactor,
    assignments: [],
    configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
  }
  const { topics } = await client.request(apis.CreateTopics, 5, { topics: [topic], timeoutMs: 30_000 })
  const created = topics[0]
  if (created?.errorCode !== 0) {
    throw new Error(`Topic ${name} was not created: error ${created?.errorCode} ${created?.errorMessage ?? ''}`)
  }
  // A peer may answer before its leaders are known.
  for (;;) {
    const { topics: seen, brokers } = await client.request(apis.Metadata, 4, {
      topics: [{ name }],
      allowAutoTopicCreation: false,
    })
    const ports = new Map(brokers.map((broker) => [broker.nodeId, broker.port]))
    const led = (seen[0]?.partitions ?? [])
      .filter(({ errorCode, isrNodes }) => errorCode === 0 && isrNodes.length === replicationFactor)
      .sort((a, b) => a.partitionIndex - b.partitionIndex)
      .flatMap(({ leaderId }) => ports.get(leaderId) ?? [])
    if (led.length === partitions) {
      client.close()
      return led
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export interface LoadResult {
  readonly measured: Measured
  readonly usage: Usage | undefined
  readonly acknowledged: readonly number[]
  readonly fetchedRecords: number
}

/** Runs a job in a process of its own, with the broker's usage over the measured part of it. */
export async function runLoad(job: LoadJob, broker?: BrokerUnderTest): Promise<LoadResult> {
  const child = forkOf('load.ts')
  try {
    child.send(job)
    await next<LoadReport, 'measuring'>(child, 'measuring')
    // Listened to from here on: a short run may be over before the broker has answered.
    const measuring = next<LoadReport, 'measured'>(child, 'measured')
    const ending = next<LoadReport, 'done'>(child, 'done')
    ending.catch(() => undefined)
    await broker?.begin()
    const { measured } = await measuring
    const usage = await broker?.end()
    const { acknowledged, fetched } = await ending
    return { measured, usage, acknowledged, fetchedRecords: fetched.records }
  } finally {
    if (child.connected) child.disconnect()
  }
}

/** A server that answers every request with `answerBytes` and looks at nothing; see sink.ts. */
export async function startSink(answerBytes: number): Promise<{ readonly port: number; stop(): void }> {
  const child = forkOf('sink.ts')
  child.send({ answerBytes })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message: { port: number }) => resolve(message.port))
    child.once('exit', (code) => reject(new Error(`sink.ts ended with code ${code}`)))
  })
  return { port, stop: () => child.disconnect() }
}

function forkOf(file: string, execArgv: string[] = [], env: Record<string, string> = {}): ChildProcess {
  const path = fileURLToPath(new URL(file, import.meta.url))
  return fork(path, { execArgv, env: { ...process.env, ...env }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/** The next message of that type. Rejects when the process fails or ends first. */
function next<Message extends { readonly type: string }, Type extends Message['type']>(
  child: ChildProcess,
  type: Type,
): Promise<Extract<Message, { readonly type: Type }>> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: Message | { readonly type: 'failed'; readonly message: string }): void => {
      if (message.type === type) {
        stop()
        resolve(message as Extract<Message, { readonly type: Type }>)
      } else if (message.type === 'failed') {
        stop()
        reject(new Error((message as { readonly message: string }).message))
      }
    }
    const onExit = (code: number | null): void => {
      stop()
      reject(new Error(`${child.spawnargs.at(-1)} ended with code ${code} before it reported '${type}'`))
    }
    const stop = (): void => {
      child.off('message', onMessage)
      child.off('exit', onExit)
    }
    child.on('message', onMessage)
    child.on('exit', onExit)
  })
}

/** A port that nothing listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}
