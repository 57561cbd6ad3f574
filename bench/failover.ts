import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { apis } from '../src/protocol/index.ts'
import {
  ClusterClient,
  type ClusterUnderTest,
  clockMs,
  isRookery,
  nodeIds,
  type StartCluster,
  sleep,
  until,
} from './cluster.ts'
import { loadText } from './machine.ts'
import { changeTopic, ProduceProbe, WriteProbe } from './probes.ts'
import { figure, percentile, Table } from './table.ts'

/**
 * failover: how long clients are held up when one of three nodes dies, hangs or is stopped.
 *
 * Workload: three nodes that are brokers and voters, with default settings; topics with three replicas and min.insync.replicas=2. A producer
 * (probes.ts) sends one record after the other with acks=all and asks every node who leads as soon as an answer is late;
 * another client changes a setting of a topic again and again. Then one node gets a signal. Each run has a new topic, and
 * begins when all replicas are in sync again.
 *
 * Numbers, in milliseconds from the signal: `controller`, to the answer to a change that was asked for afterwards; `leader`, to the first
 * record that another node acknowledged; `stall`, the longest time without an acknowledgement, and `no writes` without a change; `stopped`,
 * to the end of the process.
 * `fencing` is from inside, without detection: from the moment at which the controller hears that a broker with 10,000 leaderships is gone to
 * that at which the last node has replaced them in its metadata and its logs. `commit` is one change after the other, asked of the controller's
 * node. Median and worst of all runs.
 *
 * To compare: with a peer of the same run, which the same client drives. Real clients add their own timeouts and backoffs.
 */
export interface FailoverOptions {
  readonly directory: string
  readonly runs: number
  /** Events whose name has this in it. */
  readonly rows: string | undefined
  /** Rookery first. */
  readonly clusters: readonly { readonly start: StartCluster; readonly isPeer: boolean }[]
  /** For peers, whose runs take longer. */
  readonly peerRuns: number
}

/** What one run gave, by the name of the figure. */
type Figures = Readonly<Record<string, number>>

interface Event {
  readonly name: string
  /** Milliseconds that the median and the worst run may take, by figure. */
  readonly targets: Readonly<Record<string, { readonly median?: number; readonly worst?: number }>>
  /** For events that need long preparation: at most so many runs. */
  readonly maxRuns?: number
  run(cluster: ClusterUnderTest, client: ClusterClient, topic: string): Promise<Figures>
}

const configs = { 'min.insync.replicas': '2' }
/** How long everything runs before the signal. */
const steadyMs = 300
/** How long a probe goes on when all is said to be over. */
const afterMs = 400
const shutdownPartitions = 1000
const fencedPartitions = 10_000
const commits = 200

const events: readonly Event[] = [
  {
    name: 'SIGKILL of the controller',
    targets: { controller: { worst: 500 }, leader: { worst: 1500 } },
    run: (cluster, client, topic) => onController(cluster, client, topic, 'SIGKILL'),
  },
  {
    name: 'SIGKILL of a leader',
    targets: { leader: { median: 400, worst: 1000 }, stall: { worst: 1000 } },
    run: (cluster, client, topic) => onLeader(cluster, client, topic, 'SIGKILL'),
  },
  {
    name: 'SIGSTOP of the controller',
    targets: { controller: { worst: 2500 }, leader: { worst: 4000 } },
    run: (cluster, client, topic) => onController(cluster, client, topic, 'SIGSTOP'),
  },
  {
    name: 'SIGSTOP of a leader',
    targets: { leader: { worst: 4000 }, stall: { worst: 4000 } },
    run: (cluster, client, topic) => onLeader(cluster, client, topic, 'SIGSTOP'),
  },
  {
    name: 'controlled shutdown, 1,000 led',
    targets: { stopped: { worst: 1000 }, stall: { worst: 200 } },
    maxRuns: 20,
    run: onShutdown,
  },
  { name: 'controlled shutdown, controller', targets: {}, run: onControllerShutdown },
  {
    name: 'fencing, 10,000 led',
    targets: { fencing: { worst: 500 } },
    maxRuns: 6,
    run: onFencing,
  },
  { name: 'metadata write', targets: { commit: { median: 3 } }, maxRuns: 5, run: onCommit },
]

export async function failover({ directory, runs, rows, clusters, peerRuns }: FailoverOptions): Promise<void> {
  const chosen = events.filter(({ name }) => rows === undefined || name.includes(rows))
  if (chosen.length === 0) {
    throw new Error(`No event is named ${rows}. Events:\n  ${events.map(({ name }) => name).join('\n  ')}`)
  }
  const table = new Table([
    { heading: 'event', width: 30, left: true },
    { heading: 'brokers', width: 14, left: true },
    { heading: 'figure', width: 10, left: true },
    { heading: 'runs', width: 4 },
    { heading: 'median ms', width: 9 },
    { heading: 'worst ms', width: 8 },
    { heading: 'target', width: 22, left: true },
    { heading: 'met', width: 3 },
  ])
  table.head()
  for (const { start, isPeer } of clusters) {
    const folder = await mkdtemp(join(directory, 'cluster-'))
    try {
      await using cluster = await start(folder)
      for (const [index, event] of chosen.entries()) {
        const count = Math.min(isPeer ? peerRuns : runs, event.maxRuns ?? runs)
        await measure(table, cluster, event, count, `event-${index}`, isPeer)
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
  console.log(`\n${loadText()}`)
}

async function measure(
  table: Table,
  cluster: ClusterUnderTest,
  event: Event,
  count: number,
  topic: string,
  isPeer: boolean,
): Promise<void> {
  const all = new Map<string, number[]>()
  const client = new ClusterClient(cluster.ports)
  for (let run = 1; run <= count; run++) {
    for (const [name, value] of Object.entries(await event.run(cluster, client, `${topic}-${run}`))) {
      all.set(name, [...(all.get(name) ?? []), value])
    }
  }
  client.close()
  for (const [name, values] of all) {
    const target = event.targets[name]
    const [median, worst] = [percentile(values, 50), percentile(values, 100)]
    const isMet =
      median < (target?.median ?? Number.POSITIVE_INFINITY) && worst < (target?.worst ?? Number.POSITIVE_INFINITY)
    const targets = Object.entries(isPeer ? {} : (target ?? {})).map(([which, ms]) => `${which} < ${ms}`)
    table.row([
      event.name,
      cluster.name,
      name,
      String(values.length),
      figure(median),
      figure(worst),
      targets.join(', '),
      targets.length === 0 ? '' : isMet ? 'yes' : 'no',
    ])
  }
}

/** Replicas of three partitions, of which each node leads one: that with its id less one. */
const replicasOfThree = nodeIds.map((_, i) => [0, 1, 2].map((k) => nodeIds[(i + k) % 3]!))

async function onController(
  cluster: ClusterUnderTest,
  client: ClusterClient,
  topic: string,
  signal: 'SIGKILL' | 'SIGSTOP',
): Promise<Figures> {
  await client.createTopic(topic, replicasOfThree, configs)
  await client.untilInSync(topic, replicasOfThree.length)
  const victim = await client.whichController()
  const survivors = nodeIds.filter((id) => id !== victim)
  const writes = new WriteProbe(cluster.ports, topic, survivors)
  const produces = new ProduceProbe(cluster.ports, topic, victim - 1, victim)
  try {
    await Promise.all([writes.start(), produces.start()])
    await sleep(steadyMs)
    const sinceMs = clockMs()
    cluster.signal(victim, signal)
    const isOver = () =>
      writes.firstAfter(sinceMs, victim) !== undefined && produces.firstAfter(sinceMs, victim) !== undefined
    await until(isOver, 'a new controller and a new leader')
    return {
      controller: writes.firstAfter(sinceMs, victim)!.answeredMs - sinceMs,
      leader: produces.firstAfter(sinceMs, victim)!.answeredMs - sinceMs,
    }
  } finally {
    await Promise.all([writes.stop(), produces.stop()])
    await bringBack(cluster, client, victim, signal, topic, replicasOfThree.length)
  }
}

async function onLeader(
  cluster: ClusterUnderTest,
  client: ClusterClient,
  topic: string,
  signal: 'SIGKILL' | 'SIGSTOP',
): Promise<Figures> {
  await client.createTopic(topic, replicasOfThree, configs)
  await client.untilInSync(topic, replicasOfThree.length)
  const controller = await client.whichController()
  const victim = nodeIds[controller % 3]!
  const led = new ProduceProbe(cluster.ports, topic, victim - 1, victim)
  const followed = new ProduceProbe(cluster.ports, topic, controller - 1, controller)
  try {
    await Promise.all([led.start(), followed.start()])
    await sleep(steadyMs)
    const sinceMs = clockMs()
    cluster.signal(victim, signal)
    await until(() => led.firstAfter(sinceMs, victim) !== undefined, 'a new leader')
    const isOutOfSync = async () => {
      const seen = await client.partitions(controller, topic)
      return seen[controller - 1]?.isr.includes(victim) === false
    }
    await until(isOutOfSync, `node ${victim} to leave the ISR`)
    await sleep(afterMs)
    return {
      leader: led.firstAfter(sinceMs, victim)!.answeredMs - sinceMs,
      stall: followed.longestGapMs(sinceMs, Number.POSITIVE_INFINITY),
    }
  } finally {
    await Promise.all([led.stop(), followed.stop()])
    await bringBack(cluster, client, victim, signal, topic, replicasOfThree.length)
  }
}

async function bringBack(
  cluster: ClusterUnderTest,
  client: ClusterClient,
  victim: number,
  signal: NodeJS.Signals,
  topic: string,
  partitions: number,
): Promise<void> {
  client.drop(victim)
  if (signal === 'SIGSTOP') {
    cluster.signal(victim, 'SIGCONT')
  } else {
    await cluster.ended(victim)
    await cluster.start(victim)
  }
  await client.untilInSync(topic, partitions)
}

async function onShutdown(cluster: ClusterUnderTest, client: ClusterClient, topic: string): Promise<Figures> {
  const controller = await client.whichController()
  const victim = nodeIds[controller % 3]!
  const replicas = [victim, ...nodeIds.filter((id) => id !== victim)]
  await client.createTopic(
    topic,
    Array.from({ length: shutdownPartitions }, () => replicas),
    configs,
  )
  await client.untilInSync(topic, shutdownPartitions)
  const produces = new ProduceProbe(cluster.ports, topic, 0, victim)
  try {
    await produces.start()
    await sleep(steadyMs)
    const sinceMs = clockMs()
    cluster.signal(victim, 'SIGTERM')
    await cluster.ended(victim)
    const stopped = clockMs() - sinceMs
    await sleep(afterMs)
    return { stopped, stall: produces.longestGapMs(sinceMs, Number.POSITIVE_INFINITY) }
  } finally {
    await produces.stop()
    client.drop(victim)
    await cluster.ended(victim)
    await cluster.start(victim)
    await deleteTopic(client, topic)
  }
}

async function onControllerShutdown(cluster: ClusterUnderTest, client: ClusterClient, topic: string): Promise<Figures> {
  await client.createTopic(topic, replicasOfThree, configs)
  await client.untilInSync(topic, replicasOfThree.length)
  const victim = await client.whichController()
  const survivors = nodeIds.filter((id) => id !== victim)
  const writes = survivors.map((id) => new WriteProbe(cluster.ports, topic, [id]))
  const produces = new ProduceProbe(cluster.ports, topic, victim - 1, victim)
  const probes = [...writes, produces]
  try {
    await Promise.all(probes.map((probe) => probe.start()))
    await sleep(steadyMs)
    const sinceMs = clockMs()
    cluster.signal(victim, 'SIGTERM')
    await cluster.ended(victim)
    const stopped = clockMs() - sinceMs
    await sleep(2 * afterMs)
    const longest = (probe: WriteProbe | ProduceProbe) => probe.longestGapMs(sinceMs, Number.POSITIVE_INFINITY)
    return { stopped, 'no writes': Math.max(...writes.map(longest)), stall: longest(produces) }
  } finally {
    await Promise.all(probes.map((probe) => probe.stop()))
    await bringBack(cluster, client, victim, 'SIGTERM', topic, replicasOfThree.length)
  }
}

async function onFencing(cluster: ClusterUnderTest, client: ClusterClient, topic: string): Promise<Figures> {
  const controller = await client.whichController()
  const others = nodeIds.filter((id) => id !== controller)
  // Any run finds the topics of the first: their leaders go to and fro between the two nodes that aren't the controller. The producer
  // has a topic of its own, since it asks for all partitions of it again and again.
  const prefix = `${topic.replace(/-\d+$/, '')}-${controller}`
  const name = `${prefix}-produced`
  const sizes = new Map([[name, 1], ...[1, 2].map((i) => [`${prefix}-${i}`, fencedPartitions / 2] as const)])
  for (const [each, count] of sizes) {
    if ((await client.partitions(controller, each)).length > 0) continue
    await client.createTopic(
      each,
      Array.from({ length: count }, () => [...others, controller]),
      configs,
    )
  }
  for (const [each, count] of sizes) await client.untilInSync(each, count)
  const victim = (await client.partitions(controller, name))[0]!.leader
  const moments = new Map<string, number>()
  if (isRookery(cluster)) {
    cluster.onMoment(({ what, atMs, nodeId }, id) => {
      if (nodeId === victim && id !== victim)
        moments.set(what === 'evidence' ? `${what} on ${id}` : `${what} by ${id}`, atMs)
    })
  }
  const produces = new ProduceProbe(cluster.ports, name, 0, victim)
  try {
    await produces.start()
    await sleep(steadyMs)
    const sinceMs = clockMs()
    moments.clear()
    cluster.signal(victim, 'SIGKILL')
    await until(() => produces.firstAfter(sinceMs, victim) !== undefined, 'a new leader')
    await sleep(afterMs)
    const published = [...moments].filter(([what]) => what.startsWith('published')).map(([, atMs]) => atMs)
    const evidence = moments.get(`evidence on ${controller}`) ?? Number.NaN
    const leader = produces.firstAfter(sinceMs, victim)!.answeredMs - sinceMs
    if (!isRookery(cluster)) return { leader }
    if (published.length !== 2) throw new Error(`Node ${victim} was not seen to be fenced by both others`)
    return { fencing: Math.max(...published) - evidence, leader }
  } finally {
    await produces.stop()
    client.drop(victim)
    await cluster.ended(victim)
    await cluster.start(victim)
  }
}

async function onCommit(cluster: ClusterUnderTest, client: ClusterClient, topic: string): Promise<Figures> {
  await client.createTopic(topic, replicasOfThree, configs)
  await client.untilInSync(topic, replicasOfThree.length)
  const controller = await client.whichController()
  const other = nodeIds.find((id) => id !== controller)!
  const timesOn = async (node: number): Promise<number[]> => {
    const times: number[] = []
    for (let i = 0; i < commits; i++) {
      const sentMs = clockMs()
      if (!(await changeTopic(client, node, topic, String(1e9 + i))))
        throw new Error(`${cluster.name} refused a change`)
      times.push(clockMs() - sentMs)
    }
    return times
  }
  return {
    commit: percentile(await timesOn(controller), 50),
    'p50 of another node': percentile(await timesOn(other), 50),
  }
}

async function deleteTopic(client: ClusterClient, topic: string): Promise<void> {
  const controller = await client.whichController()
  await client.request(controller, apis.DeleteTopics, 5, { topicNames: [topic], timeoutMs: 30_000 })
}
