import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { asBroker, startRookeryCluster } from './cluster.ts'
import { machineLine } from './machine.ts'
import { type BenchOptions, help, parseOptions, UsageError } from './options.ts'
import { startRookery } from './processes.ts'
import { count, figure, ratio } from './table.ts'
import { canonicalRow, limitsOf, runRow, throughput } from './throughput.ts'

/** Of each Java node of a cluster that is stopped and started: what Kafka's own script gives, of which it takes what it needs. */
const failoverHeap = '1g'

process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
process.once('SIGHUP', () => process.exit(129))
try {
  const options = parseOptions(process.argv.slice(2))
  if (options === 'help') console.log(help)
  else await run(options)
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  console.error(error.message)
  process.exitCode = 1
}

async function run(options: BenchOptions): Promise<void> {
  const { name, full: isFull, rows, inline, profile: profileDirectory } = options
  const seconds = (standard: number) => options.seconds ?? standard
  const parent = resolve(options.dir ?? tmpdir())
  await mkdir(parent, { recursive: true })
  const directory = await mkdtemp(join(parent, 'rookery-bench-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  console.log(`${machineLine()}\n`)
  try {
    switch (name) {
      case '':
        return await canonical(directory, seconds(4), profileDirectory)
      case 'throughput':
        return await throughput({
          directory,
          seconds: seconds(isFull ? 4 : 1.5),
          rows,
          isFull,
          brokers: [startRookery(profileDirectory), ...(await peers(options))],
          clusters: [
            asBroker(startRookeryCluster()),
            ...(await peerClusters(options, '1G')).slice(0, 1).map(({ start }) => asBroker(start)),
          ],
        })
      case 'start': {
        const { start } = await import('./start.ts')
        return await start({ directory, isFull, seconds: seconds(3), profileDirectory })
      }
      case 'scale': {
        const { scale } = await import('./scale.ts')
        return await scale({ directory, isFull, seconds: seconds(3), rows, profileDirectory })
      }
      case 'compaction': {
        const { compaction } = await import('./compaction.ts')
        return await compaction({ directory, isFull })
      }
      case 'starvation': {
        const { starvation } = await import('./starvation.ts')
        return await starvation({
          directory,
          seconds: seconds(10),
          profileDirectory,
          inline,
        })
      }
      case 'failover': {
        const { failover } = await import('./failover.ts')
        const start = startRookeryCluster({ profileDirectory, inline })
        const about = `Rookery: default settings${inline ? ', Raft on the event loops' : ''}`
        const own = { name: 'Rookery', kind: 'rookery', start, about } as const
        const clusters = [...(options.peersOnly ? [] : [own]), ...(await peerClusters(options, failoverHeap))]
        const { runs, peerRuns } = options
        return await failover({ directory, runs, peerRuns, rows, clusters })
      }
      case 'partitions': {
        const { partitions } = await import('./partitions.ts')
        return await partitions({ directory, seconds: seconds(5), rows, profileDirectory })
      }
      case 'micro': {
        const { micro } = await import('./micro.ts')
        return await micro({ directory, seconds: seconds(0.4), rows })
      }
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** The numbers to watch from one commit to the next. */
async function canonical(directory: string, seconds: number, profileDirectory: string | undefined): Promise<void> {
  const limits = await limitsOf(canonicalRow, directory)
  const { recordsPerSecond, megabytesPerSecond, result, readBack } = await runRow(
    canonicalRow,
    startRookery(profileDirectory),
    directory,
    seconds,
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

async function peers({ peer, kafkaJars }: BenchOptions) {
  if (peer === undefined) return []
  const { findKafka, startKafka } = await import('./peers/kafka.ts')
  return [startKafka(findKafka(kafkaJars).jars)]
}

async function peerClusters({ peer, kafkaJars }: BenchOptions, heap: string) {
  if (peer === undefined) return []
  const { kafkaClusters } = await import('./peers/kafka-cluster.ts')
  return kafkaClusters(kafkaJars, heap)
}
