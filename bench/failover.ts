import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ClusterClient, type ClusterUnderTest, clockMs } from './cluster.ts'
import {
  type ClusterKind,
  type FailoverCluster,
  type FailoverEvent,
  failoverEvents,
  warmUp,
} from './failover-events.ts'
import { durationText, type Figures, namesLike, type Outcome, rowsOf, sideBySide } from './failover-report.ts'
import { loadText } from './machine.ts'
import { figure, Table } from './table.ts'

/**
 * failover: how long clients are held up when one of three nodes dies, hangs or is stopped.
 *
 * Workload: three nodes that are brokers and voters, with default settings; topics with three replicas and min.insync.replicas=2. A producer
 * (probes.ts) sends one record after the other with acks=all and asks every node who leads as soon as an answer is late;
 * another client changes a setting of a topic again and again, at the nodes that stay. Then one node gets a signal: the controller, which leads a
 * partition too, or another one, which leads one partition and follows in others. Each run begins when all replicas are in sync again.
 *
 * Numbers, in milliseconds from the signal: `new controller`, to the answer to a change that was asked for afterwards; `first ack, it led`, to
 * the first record that another node acknowledged; `process ended`. `stall` is the longest time without an acknowledgement, where the node
 * led or followed, and `no changes of settings` without a change.
 * `fencing` is from inside, without detection: from the moment at which the controller hears that a broker with 10,000 leaderships is gone to
 * that at which the last node has replaced them in its metadata and its logs. `metadata write` is one change after the other, asked of the
 * controller's node or of another one. Median and worst of all runs. A run that fails is told, counted, and in no figure, and the next one
 * has new nodes with empty folders.
 *
 * To compare: with a peer of the same run, which the same client drives. Real clients add their own timeouts and backoffs. A peer's `new controller`
 * is longer than its election where its brokers wait for one that hangs.
 */
export interface FailoverOptions {
  readonly directory: string
  readonly runs: number
  /** See `namesLike`. */
  readonly rows: string | undefined
  /** Rookery first. */
  readonly clusters: readonly FailoverCluster[]
  /** Instead of `runs`, for all but Rookery. */
  readonly peerRuns: number
}

/** Long enough for Java to compile what it does again and again. */
const warmUpMs = 5000
/** To start three nodes, to warm them up and to remove their folders. */
const startSeconds = { rookery: 10, kafka: 30, 'tuned-kafka': 30 }
/** So many runs that fail one after the other are the last of their event. */
const maxFailures = 3

/** A failed run makes the exit code 1. */
export async function failover(options: FailoverOptions): Promise<void> {
  const { directory, clusters } = options
  const parts = planOf(options)
  for (const { about } of clusters) console.log(about)
  console.log(loadText())
  const progress = new Progress(parts.reduce((sum, { seconds }) => sum + seconds, 0))
  const outcomes: PartOutcome[] = []
  const print = () => {
    process.off('exit', print)
    printTable(outcomes)
  }
  process.on('exit', print) // what there is, after Ctrl-C too
  for (const cluster of clusters) {
    const nodes = new Nodes(cluster, directory)
    try {
      for (const part of parts.filter((each) => each.cluster === cluster)) {
        const outcome = { event: part.event, kind: cluster.kind, brokers: cluster.name, figures: [], failures: [] }
        outcomes.push(outcome)
        await runAll(nodes, part, outcome, progress)
      }
    } catch (error) {
      process.exitCode = 1
      progress.say(`${cluster.name}: the nodes don't start, all that is left is left out: ${reasonOf(error)}`)
    } finally {
      await nodes.discard()
    }
  }
  print()
}

/** All runs of one event with one cluster. */
interface Part {
  readonly cluster: FailoverCluster
  readonly event: FailoverEvent
  readonly count: number
  /** About, with what comes before and after. */
  readonly seconds: number
}

interface PartOutcome extends Outcome {
  readonly event: FailoverEvent
  readonly kind: ClusterKind
}

/** In the order in which they run. Throws `UsageError`. */
function planOf({ rows, runs, peerRuns, clusters }: FailoverOptions): Part[] {
  const names = namesLike(
    failoverEvents.map(({ name }) => name),
    rows,
  )
  const events = failoverEvents.filter(({ name }) => names.includes(name))
  return clusters.flatMap((cluster) =>
    events.map((event, i) => {
      const { kind } = cluster
      const count = kind === 'rookery' ? runs : Math.min(peerRuns, event.maxPeerRuns ?? peerRuns)
      const once = (i === 0 ? startSeconds[kind] : 0) + (event.preparationSeconds?.[kind] ?? 0)
      return { cluster, event, count, seconds: once + count * event.seconds[kind] }
    }),
  )
}

/** Rejects when the nodes don't start. */
async function runAll(
  nodes: Nodes,
  { event, count, seconds }: Part,
  outcome: { readonly figures: Figures[]; readonly failures: string[] },
  progress: Progress,
): Promise<void> {
  const topic = event.name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  let failed = 0
  for (let run = 1; run <= count; run++) {
    const what = `${nodes.name}: ${event.name}, run ${run} of ${count}`
    const running = await nodes.started().catch((error) => {
      outcome.failures.push(`the nodes don't start: ${reasonOf(error)}`)
      throw error
    })
    const beganMs = clockMs()
    const tookText = () => `took ${durationText((clockMs() - beganMs) / 1000)}`
    try {
      const figures = await event.run({ ...running, topic, run })
      outcome.figures.push(figures)
      progress.done(seconds / count)
      failed = 0
      const texts = Object.entries(figures).map(([name, ms]) => `${name} ${figure(ms)} ms`)
      progress.say(`${what}: ${texts.join('; ')}; ${tookText()}`)
    } catch (error) {
      process.exitCode = 1
      outcome.failures.push(reasonOf(error))
      progress.say(`${what} FAILED: ${reasonOf(error)}; ${tookText()}`)
      progress.done(seconds / count)
      await nodes.discard()
      if (++failed < maxFailures || run === count) continue
      progress.done((seconds * (count - run)) / count)
      progress.say(`${nodes.name}: ${event.name}: ${failed} runs failed one after the other, the others are left out`)
      return
    }
  }
}

interface RunningNodes {
  readonly cluster: ClusterUnderTest
  readonly client: ClusterClient
}

/** Three nodes that are started when they are needed, and again after `discard`. */
class Nodes {
  readonly #cluster: FailoverCluster
  readonly #directory: string
  #folder: string | undefined
  #running: RunningNodes | undefined

  constructor(cluster: FailoverCluster, directory: string) {
    this.#cluster = cluster
    this.#directory = directory
  }

  get name(): string {
    return this.#cluster.name
  }

  async started(): Promise<RunningNodes> {
    if (this.#running !== undefined) return this.#running
    this.#folder = await mkdtemp(join(this.#directory, 'cluster-'))
    const cluster = await this.#cluster.start(this.#folder)
    this.#running = { cluster, client: new ClusterClient(cluster.ports) }
    await warmUp(cluster, this.#running.client, warmUpMs)
    return this.#running
  }

  /** Ends them and removes their folders. */
  async discard(): Promise<void> {
    this.#running?.client.close()
    await this.#running?.cluster[Symbol.asyncDispose]()
    this.#running = undefined
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true })
    this.#folder = undefined
  }
}

/** Lines on standard error, each with the time that has gone and about how much is left. */
class Progress {
  readonly #beganMs = clockMs()
  #secondsLeft: number

  constructor(seconds: number) {
    this.#secondsLeft = seconds
    console.log(`This takes about ${durationText(seconds)} on a machine that does nothing else\n`)
  }

  done(seconds: number): void {
    this.#secondsLeft -= seconds
  }

  say(text: string): void {
    const gone = durationText((clockMs() - this.#beganMs) / 1000)
    console.error(`[${gone} gone, about ${durationText(this.#secondsLeft)} left] ${text}`)
  }
}

/** With the rows of all brokers for one event below each other. */
function printTable(outcomes: readonly PartOutcome[]): void {
  const table = new Table([
    { heading: 'event', width: 25, left: true },
    { heading: 'figure', width: 22, left: true },
    { heading: 'brokers', width: 12, left: true },
    { heading: 'runs', width: 7 },
    { heading: 'median ms', width: 9 },
    { heading: 'worst ms', width: 8 },
    { heading: 'target', width: 26, left: true },
    { heading: 'met', width: 3, left: true },
  ])
  console.log('')
  table.head()
  for (const event of failoverEvents) {
    const rows = outcomes
      .filter((outcome) => outcome.event === event)
      .flatMap((outcome) => rowsOf(outcome, outcome.kind !== 'rookery' ? {} : event.targets))
    for (const row of sideBySide(rows)) {
      const { runs, median, worst, target, met } = row
      table.row([event.name, row.figure, row.brokers, runs, figure(median), figure(worst), target, met])
    }
  }
  console.log('')
  for (const { event, brokers, failures } of outcomes) {
    for (const failure of failures) console.log(`Failed: ${brokers}: ${event.name}: ${failure}`)
  }
  console.log(loadText())
}

function reasonOf(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  return cause instanceof Error ? `${message} (${cause.message})` : message
}
