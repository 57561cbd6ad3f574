import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ClusterClient, clockMs, nodeIds, type RookeryCluster, sleep, startRookeryCluster, until } from './cluster.ts'
import { loadText, megabyte } from './machine.ts'
import { ProduceProbe, WriteProbe } from './probes.ts'
import { figure, Table } from './table.ts'

/**
 * partitions: what thousands of replicated partitions cost three nodes.
 *
 * Workload: 1,000 and 10,000 partitions with three replicas each, made through the controller and idle; one node stopped in order and
 * started, and the controller killed while clients produce and change settings (as in failover.ts).
 *
 * Numbers: seconds of the step; how late a timer of any of the three event loops ran, p99 and worst; processor time of the three
 * nodes as a share of one core; resident memory of the largest. Controller failover is in the column of seconds.
 *
 * To compare: with the row `idle, empty` of the same run, which is the machine's own.
 */
export interface PartitionsOptions {
  readonly directory: string
  readonly seconds: number
  readonly rows: string | undefined
  readonly profileDirectory: string | undefined
}

/** One request may make less than 10,000. */
const maxPerTopic = 2500
const configs = { 'min.insync.replicas': '2' }

export async function partitions({ directory, seconds, rows, profileDirectory }: PartitionsOptions): Promise<void> {
  const table = new Table([
    { heading: 'step', width: 58, left: true },
    { heading: 'seconds', width: 8 },
    { heading: 'loop p99 ms', width: 11 },
    { heading: 'max', width: 6 },
    { heading: 'CPU %', width: 6 },
    { heading: 'MB', width: 6 },
  ])
  table.head()
  for (const count of [1000, 10_000]) {
    if (rows !== undefined && rows !== String(count)) continue
    const folder = await mkdtemp(join(directory, 'partitions-'))
    try {
      await using cluster = await startRookeryCluster({ profileDirectory })(folder)
      await new Steps(cluster, table, count, seconds).run()
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
  console.log(`\n${loadText()}`)
}

class Steps {
  readonly #cluster: RookeryCluster
  readonly #table: Table
  readonly #seconds: number
  readonly #client: ClusterClient
  readonly #count: number
  readonly #topics: readonly { readonly name: string; readonly partitions: number }[]

  constructor(cluster: RookeryCluster, table: Table, count: number, seconds: number) {
    this.#cluster = cluster
    this.#table = table
    this.#seconds = seconds
    this.#count = count
    this.#client = new ClusterClient(cluster.ports)
    const topics = Math.ceil(count / maxPerTopic)
    this.#topics = Array.from({ length: topics }, (_, i) => ({ name: `topic-${i}`, partitions: count / topics }))
  }

  async run(): Promise<void> {
    const count = this.#count.toLocaleString('en-US')
    await this.#step('idle, empty', () => sleep(this.#seconds * 1000))
    await this.#step(`create ${count} partitions, until each node knows the leaders`, async () => {
      for (const { name, partitions } of this.#topics) {
        const replicas = Array.from({ length: partitions }, (_, i) => [0, 1, 2].map((k) => nodeIds[(i + k) % 3]!))
        await this.#client.createTopic(name, replicas, configs)
      }
      await this.#untilInSync()
    })
    await this.#step(`idle, ${count} partitions`, () => sleep(this.#seconds * 1000))
    const victim = await this.#client.whichController()
    const follower = nodeIds[victim % 3]!
    await this.#timed('a node stops in order', async () => {
      this.#cluster.signal(follower, 'SIGTERM')
      await this.#cluster.ended(follower)
    })
    this.#client.drop(follower)
    await this.#timed('it starts, until it serves', () => this.#cluster.start(follower))
    await this.#timed('and until all its replicas are in sync', () => this.#untilInSync())
    await this.#failController(victim)
    await this.#timed('the killed node starts, until it serves', () => this.#cluster.start(victim))
    await this.#timed('and until all its replicas are in sync', () => this.#untilInSync())
    await this.#step(`idle, ${count} partitions, afterwards`, () => sleep(this.#seconds * 1000))
    this.#client.close()
  }

  async #failController(victim: number): Promise<void> {
    const { name } = this.#topics[0]!
    const seen = await this.#client.partitions(victim, name)
    const led = seen.findIndex(({ leader }) => leader === victim)
    const writes = new WriteProbe(
      this.#cluster.ports,
      name,
      nodeIds.filter((id) => id !== victim),
    )
    const produces = new ProduceProbe(this.#cluster.ports, name, led, victim)
    try {
      await Promise.all([writes.start(), produces.start()])
      await sleep(500)
      const sinceMs = clockMs()
      this.#cluster.signal(victim, 'SIGKILL')
      const isOver = () =>
        writes.firstAfter(sinceMs, victim) !== undefined && produces.firstAfter(sinceMs, victim) !== undefined
      await until(isOver, 'a new controller and a new leader')
      const secondsTo = (probe: WriteProbe | ProduceProbe) =>
        (probe.firstAfter(sinceMs, victim)!.answeredMs - sinceMs) / 1000
      this.#table.row(['the controller is killed, until a change of settings is answered', figure(secondsTo(writes))])
      this.#table.row(['and until what it led takes a record, acks=all', figure(secondsTo(produces))])
    } finally {
      await Promise.all([writes.stop(), produces.stop()])
      this.#client.drop(victim)
      await this.#cluster.ended(victim)
    }
  }

  async #untilInSync(): Promise<void> {
    for (const { name, partitions } of this.#topics) await this.#client.untilInSync(name, partitions)
  }

  async #timed(what: string, work: () => Promise<void>): Promise<void> {
    const beganMs = clockMs()
    await work()
    this.#table.row([what, figure((clockMs() - beganMs) / 1000)])
  }

  async #step(what: string, work: () => Promise<void>): Promise<void> {
    await this.#cluster.begin()
    const beganMs = clockMs()
    await work()
    const seconds = (clockMs() - beganMs) / 1000
    const usages = await this.#cluster.end()
    const most = (values: readonly (number | undefined)[]) => Math.max(...values.map((value) => value ?? Number.NaN))
    const cpuSeconds = usages.reduce((sum, usage) => sum + usage.cpuSeconds, 0)
    this.#table.row([
      what,
      figure(seconds),
      figure(most(usages.map((usage) => usage.loopDelayP99Ms))),
      figure(most(usages.map((usage) => usage.loopDelayMaxMs))),
      figure((cpuSeconds / seconds) * 100),
      figure(most(usages.map((usage) => usage.rssBytes)) / megabyte),
    ])
  }
}
