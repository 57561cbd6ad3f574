import { type ChildProcess, fork, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Embedded } from './embed.ts'
import { encodeBatch, produceError, produceFrame } from './frames.ts'
import { megabyte, syncedWriteLimit } from './machine.ts'
import { createTopic, freePort, runLoad, type StartBroker, startRookery } from './processes.ts'
import { figure, Table } from './table.ts'

/**
 * start: how soon a broker serves, a command ends, and what a broker holds in memory.
 *
 * Workload: `rookery start` over an empty folder, from the spawn of `node` to the answer to a record that is on the disk; `startBroker()` in an
 * empty program, in memory; `rookery topics list` against a broker that runs, from its spawn to its exit. `src` is the code as it is developed (types are stripped when it is loaded), `dist` the package, when `npm run build`
 * has made it. The compile cache is on, and warm from a first run that isn't counted. Then a broker at rest, under 3 GB of load
 * (with `--full`), and with 1,000 partitions under load.
 *
 * Numbers: the median of some runs, and the best. The limits of the same minute: `node` that does nothing, and one write + fdatasync.
 * To compare: differences to `node` alone; absolute times only on a machine at rest.
 */
export interface StartOptions {
  readonly directory: string
  readonly isFull: boolean
  readonly seconds: number
  readonly profileDirectory: string | undefined
}

const root = fileURLToPath(new URL('../', import.meta.url))
const topic = 'bench'
const partitions = 1000

export async function start(options: StartOptions): Promise<void> {
  const { directory, isFull } = options
  const runs = isFull ? 11 : 5
  const table = new Table([
    { heading: 'what', width: 74, left: true },
    { heading: 'median', width: 8 },
    { heading: 'best', width: 8 },
    { heading: 'unit', width: 5, left: true },
    { heading: 'to reach', width: 8 },
  ])
  table.head()
  const timesRow = (what: string, times: readonly number[], unit: string, goal = '') => {
    const sorted = [...times].sort((a, b) => a - b)
    table.row([what, figure(sorted[sorted.length >>> 1]!), figure(sorted[0]!), unit, goal])
  }
  timesRow('limit: node -e 0', await repeat(runs, () => exitMs(['-e', '0'])), 'ms')
  const { p50Ms } = await syncedWriteLimit(directory, 200, 200)
  timesRow('limit: write + fdatasync of one record', [p50Ms], 'ms')
  for (const build of builds()) {
    const first = await repeat(runs + 1, () => firstAcknowledgedMs(build.program, directory))
    timesRow(`${build.name}: node to first acknowledged record`, first.slice(1), 'ms', '< 400')
    const embedded = (await repeat(runs + 1, () => embed(build.module))).slice(1)
    const of = (key: keyof Embedded, unit = 1) => embedded.map((each) => each[key] / unit)
    timesRow(`${build.name}: rookery topics list`, await shortCommandMs(build.program, directory, runs), 'ms', '< 150')
    timesRow(`${build.name}: import`, of('importMs'), 'ms', '< 150')
    timesRow(`${build.name}: startBroker() after import`, of('startMs'), 'ms', '< 60')
    timesRow(`${build.name}: resident memory with startBroker()`, of('rssBytes', megabyte), 'MB')
    timesRow(
      `${build.name}: resident memory of rookery start, idle`,
      [(await idleRssBytes(build.program, directory)) / megabyte],
      'MB',
      '< 90',
    )
  }
  await underLoad(options, table)
}

async function underLoad({ directory, isFull, seconds, profileDirectory }: StartOptions, table: Table): Promise<void> {
  const broker = startRookery(profileDirectory)
  const gigabytes = isFull ? 3 : 0.7
  const loaded = await withBroker(broker, directory, async (running) => {
    await createTopic(running.port, topic, 1, { 'flush.messages': '9223372036854775807' })
    const produce = { recordBytes: 100, batchBytes: 128 * 1024, acks: 1, connections: 4, inFlight: 5 }
    const load = { ...produce, maxBytes: gigabytes * 1e9 }
    return (await runLoad({ port: running.port, topic, partitions: 1, produce: load, warmUpMs: 0 }, running)).usage!
  })
  table.row([
    `src: resident memory after ${gigabytes} GB of load`,
    figure(loaded.rssBytes / megabyte),
    '',
    'MB',
    '< 300',
  ])
  table.row([`src: highest resident memory meanwhile`, figure(loaded.peakRssBytes / megabyte), '', 'MB'])
  for (const [name, flushMessages] of [
    ['sync', '1'],
    ['no sync', '9223372036854775807'],
  ] as const) {
    const { filled, loaded } = await withBroker(broker, directory, async (running) => {
      await createTopic(running.port, topic, partitions, { 'flush.messages': flushMessages })
      const produce = { recordBytes: 100, batchBytes: 16 * 1024, acks: -1, connections: 4, inFlight: 5 }
      const job = { port: running.port, topic, partitions }
      const once = { ...produce, maxBytes: partitions * encodeBatch(produce).bytes.length }
      const filled = await runLoad({ ...job, produce: once, warmUpMs: 0 })
      const loaded = await runLoad({ ...job, produce, warmUpMs: 1000, measureMs: seconds * 1000 }, running)
      return { filled, loaded }
    })
    const { measured, usage } = loaded
    const firstMs = (filled.measured.seconds * 1000) / partitions
    table.row([`src: first append to one of 1,000 partitions, ${name}`, figure(firstMs), '', 'ms'])
    const load = `${figure(measured.produced.bytes / megabyte / measured.seconds)} MB/s in 16 KiB batches`
    const what = `src: event loop p99, 1,000 partitions, ${name}, ${load}`
    table.row([what, figure(usage?.loopDelayP99Ms ?? Number.NaN), '', 'ms', '< 20'])
    table.row([`src: resident memory with these`, figure((usage?.rssBytes ?? Number.NaN) / megabyte), '', 'MB'])
  }
}

interface Build {
  readonly name: 'src' | 'dist'
  readonly program: string
  /** URL. */
  readonly module: string
}

function builds(): Build[] {
  const all: Build[] = [
    { name: 'src', program: `${root}src/cli/main.ts`, module: new URL('../src/index.ts', import.meta.url).href },
    { name: 'dist', program: `${root}dist/cli/main.js`, module: new URL('../dist/index.js', import.meta.url).href },
  ]
  return all.filter(({ program }) => existsSync(program))
}

async function repeat<T>(times: number, measure: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let i = 0; i < times; i++) results.push(await measure())
  return results
}

function exitMs(args: readonly string[]): Promise<number> {
  const beganMs = performance.now()
  return new Promise((resolve, reject) => {
    spawn(process.execPath, args, { stdio: 'ignore' }).once('exit', (code) => {
      if (code === 0) resolve(performance.now() - beganMs)
      else reject(new Error(`${args.join(' ')} ended with code ${code}`))
    })
  })
}

/** A broker by the command line in an empty folder, on a port that is known before it listens. */
async function rookeryStart(
  program: string,
  parent: string,
): Promise<{ child: ChildProcess; port: number; stop(): Promise<void> }> {
  const directory = await mkdtemp(join(parent, 'start-'))
  const port = await freePort()
  const settings = [`log.dirs=${directory}`, `listeners=PLAINTEXT://127.0.0.1:${port}`]
  const args = [program, 'start', '--topic', topic, ...settings.flatMap((setting) => ['--override', setting])]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  const stop = async () => {
    child.kill()
    await exited
    await rm(directory, { recursive: true, force: true })
  }
  return { child, port, stop }
}

async function firstAcknowledgedMs(program: string, parent: string): Promise<number> {
  const beganMs = performance.now()
  const { port, stop } = await rookeryStart(program, parent)
  await produceOne(port)
  const tookMs = performance.now() - beganMs
  await stop()
  return tookMs
}

/** The first run, which warms the compile cache, isn't counted. */
async function shortCommandMs(program: string, parent: string, runs: number): Promise<number[]> {
  const { port, stop } = await rookeryStart(program, parent)
  try {
    await produceOne(port)
    const args = [program, 'topics', 'list', '--bootstrap-server', `127.0.0.1:${port}`]
    return (await repeat(runs + 1, () => exitMs(args))).slice(1)
  } finally {
    await stop()
  }
}

const connectRetryMs = 2
const deadlineMs = 20_000

/** Connects as soon as it can and sends one record; the broker takes the connection before it serves and answers when it does. */
async function produceOne(port: number): Promise<void> {
  const frame = produceFrame(topic, 0, -1, encodeBatch({ recordBytes: 100, batchBytes: 1 }).bytes)
  const giveUpMs = performance.now() + deadlineMs
  for (;;) {
    const answer = await exchange(port, frame)
    if (answer !== undefined) {
      const error = produceError(answer.subarray(4))
      if (error !== 0) throw new Error(`The first record was answered with error ${error}`)
      return
    }
    if (performance.now() > giveUpMs) throw new Error(`Nothing listened on port ${port} within ${deadlineMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, connectRetryMs))
  }
}

/** The answer; undefined when the connection is refused. */
function exchange(port: number, frame: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(frame))
    socket.once('error', () => resolve(undefined))
    socket.once('data', (answer) => {
      socket.destroy()
      resolve(answer)
    })
  })
}

const settleMs = 1500

/** Of a broker that has nothing to do: measured from outside, on Linux only. */
async function idleRssBytes(program: string, parent: string): Promise<number> {
  const { child, port, stop } = await rookeryStart(program, parent)
  try {
    await produceOne(port)
    await new Promise((resolve) => setTimeout(resolve, settleMs))
    const status = await readFile(`/proc/${child.pid}/status`, 'latin1').catch(() => '')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024
  } finally {
    await stop()
  }
}

function embed(module: string): Promise<Embedded> {
  const child = fork(fileURLToPath(new URL('embed.ts', import.meta.url)), [module])
  return new Promise((resolve, reject) => {
    let embedded: Embedded | undefined
    child.once('message', (message: Embedded) => {
      embedded = message
    })
    child.once('exit', (code) => {
      if (embedded === undefined) reject(new Error(`embed.ts ended with code ${code}`))
      else resolve(embedded)
    })
  })
}

async function withBroker<T>(
  startBroker: StartBroker,
  parent: string,
  use: (broker: Awaited<ReturnType<StartBroker>>) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(parent, 'broker-'))
  const broker = await startBroker(directory)
  try {
    return await use(broker)
  } finally {
    await broker.stop()
    await rm(directory, { recursive: true, force: true })
  }
}
