import { join } from 'node:path'
import { freePorts } from '../test/support/free-ports.ts'
import type { RaftUsage } from './broker.ts'
import { ClusterClient, nodeIds, type RookeryCluster, sleep, startRookeryCluster } from './cluster.ts'
import { loadText, megabyte } from './machine.ts'
import { runLoad } from './processes.ts'
import { figure, percentile, Table } from './table.ts'

/**
 * starvation: does Raft get its turns beside a data plane that does all it can?
 *
 * Workload: three nodes, 64 partitions with three replicas each, all of them written to with acks=all and a sync before each answer.
 * Beside the node's own Raft each process runs a member of two further quorums of the same code, store and transport, one on
 * the node's event loop ('inline') and one in a worker thread: what they show differs only by where Raft runs. The leader of each
 * proposes twenty entries a second; the controller changes a setting as often.
 *
 * The node's own Raft is in a thread as well, unless `--inline` says otherwise; its heartbeats are seen only on the event loop.
 *
 * Numbers: terms that ended (0: nobody lost the quorum), milliseconds from a heartbeat to its answer and from a proposal to its commit, and for
 * the worker the same as the event loop sees it; how late a timer of the busiest event loop ran. First idle, then under load.
 *
 * To compare: rows of one run. Heartbeats go out every 100 ms, and a follower campaigns after 1 to 2 s without one.
 */
export interface StarvationOptions {
  readonly directory: string
  readonly seconds: number
  readonly profileDirectory: string | undefined
  /** The nodes' own Raft is on their event loops; in threads of their own otherwise. */
  readonly inline: boolean
}

const topic = 'bench'
const partitions = 64
const produce = { recordBytes: 100, batchBytes: 16 * 1024, acks: -1, connections: 4, inFlight: 8 }
const leadersTimeoutMs = 3000

export async function starvation({ directory, seconds, profileDirectory, inline }: StarvationOptions): Promise<void> {
  const ports = { inline: await freePorts(nodeIds.length), worker: await freePorts(nodeIds.length) }
  const start = startRookeryCluster({
    profileDirectory,
    inline,
    settings: (nodeId, parent) => ({
      watchesRaft: true,
      members: (['inline', 'worker'] as const).map((where) => ({
        where,
        nodeId,
        ports: ports[where],
        directory: join(parent, `${where}-${nodeId}`),
      })),
    }),
  })
  await using cluster = await start(directory)
  const client = new ClusterClient(cluster.ports)
  const replicas = Array.from({ length: partitions }, (_, i) => [i % 3, (i + 1) % 3, (i + 2) % 3].map((n) => n + 1))
  await client.createTopic(topic, replicas)
  await client.untilInSync(topic, partitions)
  await sleep(leadersTimeoutMs) // every quorum has a leader by then
  const table = new Table([
    { heading: 'load', width: 34, left: true },
    { heading: 'Raft', width: 8, left: true },
    { heading: 'terms ended', width: 11 },
    { heading: 'heartbeat p50', width: 13 },
    { heading: 'p99', width: 6 },
    { heading: 'max', width: 6 },
    { heading: 'commit p50', width: 10 },
    { heading: 'p99', width: 6 },
    { heading: 'max', width: 6 },
    { heading: 'across p50', width: 10 },
    { heading: 'p99', width: 6 },
    { heading: 'loop p99', width: 8 },
    { heading: 'max', width: 6 },
  ])
  table.head()
  const before = await measure(cluster, () => sleep((seconds * 1000) / 2))
  print(table, 'idle', before, before)
  const leaders = await client.partitions(1, topic)
  const port = leaders.map(({ leader }) => cluster.ports[leader - 1]!)
  const text = `${produce.connections * 3} x ${produce.inFlight} x 16 KiB`
  let rate = 0
  const under = await measure(cluster, async () => {
    const { measured } = await runLoad({ port, topic, partitions, produce, warmUpMs: 500, measureMs: seconds * 1000 })
    rate = measured.produced.bytes / megabyte / measured.seconds
  })
  print(table, `${text}, ${figure(rate)} MB/s`, under, before)
  client.close()
  console.log(`\n${loadText()}`)
}

type Measured = Awaited<ReturnType<RookeryCluster['end']>>

async function measure(cluster: RookeryCluster, work: () => Promise<void>): Promise<Measured> {
  await cluster.begin()
  await work()
  return await cluster.end()
}

function print(table: Table, load: string, measured: Measured, before: Measured): void {
  for (const where of ['node', 'inline', 'worker'] as const) {
    const membersOf = (usages: Measured) =>
      usages.flatMap(({ raft = [] }) => raft.filter((member) => member.where === where))
    const members = membersOf(measured)
    const term = (all: readonly RaftUsage[]) => Math.max(...all.map((member) => member.term))
    const heartbeats = members.flatMap((member) => member.heartbeats)
    const commits = members.flatMap((member) => member.commits)
    const across = members.flatMap((member) => member.commitsAcross)
    table.row([
      load,
      where,
      String(term(members) - term(membersOf(before))),
      ...[50, 99, 100].map((rank) => (heartbeats.length === 0 ? '' : figure(percentile(heartbeats, rank)))),
      ...[50, 99, 100].map((rank) => figure(percentile(commits, rank))),
      ...[50, 99].map((rank) => (across.length === 0 ? '' : figure(percentile(across, rank)))),
      ...(where === 'node'
        ? [measured.map((usage) => usage.loopDelayP99Ms), measured.map((usage) => usage.loopDelayMaxMs)].map((delays) =>
            figure(Math.max(...delays.map((delay) => delay ?? Number.NaN))),
          )
        : []),
    ])
  }
}
