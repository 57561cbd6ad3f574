import {
  type ClusterClient,
  type ClusterUnderTest,
  clockMs,
  isRookery,
  nodeIds,
  type StartCluster,
  sleep,
  until,
  within,
} from './cluster.ts'
import type { Figures, Target } from './failover-report.ts'
import { changeTopic, ProduceProbe, WriteProbe } from './probes.ts'
import { percentile } from './table.ts'

/** What happens to one of three nodes in `failover.ts`, and what is measured. */
export interface FailoverEvent {
  readonly name: string
  readonly targets: Readonly<Record<string, Target>>
  /** That one run takes, about, until all is as before. */
  readonly seconds: Readonly<Record<ClusterKind, number>>
  /** More before the first run. */
  readonly preparationSeconds?: Readonly<Record<ClusterKind, number>>
  /** Of peers, for what takes them minutes. */
  readonly maxPeerRuns?: number
  /** All is as before when it resolves. When it rejects, nothing is known of the cluster, and a node may hang or be gone. */
  run(context: RunContext): Promise<Figures>
}

export type ClusterKind = 'rookery' | 'kafka' | 'tuned-kafka'

export interface FailoverCluster {
  readonly name: string
  readonly kind: ClusterKind
  readonly start: StartCluster
  /** To know with its figures: a line. */
  readonly about: string
}

export interface RunContext {
  readonly cluster: ClusterUnderTest
  readonly client: ClusterClient
  /** The same in all runs of an event, and no other's. */
  readonly topic: string
  readonly run: number
}

const configs = { 'min.insync.replicas': '2' }
/** How long everything runs before the signal. */
const steadyMs = 300
/** How long a probe goes on when all is said to be over. */
const afterMs = 400
const shutdownPartitions = 1000
const fencedPartitions = 10_000
const commits = 200
/** For a new leader, or a process to end. */
const timeoutMs = 120_000

/** What needs thousands of partitions comes last: they remain. */
export const failoverEvents: readonly FailoverEvent[] = [
  {
    name: 'SIGKILL of the controller',
    targets: { 'new controller': { worst: 500 }, 'first ack, it led': { worst: 1500 } },
    seconds: { rookery: 3, kafka: 20, 'tuned-kafka': 14 },
    run: (context) => onController(context, 'SIGKILL'),
  },
  {
    name: 'SIGKILL of a leader',
    targets: { 'first ack, it led': { median: 400, worst: 1000 }, 'stall, it followed': { worst: 1000 } },
    seconds: { rookery: 3, kafka: 17, 'tuned-kafka': 11 },
    run: (context) => onLeader(context, 'SIGKILL'),
  },
  {
    name: 'SIGSTOP of the controller',
    targets: { 'new controller': { worst: 2500 }, 'first ack, it led': { worst: 4000 } },
    seconds: { rookery: 5, kafka: 42, 'tuned-kafka': 12 },
    run: (context) => onController(context, 'SIGSTOP'),
  },
  {
    name: 'SIGSTOP of a leader',
    targets: { 'first ack, it led': { worst: 4000 }, 'stall, it followed': { worst: 4000 } },
    seconds: { rookery: 5, kafka: 12, 'tuned-kafka': 6 },
    run: (context) => onLeader(context, 'SIGSTOP'),
  },
  {
    name: 'metadata write',
    targets: { 'p50 of 200': { median: 3 } },
    seconds: { rookery: 2, kafka: 3, 'tuned-kafka': 3 },
    run: onCommit,
  },
  {
    name: 'SIGTERM of the controller',
    targets: {},
    seconds: { rookery: 4, kafka: 10, 'tuned-kafka': 10 },
    run: onControllerShutdown,
  },
  {
    name: 'SIGTERM leading 1k',
    targets: { 'process ended': { worst: 1000 }, 'stall, it led': { worst: 200 } },
    seconds: { rookery: 6, kafka: 25, 'tuned-kafka': 25 },
    preparationSeconds: { rookery: 3, kafka: 15, 'tuned-kafka': 15 },
    run: onShutdown,
  },
  {
    name: 'fencing leading 10k',
    targets: { fencing: { worst: 500 } },
    seconds: { rookery: 12, kafka: 90, 'tuned-kafka': 85 },
    preparationSeconds: { rookery: 15, kafka: 90, 'tuned-kafka': 90 },
    maxPeerRuns: 1,
    run: onFencing,
  },
]

/** Loads all three nodes for a while: one that has just started is slower at everything, most of all a Java one. */
export async function warmUp(cluster: ClusterUnderTest, client: ClusterClient, ms: number): Promise<void> {
  const topic = 'warm-up'
  await client.createTopic(topic, replicasOfThree, configs)
  await client.untilInSync(topic, replicasOfThree.length)
  const produces = nodeIds.map((id) => new ProduceProbe(cluster.ports, topic, id - 1, id))
  const probes = [new WriteProbe(cluster.ports, topic, nodeIds), ...produces]
  try {
    await Promise.all(probes.map((probe) => probe.start()))
    await sleep(ms)
  } finally {
    await Promise.all(probes.map((probe) => probe.stop()))
  }
}

/** Replicas of three partitions, of which each node leads one: that with its id less one. */
const replicasOfThree = nodeIds.map((_, i) => [0, 1, 2].map((k) => nodeIds[(i + k) % 3]!))

async function onController(context: RunContext, signal: 'SIGKILL' | 'SIGSTOP'): Promise<Figures> {
  const { cluster, client } = context
  const topic = await newTopic(context)
  const victim = await client.whichController()
  const survivors = nodeIds.filter((id) => id !== victim)
  const writes = new WriteProbe(cluster.ports, topic, survivors)
  const produces = new ProduceProbe(cluster.ports, topic, victim - 1, victim)
  const figures = await measured(context, [writes, produces], victim, signal, async (sinceMs) => {
    const firsts = () => [writes, produces].map((probe) => probe.firstAfter(sinceMs, victim))
    await until(() => !firsts().includes(undefined), 'a new controller and a new leader', timeoutMs)
    const [write, produce] = firsts()
    return {
      'new controller': write!.answeredMs - sinceMs,
      'first ack, it led': produce!.answeredMs - sinceMs,
    }
  })
  await bringBack(context, victim, signal, topic)
  return figures
}

async function onLeader(context: RunContext, signal: 'SIGKILL' | 'SIGSTOP'): Promise<Figures> {
  const { cluster, client } = context
  const topic = await newTopic(context)
  const controller = await client.whichController()
  const victim = nodeIds[controller % 3]!
  const led = new ProduceProbe(cluster.ports, topic, victim - 1, victim)
  const followed = new ProduceProbe(cluster.ports, topic, controller - 1, controller)
  const figures = await measured(context, [led, followed], victim, signal, async (sinceMs) => {
    await until(() => led.firstAfter(sinceMs, victim) !== undefined, 'a new leader', timeoutMs)
    const isOutOfSync = async () => {
      const seen = await client.partitions(controller, topic)
      return seen[controller - 1]?.isr.includes(victim) === false
    }
    await until(isOutOfSync, `node ${victim} to leave the ISR`, timeoutMs)
    await untilOver([followed])
    return {
      'first ack, it led': led.firstAfter(sinceMs, victim)!.answeredMs - sinceMs,
      'stall, it followed': followed.longestGapMs(sinceMs, Number.POSITIVE_INFINITY),
    }
  })
  await bringBack(context, victim, signal, topic)
  return figures
}

async function onCommit(context: RunContext): Promise<Figures> {
  const { cluster, client } = context
  const topic = await newTopic(context)
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
    'p50 of 200': percentile(await timesOn(controller), 50),
    'p50 by another node': percentile(await timesOn(other), 50),
  }
}

async function onControllerShutdown(context: RunContext): Promise<Figures> {
  const { cluster, client } = context
  const topic = await newTopic(context)
  const victim = await client.whichController()
  const survivors = nodeIds.filter((id) => id !== victim)
  const writes = survivors.map((id) => new WriteProbe(cluster.ports, topic, [id]))
  const produces = new ProduceProbe(cluster.ports, topic, victim - 1, victim)
  const probes = [...writes, produces]
  const figures = await measured(context, probes, victim, 'SIGTERM', async (sinceMs) => {
    await untilEnded(cluster, victim)
    const endedMs = clockMs() - sinceMs
    await untilOver(probes)
    const longest = (probe: WriteProbe | ProduceProbe) => probe.longestGapMs(sinceMs, Number.POSITIVE_INFINITY)
    return {
      'process ended': endedMs,
      'no changes of settings': Math.max(...writes.map(longest)),
      'stall, it led': longest(produces),
    }
  })
  await bringBack(context, victim, 'SIGTERM', topic)
  return figures
}

async function onShutdown(context: RunContext): Promise<Figures> {
  const { cluster, client, topic } = context
  const victim = nodeIds[(await client.whichController()) % 3]!
  const name = `${topic}-${victim}-produced`
  const others = `${topic}-${victim}`
  await untilLedBy(client, victim, [
    [name, 1],
    [others, shutdownPartitions - 1],
  ])
  const produces = new ProduceProbe(cluster.ports, name, 0, victim)
  const figures = await measured(context, [produces], victim, 'SIGTERM', async (sinceMs) => {
    await untilEnded(cluster, victim)
    const endedMs = clockMs() - sinceMs
    await untilOver([produces])
    return {
      'process ended': endedMs,
      'stall, it led': produces.longestGapMs(sinceMs, Number.POSITIVE_INFINITY),
    }
  })
  await restart(context, victim)
  return figures
}

async function onFencing(context: RunContext): Promise<Figures> {
  const { cluster, client, topic } = context
  const controller = await client.whichController()
  const victim = nodeIds[controller % 3]!
  const name = `${topic}-${victim}-produced`
  const halves = ['a', 'b'].map((half) => [`${topic}-${victim}-${half}`, fencedPartitions / 2] as const)
  await untilLedBy(client, victim, [[name, 1], ...halves])
  let evidenceMs: number | undefined
  const publishedMs = new Map<number, number>()
  const stopListening = isRookery(cluster)
    ? cluster.onMoment(({ what, atMs, nodeId }, id) => {
        if (nodeId !== victim || id === victim) return
        if (what === 'published') publishedMs.set(id, atMs)
        else if (id === controller) evidenceMs = atMs
      })
    : () => undefined
  const produces = new ProduceProbe(cluster.ports, name, 0, victim)
  const figures = await measured(context, [produces], victim, 'SIGKILL', async (sinceMs) => {
    await until(() => produces.firstAfter(sinceMs, victim) !== undefined, 'a new leader', timeoutMs)
    const firstAck = { 'first ack, it led': produces.firstAfter(sinceMs, victim)!.answeredMs - sinceMs }
    if (!isRookery(cluster)) return firstAck
    const isPublished = () => evidenceMs !== undefined && publishedMs.size === nodeIds.length - 1
    await until(isPublished, `the other nodes to publish that ${victim} is fenced`)
    return { fencing: Math.max(...publishedMs.values()) - evidenceMs!, ...firstAck }
  }).finally(stopListening)
  await restart(context, victim)
  return figures
}

/** What `measure` finds while the probes go on, of a `victim` that got `signal` when they had for a while. */
async function measured(
  { cluster }: RunContext,
  probes: readonly (ProduceProbe | WriteProbe)[],
  victim: number,
  signal: NodeJS.Signals,
  measure: (sinceMs: number) => Promise<Figures>,
): Promise<Figures> {
  try {
    await Promise.all(probes.map((probe) => probe.start()))
    await sleep(steadyMs)
    const sinceMs = clockMs()
    cluster.signal(victim, signal)
    return await measure(sinceMs)
  } finally {
    await Promise.all(probes.map((probe) => probe.stop()))
  }
}

/** Of one run, with a partition that each node leads: that with its id less one. */
async function newTopic({ client, topic, run }: RunContext): Promise<string> {
  const name = `${topic}-${run}`
  await client.createTopic(name, replicasOfThree, configs)
  await client.untilInSync(name, replicasOfThree.length)
  return name
}

/**
 * All partitions of topics of these sizes are led by `leader` and in sync. The first run makes them and the others find them: files of a deleted
 * topic would go a minute later, in the midst of another run. A producer is to have a topic of its own: it asks for all partitions of it again
 * and again, and thousands of them in each answer would hold up the nodes that it waits for.
 */
async function untilLedBy(
  client: ClusterClient,
  leader: number,
  sizes: readonly (readonly [topic: string, count: number])[],
): Promise<void> {
  const replicas = [leader, ...nodeIds.filter((id) => id !== leader)]
  for (const [name, count] of sizes) {
    if ((await client.partitions(leader, name)).length > 0) continue
    const all = Array.from({ length: count }, () => replicas)
    await client.createTopic(name, all, configs)
  }
  for (const [name, count] of sizes) await client.untilInSync(name, count)
  for (const [name, count] of sizes) {
    await client.electPreferred(name, count)
    await client.untilInSync(name, count, leader)
  }
}

/** Every probe has had an answer to what it sent from now on, and some time went by in which others may come late. */
async function untilOver(probes: readonly (ProduceProbe | WriteProbe)[]): Promise<void> {
  const nowMs = clockMs()
  await until(() => probes.every((probe) => probe.hasSuccessAfter(nowMs)), 'answers to go on', timeoutMs)
  await sleep(afterMs)
}

async function untilEnded(cluster: ClusterUnderTest, id: number): Promise<void> {
  await within(cluster.ended(id), timeoutMs, `node ${id} to end`)
}

async function bringBack(context: RunContext, victim: number, signal: NodeJS.Signals, topic: string): Promise<void> {
  const { cluster, client } = context
  if (signal === 'SIGSTOP') {
    client.drop(victim)
    cluster.signal(victim, 'SIGCONT')
  } else {
    await restart(context, victim)
  }
  await client.untilInSync(topic, replicasOfThree.length)
}

async function restart({ cluster, client }: RunContext, victim: number): Promise<void> {
  client.drop(victim)
  await untilEnded(cluster, victim)
  await within(cluster.start(victim), 2 * timeoutMs, `node ${victim} to start`)
}
