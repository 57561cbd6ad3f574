import { rmSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { asBroker, startRookeryCluster } from './cluster.ts'
import { machineLine } from './machine.ts'
import { startRookery } from './processes.ts'
import { count, figure, ratio } from './table.ts'
import { canonicalRow, limitsOf, runRow, throughput } from './throughput.ts'

const help = `npm run bench                              one workload, two numbers
npm run bench -- throughput [options]      produce and fetch, beside the machine's limits
npm run bench -- start [options]           start-up time and memory
npm run bench -- scale [options]           thousands of partitions and connections
npm run bench -- starvation [options]      Raft beside a data plane that does all it can, on three nodes
npm run bench -- failover [options]        one of three nodes dies, hangs or is stopped: how long clients wait
npm run bench -- partitions [options]      thousands of replicated partitions on three nodes
npm run bench -- micro [options]           parts of the hot path by themselves
npm run bench -- compaction [options]      a log is compacted: how fast, and how long the event loop is held

  --full             every row, longer (throughput); 3 GB of load (start); four times the records (compaction)
  --rows TEXT        only rows with TEXT in their names (scale: 'partitions' or 'connections'; partitions: '1000' or '10000')
  --runs N           of each event (failover); 20 when left out, 3 for peers
  --seconds N        measured seconds for each row
  --peer kafka       Apache Kafka beside Rookery, from the jars in --kafka-jars DIR; failover: with its own timeouts, and with Rookery's
  --peers-only       the peer without Rookery (failover)
  --inline           Raft on the nodes' event loops, as before it had a thread (starvation, failover)
  --profile DIR      leave CPU profiles of the brokers in DIR
  --dir DIR          where data goes while a benchmark runs; a folder of the system's temporary folder when left out

How to read each: the comment at the top of bench/<name>.ts.
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: 'boolean', default: false },
    rows: { type: 'string' },
    seconds: { type: 'string' },
    peer: { type: 'string' },
    'kafka-jars': { type: 'string' },
    runs: { type: 'string' },
    'peers-only': { type: 'boolean', default: false },
    inline: { type: 'boolean', default: false },
    profile: { type: 'string' },
    dir: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
await main()

async function main(): Promise<void> {
  const [name] = positionals
  if (values.help) {
    console.log(help)
    return
  }
  const directory = resolve(values.dir ?? join(tmpdir(), `rookery-bench-${process.pid}`))
  await mkdir(directory, { recursive: true })
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  console.log(`${machineLine()}\n`)
  try {
    switch (name) {
      case undefined:
        return await canonical(directory)
      case 'throughput':
        return await throughput({
          directory,
          seconds: seconds(values.full ? 4 : 1.5),
          rows: values.rows,
          isFull: values.full,
          brokers: [startRookery(values.profile), ...(await peers())],
          clusters: [
            asBroker(startRookeryCluster()),
            ...(await peerClusters()).slice(0, 1).map(({ start }) => asBroker(start)),
          ],
        })
      case 'start': {
        const { start } = await import('./start.ts')
        const profileDirectory = values.profile
        return await start({ directory, isFull: values.full, seconds: seconds(3), profileDirectory })
      }
      case 'scale': {
        const { scale } = await import('./scale.ts')
        const profileDirectory = values.profile
        return await scale({ directory, isFull: values.full, seconds: seconds(3), rows: values.rows, profileDirectory })
      }
      case 'compaction': {
        const { compaction } = await import('./compaction.ts')
        return await compaction({ directory, isFull: values.full })
      }
      case 'starvation': {
        const { starvation } = await import('./starvation.ts')
        return await starvation({
          directory,
          seconds: seconds(10),
          profileDirectory: values.profile,
          inline: values.inline,
        })
      }
      case 'failover': {
        const { failover } = await import('./failover.ts')
        const own = {
          start: startRookeryCluster({ profileDirectory: values.profile, inline: values.inline }),
          isPeer: false,
        }
        const clusters = [...(values['peers-only'] ? [] : [own]), ...(await peerClusters())]
        const [runs, peerRuns] = [number('runs', 20), number('runs', 3)]
        return await failover({ directory, runs, peerRuns, rows: values.rows, clusters })
      }
      case 'partitions': {
        const { partitions } = await import('./partitions.ts')
        const profileDirectory = values.profile
        return await partitions({ directory, seconds: seconds(5), rows: values.rows, profileDirectory })
      }
      case 'micro': {
        const { micro } = await import('./micro.ts')
        return await micro({ directory, seconds: seconds(0.4), rows: values.rows })
      }
      default:
        console.error(help)
        process.exitCode = 1
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** The numbers to watch from one commit to the next. */
async function canonical(directory: string): Promise<void> {
  const limits = await limitsOf(canonicalRow, directory)
  const { recordsPerSecond, megabytesPerSecond, result, readBack } = await runRow(
    canonicalRow,
    startRookery(values.profile),
    directory,
    seconds(4),
    limits,
  )
  const { latencyMs } = result.measured
  console.log(`records/s acknowledged  ${Math.round(recordsPerSecond).toLocaleString('en-US')}`)
  console.log(`p99 ms to the answer    ${figure(latencyMs.p99)}\n`)
  const { connections, inFlight, batchBytes } = canonicalRow.produce
  console.log(
    `100 B records in ${batchBytes / 1024} KiB batches, ${connections} connections x ${inFlight} requests in flight, acks=-1 after fdatasync`,
  )
  console.log(
    `${figure(megabytesPerSecond)} MB/s; ${ratio(megabytesPerSecond / limits.loopback)} of loopback, ${ratio(megabytesPerSecond / (limits.disk ?? Number.NaN))} of write + fdatasync of one batch; ${count(readBack.records)} records read back, all there`,
  )
}

async function peers() {
  if (values.peer === undefined) return []
  if (values.peer !== 'kafka') throw new Error(`--peer ${values.peer}: allowed is kafka`)
  const { startKafka } = await import('./peers/kafka.ts')
  return [startKafka(kafkaJars())]
}

async function peerClusters() {
  if (values.peer === undefined) return []
  if (values.peer !== 'kafka') throw new Error(`--peer ${values.peer}: allowed is kafka`)
  const { startKafkaCluster } = await import('./peers/kafka-cluster.ts')
  const tuned = { 'broker.session.timeout.ms': 3000, 'broker.heartbeat.interval.ms': 500 }
  return [
    { start: startKafkaCluster(kafkaJars(), 'Kafka', {}), isPeer: true },
    { start: startKafkaCluster(kafkaJars(), 'Kafka 3/0.5 s', tuned), isPeer: true },
  ]
}

function kafkaJars(): string {
  return resolve(values['kafka-jars'] ?? 'node_modules/.cache/kafka-4.4.0')
}

function seconds(standard: number): number {
  return number('seconds', standard)
}

function number(option: 'seconds' | 'runs', standard: number): number {
  const given = Number(values[option] ?? standard)
  if (!(given > 0)) throw new Error(`--${option} ${values[option]}: allowed is a number above 0`)
  return given
}
