import type { LogManager, LogManagerOptions } from '../../../src/log/index.ts'
import type { Clock, Platform } from '../../../src/platform/index.ts'
import { createSimulation, SimulationStuckError } from '../../../src/platform/simulated/index.ts'
import { loadNodeMessages } from '../../../src/rpc/index.ts'
import { type Logger, silentLogger } from '../../../src/telemetry/index.ts'
import { createSocketRpc } from '../../support/socket-rpc.ts'
import { clusterCheckers } from '../checkers/all.ts'
import { type Checker, PropertyViolation } from '../checkers/checker.ts'
import { createTopic } from '../node/admin.ts'
import { Client } from '../node/client.ts'
import { Consumer } from '../node/consumer.ts'
import { GroupMember } from '../node/group-member.ts'
import { History, type SimulatedTopic } from '../node/history.ts'
import { OffsetCommitter } from '../node/offset-committer.ts'
import { Producer } from '../node/producer.ts'
import { readAll } from '../node/reading.ts'
import { named, numbered, runAll } from '../node/run-clients.ts'
import { Server, serverPort } from '../node/server.ts'
import { TopicChurn } from '../node/topic-churn.ts'
import { type ClientWorld, Pace, sleep } from '../node/world.ts'
import { routersOf } from './cluster-router.ts'
import { Mover } from './mover.ts'
import { ClusterNemesis } from './nemesis.ts'
import { Operator } from './operator.ts'
import { QuorumWatch } from './quorum-watch.ts'
import { RecordsDeleter } from './records-deleter.ts'
import { type ClusterFault, drawClusterScenario } from './scenario.ts'
import { ClusterWatch } from './watch.ts'
import { type ClusterWorld, controllerPort, nodeIdOf, nodeNames, separateControllerNames } from './world.ts'

export interface ClusterRunOptions {
  readonly seed: number
  /** Three brokers and three controllers, in place of three nodes that are both. */
  readonly separateRoles?: boolean
  /** The only faults, instead of those that the seed draws. */
  readonly faults?: readonly ClusterFault[]
  /** Beside those that the seed draws. */
  readonly settings?: readonly string[]
  /** To compare two runs of a seed; it costs. */
  readonly recordTrace?: boolean
  /** Makes the logger of a node, over virtual time; it says nothing when left out. */
  readonly createLogger?: (node: string, clock: Pick<Clock, 'now'>) => Logger
  readonly wrapPlatform?: (platform: Platform) => Platform
  readonly openLogs?: (options: LogManagerOptions) => Promise<LogManager>
}

export interface ClusterRunResult {
  /** Empty without `recordTrace`, like the lines. */
  readonly traceHash: string
  readonly traceLines: readonly string[]
  readonly events: number
  readonly virtualMs: number
  readonly faults: number
  /** Starts of nodes that came to serve. */
  readonly resumes: number
  readonly acked: number
  readonly refused: number
  readonly fetched: number
  readonly commits: number
  /** Votes that were taken or given. */
  readonly voterChanges: number
  readonly wipes: number
  /** Reassignments that began, and those that were cancelled. */
  readonly moves: number
  readonly cancellations: number
  /** Requests that deleted records. */
  readonly deletions: number
  readonly topicsDeleted: number
}

/** Virtual milliseconds that a phase may take, after which something hangs. */
const faultsMs = 600_000
const drainMs = 90_000
const lookMs = 50
const longestPatienceMs = 60_000
/** A group's first members wait 3 s for others. */
const patienceMs = 5000
const groupsPerCommitter = 12

/**
 * Runs a cluster of three nodes, or of three brokers and three controllers, its clients and its faults from a seed. First everything at once; then no faults: every node
 * joins, the clients finish, all ISRs fill up, and everything is read and compared. Throws what was violated.
 */
export async function runCluster(options: ClusterRunOptions): Promise<ClusterRunResult> {
  const { seed } = options
  const messages = await loadNodeMessages()
  const simulation = createSimulation({ seed, tracing: options.recordTrace === true ? 'lines' : 'none' })
  const observer = simulation.host('observer').platform
  const scenario = drawClusterScenario(observer.random, options.faults)
  const separateRoles = options.separateRoles ?? scenario.hasSeparateRoles
  let isSettled = false
  const endings: Checker = {
    on: (event) => {
      if (event.kind === 'node-ended') {
        watch.onEnded(event.node)
        quorumWatch.onEnded(event.node)
      } else if (event.kind === 'records-deleted')
        watch.onDeleted(event.topic.topicId, event.partition, event.lowWatermark)
    },
  }
  const history = new History([...clusterCheckers(() => isSettled), endings])
  const controllerNames = separateRoles ? separateControllerNames : nodeNames
  const allNames = [...new Set([...nodeNames, ...controllerNames])]
  const watch = new ClusterWatch(scenario.isVolatile)
  const quorumWatch = new QuorumWatch()
  const quorum = scenario.isDynamic
    ? `controller.quorum.bootstrap.servers=${controllerNames.map((name) => `${name}:${controllerPort}`)}`
    : `controller.quorum.voters=${controllerNames.map((name) => `${nodeIdOf(name)}@${name}:${controllerPort}`)}`
  const settingsOf = (name: string) => {
    const isBroker = nodeNames.includes(name)
    const isController = controllerNames.includes(name)
    const listeners = [
      ...(isBroker ? [`PLAINTEXT://${name}:${serverPort}`] : []),
      ...(isController ? [`CONTROLLER://${name}:${controllerPort}`] : []),
    ]
    const roles = [...(isBroker ? ['broker'] : []), ...(isController ? ['controller'] : [])]
    return [`process.roles=${roles}`, `listeners=${listeners}`]
  }
  const servers = allNames.map(
    (name): Server =>
      new Server(simulation.host(name), () => world, {
        settings: [
          `node.id=${nodeIdOf(name)}`,
          quorum,
          ...settingsOf(name),
          'controller.listener.names=CONTROLLER',
          ...scenario.settings,
          ...(options.settings ?? []),
        ],
        logger: options.createLogger?.(name, { now: () => Math.floor(simulation.nowMs) }) ?? silentLogger,
        mayFailToStart: true,
        moreOptions: (platform) => ({
          loadPeerServices: () => Promise.resolve({ network: createSocketRpc(platform), messages }),
          onAssembled: (parts) => watch.onAssembled(name, parts),
          onRaft: (raft, directoryId) => quorumWatch.onRaft(name, raft, directoryId),
        }),
        ...(options.wrapPlatform === undefined ? {} : { wrapPlatform: options.wrapPlatform }),
        ...(options.openLogs === undefined ? {} : { openLogs: options.openLogs }),
      }),
  )
  const world = {
    simulation,
    scenario,
    history,
    servers,
    watch,
    quorumWatch,
    random: observer.random,
    timers: observer.timers,
    isDraining: false as boolean,
    pace: new Pace(),
    routerOf: routersOf((): ClientWorld => world),
    patienceMs,
    longestPatienceMs,
    replicationFactor: nodeNames.length,
    incarnation: 0,
  } satisfies ClusterWorld
  const operator = new Operator(
    world,
    servers.filter(({ host }) => controllerNames.includes(host.name)),
  )
  const clientHosts = [
    'admin',
    ...scenario.producers.map((_, i) => `producer${i}`),
    ...Array.from({ length: scenario.consumerCount }, (_, i) => `consumer${i}`),
  ]
  const nemesis = new ClusterNemesis(world, operator, clientHosts)
  simulation.checkAfterEachEvent((host) => {
    if (history.violation !== undefined) throw history.violation
    // The code of a node reaches nothing but its own node. Whoever acts on nodes from outside runs on a machine of his own.
    const node = host !== undefined && allNames.includes(host) ? host : undefined
    watch.afterEvent(node)
    quorumWatch.afterEvent(node)
  })

  const unfinished = new Set<string>()
  const phase = async (name: string, maxVirtualMs: number, work: Promise<unknown>): Promise<void> => {
    try {
      await simulation.run(work, { maxVirtualMs })
    } catch (error) {
      if (!(error instanceof SimulationStuckError)) throw error
      const cluster = watch.whyNotWhole() ?? 'it is whole'
      const message = `Not done ${name} in ${maxVirtualMs} virtual ms; at work: ${[...unfinished].join(', ')}; the cluster: ${cluster}`
      throw new PropertyViolation('everything goes on', message)
    }
  }
  const topics: SimulatedTopic[] = []
  const committers: OffsetCommitter[] = []
  const faults = nemesis.run()
  const clients = runClients(world, operator, topics, committers, unfinished)
  const all = Promise.all([faults, clients])
  all.catch(() => {}) // whoever fails first ends the run; the others must not be unhandled meanwhile
  await phase('under faults', faultsMs, Promise.race([faults, all]))
  simulation.network.healAll()
  world.isDraining = true
  await phase('when the faults were over', drainMs, all)
  await phase('becoming whole', drainMs, untilWhole(world))
  isSettled = true
  await phase('at the end', drainMs, verify(world, topics, committers))
  return {
    traceHash: simulation.traceHash(),
    traceLines: simulation.traceLines,
    events: simulation.eventCount,
    virtualMs: simulation.nowMs,
    faults: nemesis.faults,
    resumes: history.count('node-started'),
    acked: history.count('batch-acked'),
    refused: history.count('batch-refused'),
    fetched: history.count('fetched'),
    commits: history.count('commit-acked'),
    voterChanges: operator.changes,
    wipes: nemesis.wipes,
    moves: history.count('partition-moved'),
    cancellations: history.count('move-cancelled'),
    deletions: history.count('records-deleted'),
    topicsDeleted: history.count('topic-deleted'),
  }
}

/** Creates the topics, then lets everybody loose. Adds to `unfinished` who is still at work. */
async function runClients(
  world: ClusterWorld,
  operator: Operator,
  topics: SimulatedTopic[],
  committers: OffsetCommitter[],
  unfinished: Set<string>,
): Promise<void> {
  unfinished.add('setup')
  const { scenario } = world
  const admin = new Client(world, 'admin')
  for (const plan of scenario.topics) topics.push(await createTopic(admin, plan))
  unfinished.delete('setup')
  const { producers, consumerCount, memberCount, committerCount, hasMoves, hasDeletions, hasChurn } = scenario
  // Those that are there from the start; one more comes when the churn ends.
  const lasting = [...topics]
  const erasable = lasting.filter(({ isCompacted }) => !isCompacted)
  const places = [
    ...lasting.flatMap(({ name, partitionCount }) =>
      Array.from({ length: partitionCount }, (_, partition) => ({ topic: name, partition })),
    ),
    { topic: '__consumer_offsets', partition: 0 },
  ]
  const committing = numbered('committer', committerCount, (name) => {
    const committer = new OffsetCommitter(world, name, topics[0]!, groupsPerCommitter)
    committers.push(committer)
    return committer
  })
  const clients = [
    ...producers.map((plan, i) => named(`producer${i}`, (name) => new Producer(world, name, plan, lasting))),
    ...numbered('consumer', consumerCount, (name) => new Consumer(world, name, lasting, false)),
    ...numbered('member', memberCount, (name) => new GroupMember(world, name, lasting)),
    ...committing,
    ...(hasMoves ? [named('mover', (name) => new Mover(world, name, places))] : []),
    ...(hasDeletions ? [named('deleter', (name) => new RecordsDeleter(world, name, erasable))] : []),
    ...(hasChurn ? [named('churn', (name) => new TopicChurn(world, name, (topic) => topics.push(topic)))] : []),
    { name: 'operator', run: () => operator.run() },
  ]
  await runAll(clients, unfinished)
}

async function untilWhole({ watch, timers, servers }: ClusterWorld): Promise<void> {
  while (!watch.isWhole || !servers.every(({ isUp }) => isUp)) await sleep(timers, lookMs)
}

/**
 * All replicas are compared; then everything is read, at times after all nodes ended once more: by power loss, unless what was
 * acknowledged stands by its copies only, which that takes all at once.
 */
async function verify(
  world: ClusterWorld,
  topics: readonly SimulatedTopic[],
  committers: readonly OffsetCommitter[],
): Promise<void> {
  const { watch, servers, random, history, scenario } = world
  await watch.compareLogs()
  if (random.float() < 0.3) {
    for (const server of servers) server.end(!scenario.isVolatile)
    for (const server of servers) server.start()
    await untilWhole(world)
    await watch.compareLogs()
  }
  const reader = new Client(world, 'verifier')
  for (const topic of topics) {
    for (let partition = 0; partition < topic.partitionCount; partition++) await readAll(reader, topic, partition)
  }
  for (const committer of committers) await committer.verify()
  for (const server of servers) {
    await server.stop()
    if (server.host.isUp) history.fail(new PropertyViolation('a node stops when asked', `${server.host.name} did not`))
  }
}
