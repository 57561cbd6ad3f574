import type { LogManager, LogManagerOptions } from '../../../src/log/index.ts'
import type { Clock, Platform } from '../../../src/platform/index.ts'
import { createSimulation, SimulationStuckError } from '../../../src/platform/simulated/index.ts'
import { type Logger, silentLogger } from '../../../src/telemetry/index.ts'
import { allCheckers } from '../checkers/all.ts'
import { PropertyViolation } from '../checkers/checker.ts'
import { createTopic, listTopics } from './admin.ts'
import { Client } from './client.ts'
import { Consumer } from './consumer.ts'
import { GroupMember } from './group-member.ts'
import { History, type HistoryEvent, type SimulatedTopic } from './history.ts'
import { Nemesis } from './nemesis.ts'
import { OffsetCommitter } from './offset-committer.ts'
import { Producer } from './producer.ts'
import { readAll } from './reading.ts'
import { named, numbered, runAll } from './run-clients.ts'
import { drawScenario } from './scenario.ts'
import { Server, serverName, serverPort } from './server.ts'
import { TopicChurn } from './topic-churn.ts'
import { Pace, type Router, sleep, type World } from './world.ts'

export interface RunOptions {
  readonly seed: number
  /** Every fault is a power loss. */
  readonly powerLossesOnly?: boolean
  readonly recordTrace?: boolean
  /** Makes the node's logger, over virtual time; it says nothing when left out. */
  readonly createLogger?: (clock: Pick<Clock, 'now'>) => Logger
  readonly wrapPlatform?: (platform: Platform) => Platform
  readonly openLogs?: (options: LogManagerOptions) => Promise<LogManager>
}

export interface RunResult {
  readonly traceHash: string
  /** Empty without `recordTrace`. */
  readonly traceLines: readonly string[]
  readonly events: number
  readonly virtualMs: number
  readonly powerLosses: number
  /** Starts of the node that came to serve. */
  readonly resumes: number
  readonly acked: number
  readonly refused: number
  readonly fetched: number
  readonly commits: number
  readonly topicsDeleted: number
  /** Records of compacted topics that were gone at the end. */
  readonly compactedAway: number
}

/** Virtual milliseconds that a phase may take, after which something hangs. */
const faultsMs = 300_000
const drainMs = 60_000
const longestPatienceMs = 60_000

const onlyNode: Router = {
  nodeFor: () => Promise.resolve(serverName),
  onRefused: () => undefined,
  leaderEpochOf: () => -1,
}

/**
 * Runs one node, its clients and its faults from a seed. First everything at once, then no faults: the clients must finish, the
 * node goes down and comes back once more, and everything is read. Throws what was violated.
 */
export async function runNode(options: RunOptions): Promise<RunResult> {
  const { seed } = options
  const simulation = createSimulation({ seed, tracing: options.recordTrace === true ? 'lines' : 'hash' })
  const observer = simulation.host('observer').platform
  const scenario = drawScenario(observer.random, options.powerLossesOnly ?? false)
  let nemesis: Nemesis | undefined
  const acks = {
    on: (event: HistoryEvent) => {
      if (event.kind === 'batch-acked') nemesis?.onAck(event.isOvertaking)
      else if (event.kind === 'commit-acked' || event.kind === 'topic-created') nemesis?.onAck(false)
    },
  }
  const history = new History([...allCheckers(), acks])
  const server: Server = new Server(simulation.host(serverName), () => world, {
    settings: [`listeners=PLAINTEXT://${serverName}:${serverPort}`, ...scenario.settings],
    logger: options.createLogger?.({ now: () => Math.floor(simulation.nowMs) }) ?? silentLogger,
    ...(options.wrapPlatform === undefined ? {} : { wrapPlatform: options.wrapPlatform }),
    ...(options.openLogs === undefined ? {} : { openLogs: options.openLogs }),
  })
  const world = {
    simulation,
    scenario,
    history,
    server,
    random: observer.random,
    timers: observer.timers,
    isDraining: false as boolean,
    pace: new Pace(),
    routerOf: () => onlyNode,
    longestPatienceMs,
    patienceMs: longestPatienceMs,
    replicationFactor: 1,
    get incarnation() {
      return server.incarnation
    },
  } satisfies World
  const clientHosts = [
    'admin',
    ...scenario.producers.map((_, i) => `producer${i}`),
    ...Array.from({ length: scenario.consumerCount }, (_, i) => `consumer${i}`),
  ]
  nemesis = new Nemesis(world, clientHosts)
  const armed = nemesis
  simulation.checkAfterEachEvent(() => {
    armed.afterEvent()
    if (history.violation !== undefined) throw history.violation
  })

  const faults = nemesis.run()
  const topics: SimulatedTopic[] = []
  const unfinished = new Set<string>()
  const clients = runClients(world, topics, unfinished)
  // Whoever fails first ends the run; the others must not be unhandled meanwhile.
  const all = Promise.all([faults, clients])
  all.catch(() => {})
  const phase = async (name: string, maxVirtualMs: number, work: Promise<unknown>): Promise<void> => {
    try {
      await simulation.run(work, { maxVirtualMs })
    } catch (error) {
      if (!(error instanceof SimulationStuckError)) throw error
      const message = `Not done ${name} in ${maxVirtualMs} virtual ms; at work: ${[...unfinished].join(', ')}`
      throw new PropertyViolation('everything goes on', message)
    }
  }
  await phase('under faults', faultsMs, Promise.race([faults, all]))
  simulation.network.healAll()
  world.isDraining = true
  await phase('when the faults were over', drainMs, all)
  let compactedAway = 0
  const verified = verify(world, topics).then((count) => {
    compactedAway = count
  })
  await phase('at the end', drainMs, verified)
  return {
    traceHash: simulation.traceHash(),
    traceLines: simulation.traceLines,
    events: simulation.eventCount,
    virtualMs: simulation.nowMs,
    powerLosses: nemesis.powerLosses + 1,
    resumes: history.count('node-started'),
    acked: history.count('batch-acked'),
    refused: history.count('batch-refused'),
    fetched: history.count('fetched'),
    commits: history.count('commit-acked'),
    topicsDeleted: history.count('topic-deleted'),
    compactedAway,
  }
}

/** Creates the topics, then lets everybody loose. Adds the topics to `topics`, and to `unfinished` who is still at work. */
async function runClients(world: World, topics: SimulatedTopic[], unfinished: Set<string>): Promise<void> {
  unfinished.add('setup')
  const { scenario } = world
  const admin = new Client(world, 'admin')
  for (const plan of scenario.topics) topics.push(await createTopic(admin, plan))
  unfinished.delete('setup')
  const { producers, consumerCount, memberCount, committerCount, hasChurn } = scenario
  const clients = [
    ...producers.map((plan, i) => named(`producer${i}`, (name) => new Producer(world, name, plan, topics))),
    ...numbered('consumer', consumerCount, (name) => new Consumer(world, name, topics, true)),
    ...numbered('member', memberCount, (name) => new GroupMember(world, name, topics)),
    ...numbered('committer', committerCount, (name) => new OffsetCommitter(world, name, topics[0]!)),
    ...(hasChurn ? [named('churn', (name) => new TopicChurn(world, name))] : []),
    { name: 'admin', run: () => listOverAndOver(admin) },
  ]
  await runAll(clients, unfinished)
}

async function listOverAndOver(client: Client): Promise<void> {
  while (!client.world.isDraining) {
    await client.think(100)
    await listTopics(client)
  }
}

/** One more power loss (or clean stop), then everything that is there is read. Answers how much was compacted away. */
async function verify(world: World, topics: readonly SimulatedTopic[]): Promise<number> {
  const { server, history, timers, random } = world
  if (random.float() < 0.4) await server.stop()
  server.end(true)
  await sleep(timers, 10)
  server.start()
  await server.whenUp()
  const reader = new Client(world, 'verifier')
  while ((await listTopics(reader)) === undefined) await reader.think(50)
  let compactedAway = 0
  for (const topic of topics) {
    for (let partition = 0; partition < topic.partitionCount; partition++) {
      const missing = await readAll(reader, topic, partition)
      if (topic.isCompacted) compactedAway += missing
    }
  }
  await server.stop()
  if (server.host.isUp) history.fail(new PropertyViolation('the node stops when asked', 'It is still there'))
  return compactedAway
}
