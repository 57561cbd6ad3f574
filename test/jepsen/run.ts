import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { committedOffsets } from './clients/committing.ts'
import { recordsIn } from './clients/fetching.ts'
import { Member, membersGroup } from './clients/member.ts'
import { IdempotentProducer, PlainProducer } from './clients/producer.ts'
import { Reader } from './clients/reader.ts'
import { Register } from './clients/register.ts'
import { pause, Recording, Session, type World } from './clients/session.ts'
import { listTopics, TopicChurn } from './clients/topic-churn.ts'
import { type Ending, FaultyCluster, nodeIds } from './cluster.ts'
import { judgeAppends } from './judge/appends.ts'
import type { FinalLog, History, SeenRecord, Violation } from './judge/history.ts'
import { judgeOffsets } from './judge/offsets.ts'
import { judgeReads } from './judge/reads.ts'
import { judgeTopics } from './judge/topics.ts'
import { faultNames, inflict, randomFrom } from './nemesis.ts'

export const topic = 'orders'
const topics = [topic, '__consumer_offsets']
const partitionCount = 4
const registerCount = 2

/** How long clients may take to go on, and replicas to be in sync, after all faults are over. */
const recoveryMs = 60_000

export interface ChaosOptions {
  readonly seed: number
  /** Faults begin no later than this after the start; without an end when left out. */
  readonly durationMs?: number
  /** No more of them. */
  readonly maxFaults?: number
  /** These in turn, instead of any. */
  readonly faults?: readonly string[]
  /** Milliseconds between two batches of one producer, on the average. */
  readonly intervalMs?: number
  /** -1 unless given. Of what one replica alone acknowledges something is lost, which the judges have to find. */
  readonly acks?: -1 | 1
  /** Told what happens, for people. */
  readonly onStep?: (text: string) => void
}

export interface ChaosResult {
  readonly violations: readonly Violation[]
  readonly history: History
  /** How often each fault was inflicted. */
  readonly faults: ReadonlyMap<string, number>
  /** The longest time until all clients went on after a fault was over. */
  readonly worstRecovery: { readonly ms: number; readonly after: string }
  /** The longest time in which nothing was acknowledged to any producer of a partition. */
  readonly worstStall: { readonly ms: number; readonly during: string }
  /** What each node logged, JSON lines. */
  readonly logs: ReadonlyMap<number, string>
}

interface Client {
  readonly name: string
  readonly progress: number
  run(): Promise<void>
}

/** Three processes under faults and load from one seed (but for how processes run), and the judgement of all that clients saw. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  await using cluster = await FaultyCluster.start({ hasOwnDisks: true })
  const run = new ChaosRun(cluster, options)
  return await run.run()
}

class ChaosRun {
  readonly #cluster: FaultyCluster
  readonly #options: ChaosOptions
  readonly #random: () => number
  readonly #recording = new Recording()
  readonly #world: World
  readonly #clients: readonly Client[]
  readonly #violations: Violation[] = []
  readonly #faults = new Map<string, number>()
  readonly #startMs = performance.now()
  readonly #faultSpans: { readonly name: string; readonly fromMs: number; readonly toMs: number }[] = []
  #endingsSeen = 0
  #worstRecovery = { ms: 0, after: 'nothing' }

  constructor(cluster: FaultyCluster, options: ChaosOptions) {
    const { seed, intervalMs = 40, acks = -1 } = options
    this.#cluster = cluster
    this.#options = options
    this.#random = randomFrom(seed)
    const world: World = {
      addresses: cluster.addresses,
      topic,
      partitionCount,
      recording: this.#recording,
      acks,
      random: randomFrom(seed + 1),
      isDraining: false,
      isOver: false,
    }
    this.#world = world
    const partitions = Array.from({ length: partitionCount }, (_, partition) => partition)
    this.#clients = [
      ...partitions.flatMap((partition) => [
        new PlainProducer(world, `plain-${partition}`, partition, intervalMs),
        new Reader(world, `reader-${partition}`, partition),
      ]),
      // After a loss every further batch of one would be out of order.
      ...(acks === 1 ? [] : partitions).flatMap((partition) => [
        new IdempotentProducer(world, `idempotent-${partition}a`, partition, intervalMs),
        new IdempotentProducer(world, `idempotent-${partition}b`, partition, intervalMs),
      ]),
      ...Array.from({ length: registerCount }, (_, index) => new Register(world, `register-${index}`)),
      new TopicChurn(world, 'topics'),
      new Member(world, 'member-a'),
      new Member(world, 'member-b'),
    ]
  }

  async run(): Promise<ChaosResult> {
    await this.#cluster.createTopic(topic, partitionCount)
    let areDone = false
    const running = Promise.all(this.#clients.map((client) => client.run())).then(() => {
      areDone = true
    })
    let isWell = await this.#untilWell('the start', true)
    while (isWell && this.#goesOn) isWell = await this.#inflict(this.#nextFault())
    if (isWell) isWell = await this.#untilWell('the last fault', true)
    this.#world.isDraining = true
    await until(() => areDone, 'clients are done', recoveryMs).catch((error: unknown) => {
      this.#violation('progress', `${(error as Error).message} after the last fault`)
    })
    this.#world.isOver = true
    await running
    for (const refusal of this.#recording.refusals) this.#violation('idempotent producers see no error', refusal)
    const logs = isWell ? await this.#finalLogs() : []
    if (isWell) await this.#readCommitted()
    if (isWell) await this.#listTopics()
    const history: History = { ...this.#recording, logs }
    if (isWell) this.#violations.push(...judge(history))
    this.#checkEndings()
    return {
      violations: this.#violations,
      history,
      faults: this.#faults,
      worstRecovery: this.#worstRecovery,
      worstStall: this.#worstStall(),
      logs: new Map(nodeIds.map((id) => [id, this.#cluster.log(id)])),
    }
  }

  get #elapsedMs(): number {
    return performance.now() - this.#startMs
  }

  get #goesOn(): boolean {
    const { durationMs = Number.POSITIVE_INFINITY, maxFaults = Number.POSITIVE_INFINITY } = this.#options
    return this.#elapsedMs < durationMs && this.#faultCount < maxFaults
  }

  get #faultCount(): number {
    return [...this.#faults.values()].reduce((sum, each) => sum + each, 0)
  }

  #nextFault(): string {
    const { faults } = this.#options
    if (faults !== undefined) return faults[this.#faultCount % faults.length]!
    return faultNames[Math.floor(this.#random() * faultNames.length)]!
  }

  /** False when the cluster didn't recover. */
  async #inflict(name: string): Promise<boolean> {
    this.#step(name)
    const fromMs = performance.now()
    this.#faults.set(name, (this.#faults.get(name) ?? 0) + 1)
    try {
      await inflict(name, { cluster: this.#cluster, random: this.#random, isInSync: () => this.#isInSync() })
    } catch (error) {
      this.#violation('progress', `${(error as Error).message}; ${await this.#describe()}`)
      return false
    }
    const isWell = await this.#untilWell(name, this.#random() < 0.5)
    this.#faultSpans.push({ name, fromMs, toMs: performance.now() })
    return isWell
  }

  #step(text: string): void {
    this.#options.onStep?.(`${(this.#elapsedMs / 1000).toFixed(1).padStart(7)} s  ${text}`)
  }

  #violation(property: string, message: string): void {
    this.#violations.push({ property, message })
  }

  /** Starts what doesn't run, and waits until every client goes on; false, with a violation, when it doesn't come to that. */
  async #untilWell(after: string, isInSync: boolean): Promise<boolean> {
    const startMs = performance.now()
    this.#cluster.links.heal()
    const before = this.#clients.map(({ progress }) => progress)
    const stuck = () =>
      this.#clients.filter(({ progress }, index) => progress < before[index]! + 2).map(({ name }) => name)
    try {
      await until(
        () => {
          this.#startAll()
          return stuck().length === 0
        },
        'every client goes on',
        recoveryMs,
      )
      const ms = performance.now() - startMs
      if (ms > this.#worstRecovery.ms) this.#worstRecovery = { ms, after }
      if (isInSync) await until(() => this.#isInSync(), 'all replicas are in sync', recoveryMs)
      this.#step(`  well after ${ms.toFixed(0)} ms`)
      for (const id of nodeIds) this.#cluster.expectToLast(id)
      return true
    } catch (error) {
      const state = await this.#describe()
      this.#violation('progress', `${(error as Error).message} after ${after}; stuck: ${stuck().join(', ')}; ${state}`)
      return false
    } finally {
      this.#checkEndings()
    }
  }

  /** A node that ended, as its disk failed, is started again by whoever runs it. */
  #startAll(): void {
    for (const id of nodeIds) {
      if (this.#cluster.isRunning(id)) continue
      this.#checkEndings()
      this.#cluster.launch(id)
    }
  }

  #worstStall(): { ms: number; during: string } {
    let worst = { ms: 0, during: 'nothing' }
    for (let partition = 0; partition < partitionCount; partition++) {
      const acknowledged = this.#recording.appends.filter(
        (each) => each.partition === partition && each.outcome === 'ok',
      )
      const times = acknowledged.map(({ completedMs }) => completedMs).sort((a, b) => a - b)
      for (const [index, atMs] of times.entries()) {
        const fromMs = times[index - 1] ?? atMs
        if (atMs - fromMs <= worst.ms) continue
        const during = this.#faultDuring(fromMs, atMs)
        worst = { ms: atMs - fromMs, during: `${during}, in partition ${partition}` }
      }
    }
    return worst
  }

  /** The one that overlaps most with that time. */
  #faultDuring(fromMs: number, toMs: number): string {
    const overlap = (span: { fromMs: number; toMs: number }) =>
      Math.min(toMs, span.toMs) - Math.max(fromMs, span.fromMs)
    const [most] = [...this.#faultSpans].sort((a, b) => overlap(b) - overlap(a))
    return most === undefined || overlap(most) <= 0 ? 'no fault' : most.name
  }

  #checkEndings(): void {
    const { endings } = this.#cluster
    const unseen: readonly Ending[] = endings.slice(this.#endingsSeen)
    this.#endingsSeen = endings.length
    for (const { id, exitCode, isExpected, output } of unseen) {
      if (!isExpected)
        this.#violation('no node ends by itself', `Node ${id} ended with ${exitCode}: ${output.slice(-3000)}`)
    }
  }

  #isInSync(): Promise<boolean> {
    return this.#cluster.isInSync(topics)
  }

  async #describe(): Promise<string> {
    const views = nodeIds.map(async (id) => {
      const partitions = await this.#cluster.partitions(id, topics).catch((error: Error) => error.message)
      return `node ${id}: ${JSON.stringify(partitions)}`
    })
    return (await Promise.all(views)).join('; ')
  }

  /** Of every partition, the leader's log first. */
  async #finalLogs(): Promise<readonly FinalLog[]> {
    const session = new Session(this.#world, recoveryMs)
    this.#world.isOver = false
    const logs: FinalLog[] = []
    for (let partition = 0; partition < partitionCount; partition++) {
      session.forgetLeader(partition)
      const leader = (await session.leader(partition))!
      const end = await readLog(await session.connection(leader.id), partition, undefined)
      logs.push({ node: leader.id, partition, records: end })
      for (const node of nodeIds.filter((id) => id !== leader.id)) {
        logs.push({ node, partition, records: await readLog(await session.connection(node), partition, end.length) })
      }
    }
    session.close()
    return logs
  }

  /** As every node knows them, once all know the same: the controller among them knows all that was acknowledged. */
  async #listTopics(): Promise<void> {
    const session = new Session(this.#world, recoveryMs)
    const { topicListings } = this.#recording
    const areSame = async () => {
      const count = topicListings.length
      for (const id of nodeIds) await listTopics(this.#world, await session.connection(id), 'final', id, true)
      const [first, ...others] = topicListings.slice(count).map(({ names }) => [...names].sort().join())
      const isSame = others.every((names) => names === first)
      if (!isSame) topicListings.length = count
      return isSame
    }
    await until(areSame, 'all nodes know the same topics', recoveryMs)
    session.close()
  }

  async #readCommitted(): Promise<void> {
    const session = new Session(this.#world, recoveryMs)
    const partitions = Array.from({ length: partitionCount }, (_, partition) => partition)
    const groups = [...Array.from({ length: registerCount }, (_, index) => `register-${index}`), membersGroup]
    for (const group of groups) {
      const readAll = async () => {
        const id = await session.coordinator(group)
        const client = id === undefined ? undefined : await session.connection(id)
        if (client === undefined) return false
        return (await committedOffsets(this.#world, client, 'final', group, partitions, false)) !== undefined
      }
      await until(readAll, `offsets of ${group} are told`, recoveryMs)
    }
    session.close()
  }
}

function judge(history: History): readonly Violation[] {
  return [
    ...judgeAppends(history),
    ...judgeReads(history),
    ...judgeOffsets(history),
    ...judgeTopics(history.topicChanges, history.topicListings),
  ]
}

/** All that a replica has below its high watermark, up to `endOffset` where that is given, which it waits for. */
async function readLog(
  client: KafkaClient,
  partition: number,
  endOffset: number | undefined,
): Promise<readonly SeenRecord[]> {
  const records: SeenRecord[] = []
  const deadlineMs = performance.now() + recoveryMs
  for (;;) {
    const fetchOffset = (records.at(-1)?.offset ?? -1) + 1
    const asked = { partition, fetchOffset, partitionMaxBytes: 4 * 1024 * 1024 }
    const { responses } = await client.request(apis.Fetch, 12, {
      maxWaitMs: 0,
      minBytes: 0,
      topics: [{ topic, partitions: [asked] }],
      forgottenTopicsData: [],
      rackId: '',
    })
    const answer = responses[0]?.partitions[0]
    if (answer === undefined || answer.errorCode !== ErrorCode.NONE) {
      throw new Error(`Partition ${partition} can not be read at ${fetchOffset}: error ${answer?.errorCode}`)
    }
    const found = recordsIn(answer.records ?? Buffer.alloc(0)).filter(({ offset }) => offset >= fetchOffset)
    records.push(...found)
    const isAll = found.length === 0 && fetchOffset >= (endOffset ?? answer.highWatermark)
    if (isAll || performance.now() > deadlineMs) return records
    if (found.length === 0) await pause(20)
  }
}
