import { zeroUuid } from '../../../src/base/index.ts'
import {
  defaultRaftConfig,
  type Entry,
  type HardState,
  type LogIndex,
  type Membership,
  MemoryLog,
  type Message,
  type NodeId,
  type RaftConfig,
  RaftCore,
  RaftLog,
  type Ready,
  type Snapshot,
  type Term,
} from '../../../src/raft/index.ts'
import { Checker } from './checker.ts'
import { EventQueue } from './event-queue.ts'
import { SeededRandom } from './random.ts'

/** Places where a known bug can be put in, to show that the checker finds it. */
export interface Mutation {
  readonly makeLog?: (durable: MemoryLog, commitIndex: LogIndex) => RaftLog
  /** What the disk is given instead of `hardState`. */
  readonly alterHardState?: (hardState: HardState) => HardState
  readonly sendsBeforeSync?: boolean
  /** Called with each message that `core` sends. */
  readonly onSend?: (core: RaftCore, message: Message) => void
  /** Called after `message` was stepped. */
  readonly onStep?: (log: RaftLog, message: Message) => void
}

export interface RunResult {
  readonly seed: number
  readonly nodeCount: number
  readonly events: number
  readonly committed: number
  readonly maxTerm: number
  readonly snapshotsInstalled: number
  /** Of all events in order. */
  readonly traceHash: number
}

const tickTime = 10
/** Virtual time, in election timeouts, within which a healthy quorum must get on: elect, or commit or copy one more entry. Long, as
 * some runs have links and disks so slow that most elections time out. */
const progressTimeouts = 100
/** The same for all of the quiet time: some runs copy a long log with one small message in flight. */
const livenessTimeouts = 2000

const faultKinds = ['crash', 'crash-all', 'partition', 'isolate', 'one-way', 'stall', 'heal'] as const
type FaultKind = (typeof faultKinds)[number]

/** How hostile one run is: every kind of fault is on or off, and its rate differs, from seed to seed. */
interface Faults {
  drop: number
  duplicate: number
  longDelay: number
  readonly maxLatency: number
  readonly maxDiskDelay: number
  readonly nemesisEvery: number
  /** How often a fault of one node is the leader's. */
  readonly strikesLeaders: number
  readonly kinds: readonly FaultKind[]
  readonly compaction: number
  readonly keptEntries: number
  readonly proposeEvery: number
  /** The host goes on to step and tick while a write is under way. */
  readonly stepsDuringWrite: boolean
}

/** One voter: its core while it runs, its disk always. */
class SimulatedNode {
  readonly id: NodeId
  readonly disk: { log: MemoryLog; term: Term; hardState: HardState }
  core!: RaftCore
  log!: RaftLog
  isUp: boolean = false
  /** Counts starts: what was scheduled for an earlier one is void. */
  life = 0
  stalledUntil = -1
  writing: Ready | undefined
  inbox: Message[] = []
  appliedIndex = 0 as LogIndex
  state = 0
  tickPhase: number

  constructor(id: NodeId, log: MemoryLog, tickPhase: number) {
    this.id = id
    const hardState: HardState = { term: 0 as Term, votedFor: null, votedDirectoryId: null, commitIndex: 0 as LogIndex }
    this.disk = { log, term: hardState.term, hardState }
    this.tickPhase = tickPhase
  }
}

/** N cores on a network, disks and clocks made of one seed. */
export class Simulator {
  readonly #seed: number
  readonly #random: SeededRandom
  readonly #queue = new EventQueue()
  readonly #nodes: SimulatedNode[]
  readonly #config: RaftConfig
  readonly #faults: Faults
  readonly #mutation: Mutation
  readonly #checker: Checker
  /** Blocked links, by `from * nodeCount + to`. */
  readonly #blocked = new Set<number>()
  #areFaultsOn: boolean = true
  #isWorkloadOn: boolean = true
  #events = 0
  #proposals = 0
  #snapshotsInstalled = 0
  #traceHash = 0

  constructor(seed: number, mutation: Mutation = {}) {
    this.#seed = seed
    this.#mutation = mutation
    const random = new SeededRandom(seed)
    this.#random = random
    const nodeCount = random.pick([1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 7])
    const membership: Membership = {
      voters: Array.from({ length: nodeCount }, (_, id) => ({ id: id as NodeId, directoryId: zeroUuid })),
    }
    const bootstrap: Snapshot = { index: 0 as LogIndex, term: 0 as Term, membership, data: new Uint8Array(0) }
    this.#nodes = membership.voters.map(({ id }) => {
      return new SimulatedNode(id, new MemoryLog(bootstrap), random.int(tickTime))
    })
    this.#config = {
      ...defaultRaftConfig,
      electionTicks: random.between(8, 20),
      heartbeatTicks: random.between(1, 3),
      maxBytesPerMessage: random.pick([1, 20, 200, 1 << 20]),
      maxInflightCount: random.pick([1, 2, 8, 64]),
      maxInflightBytes: random.pick([1, 100, 1 << 20]),
      maxUncommittedBytes: random.pick([200, 1 << 20]),
      maxCommittedBytesPerReady: random.pick([1, 50, 1 << 20]),
      snapshotRetryTicks: random.between(20, 100),
    }
    this.#faults = {
      drop: random.pick([0, 0.01, 0.05, 0.2]),
      duplicate: random.pick([0, 0.02, 0.1]),
      longDelay: random.pick([0, 0.01, 0.05]),
      maxLatency: random.pick([2, 5, 15, 40]),
      maxDiskDelay: random.pick([0, 2, 10, 50]),
      nemesisEvery: random.pick([30, 100, 300, 1000]),
      strikesLeaders: random.pick([0, 0.5, 0.9]),
      kinds: faultKinds.filter((kind) => kind === 'heal' || random.chance(kind === 'crash-all' ? 0.2 : 0.6)),
      compaction: random.pick([0, 0.02, 0.2]),
      keptEntries: random.pick([0, 0, 3, 50]),
      proposeEvery: random.pick([3, 10, 30]),
      stepsDuringWrite: random.chance(0.5),
    }
    this.#checker = new Checker(
      nodeCount,
      this.#nodes.map((node) => node.disk),
    )
  }

  /** `eventCount` events with faults, then a quiet time in which the quorum must come together. Throws on any violation. */
  run(eventCount: number): RunResult {
    for (const node of this.#nodes) this.#start(node)
    this.#scheduleNemesis()
    this.#scheduleProposal()
    while (this.#events < eventCount && this.#queue.runNext()) this.#events++
    this.#converge()
    return {
      seed: this.#seed,
      nodeCount: this.#nodes.length,
      events: this.#events,
      committed: this.#checker.lastCommitted,
      maxTerm: Math.max(...this.#nodes.map((node) => node.disk.term)),
      snapshotsInstalled: this.#snapshotsInstalled,
      traceHash: this.#traceHash,
    }
  }

  // ---- the host of one core: what raft-node.ts does, without promises ----

  #start(node: SimulatedNode): void {
    const { log, hardState } = node.disk
    const makeLog = this.#mutation.makeLog ?? ((durable, commitIndex) => new RaftLog(durable, commitIndex))
    node.log = makeLog(log, hardState.commitIndex)
    node.core = new RaftCore({
      id: node.id,
      directoryId: zeroUuid,
      config: this.#config,
      log: node.log,
      hardState,
      random: this.#random,
    })
    node.isUp = true
    node.life++
    node.appliedIndex = log.snapshot.index
    node.state = stateOf(log.snapshot)
    this.#checker.afterRestart(node)
    if (this.#nodes.length === 1) node.core.campaign()
    this.#scheduleTick(node)
    this.#pump(node)
  }

  #crash(node: SimulatedNode): void {
    if (!node.isUp) return
    // A write under way is a batch: it is on the disk, with nobody told, or it isn't.
    const { writing } = node
    if (writing?.mustSync && this.#random.chance(0.5)) this.#write(node, writing)
    node.isUp = false
    node.life++
    node.writing = undefined
    node.inbox = []
    node.stalledUntil = -1
    this.#checker.checkDurability()
  }

  /** Runs `work` later, unless `node` starts anew before. */
  #later(node: SimulatedNode, delay: number, kind: number, work: () => void): void {
    const { life } = node
    this.#queue.schedule(delay, () => {
      if (node.life !== life) return
      this.#trace(kind, node.id)
      work()
    })
  }

  #scheduleTick(node: SimulatedNode): void {
    const delay = tickTime - ((this.#queue.now - node.tickPhase) % tickTime)
    this.#later(node, delay <= 0 ? delay + tickTime : delay, 1, () => {
      this.#scheduleTick(node)
      if (this.#queue.now < node.stalledUntil) return
      this.#drain(node)
      node.core.tick()
      this.#pump(node)
    })
  }

  #receive(node: SimulatedNode, message: Message): void {
    node.inbox.push(message)
    const isBusy = node.writing !== undefined && !this.#faults.stepsDuringWrite
    if (isBusy || this.#queue.now < node.stalledUntil) return
    this.#drain(node)
    this.#pump(node)
  }

  #drain(node: SimulatedNode): void {
    if (node.writing !== undefined && !this.#faults.stepsDuringWrite) return
    for (const message of node.inbox) {
      node.core.step(message)
      this.#mutation.onStep?.(node.log, message)
      this.#checker.afterEvent(node)
    }
    node.inbox.length = 0
  }

  #pump(node: SimulatedNode): void {
    this.#checker.afterEvent(node)
    while (node.writing === undefined) {
      const ready = node.core.ready()
      if (ready === undefined) return
      this.#checker.onReady(node, ready)
      this.#checker.afterEvent(node)
      node.writing = ready
      if (this.#mutation.sendsBeforeSync) this.#sendAll(node, ready)
      if (ready.mustSync && this.#faults.maxDiskDelay > 0) {
        const delay = this.#random.int(this.#faults.maxDiskDelay)
        this.#later(node, delay, 2, () => {
          this.#finish(node, ready)
          this.#drain(node)
          this.#pump(node)
        })
      } else {
        this.#finish(node, ready)
      }
    }
  }

  #finish(node: SimulatedNode, ready: Ready): void {
    if (ready.mustSync) this.#write(node, ready)
    node.writing = undefined
    if (!this.#mutation.sendsBeforeSync) this.#sendAll(node, ready)
    if (ready.snapshot !== undefined) {
      this.#snapshotsInstalled++
      node.appliedIndex = ready.snapshot.index
      node.state = stateOf(ready.snapshot)
      this.#checker.onInstall(node, node.appliedIndex, node.state)
    }
    for (const entry of ready.committedEntries) this.#apply(node, entry)
    node.core.advance()
    this.#maybeAssemble(node, ready)
    this.#checker.afterEvent(node)
    if (this.#random.chance(this.#faults.compaction)) this.#compact(node)
  }

  #maybeAssemble({ core }: SimulatedNode, { snapshotChunks }: Ready): void {
    for (const { header, data } of snapshotChunks) {
      const { index, term, membership } = header
      core.snapshotAssembled(index, { index, term, membership, data })
    }
  }

  #write(node: SimulatedNode, ready: Ready): void {
    const { disk } = node
    if (ready.snapshot !== undefined) disk.log.install(ready.snapshot)
    disk.log.append(ready.entriesToPersist)
    if (ready.hardState !== undefined) {
      disk.hardState = this.#mutation.alterHardState?.(ready.hardState) ?? ready.hardState
      disk.term = disk.hardState.term
    }
    this.#checker.checkDurability()
  }

  #apply(node: SimulatedNode, entry: Entry): void {
    if (entry.index !== node.appliedIndex + 1) throw new Error(`Entry ${entry.index} follows ${node.appliedIndex}`)
    node.appliedIndex = entry.index
    let { state } = node
    for (const byte of entry.data) state = (Math.imul(state, 31) + byte) | 0
    node.state = (Math.imul(state, 31) + entry.term) | 0
    this.#checker.onApply(node, entry, node.state)
  }

  #compact(node: SimulatedNode): void {
    const { log } = node.disk
    if (node.appliedIndex <= log.snapshot.index || node.log.incomingSnapshot !== undefined) return
    const data = new Uint8Array(4)
    new DataView(data.buffer).setInt32(0, node.state)
    const term = log.term(node.appliedIndex) as Term
    log.replaceSnapshot({ index: node.appliedIndex, term, membership: log.snapshot.membership, data })
    log.compact(Math.max(0, node.appliedIndex - this.#faults.keptEntries) as LogIndex)
  }

  // ---- network ----

  #sendAll(node: SimulatedNode, ready: Ready): void {
    for (const message of ready.messages) {
      if (!this.#mutation.sendsBeforeSync) this.#checker.onSend(node, message)
      this.#carry(message)
      this.#mutation.onSend?.(node.core, message)
    }
  }

  #carry(message: Message): void {
    const random = this.#random
    const { drop, duplicate, longDelay, maxLatency } = this.#faults
    if (this.#blocked.has(message.from * this.#nodes.length + message.to)) return
    if (drop > 0 && random.chance(drop)) return
    const copies = duplicate > 0 && random.chance(duplicate) ? 2 : 1
    const target = this.#nodes[message.to]!
    for (let copy = 0; copy < copies; copy++) {
      let delay = 1 + random.int(maxLatency)
      if (longDelay > 0 && random.chance(longDelay)) delay *= random.between(10, 100)
      this.#queue.schedule(delay, () => {
        if (!target.isUp) return
        this.#trace(3, message.from * 8 + message.to)
        this.#receive(target, message)
      })
    }
  }

  // ---- workload and faults ----

  #scheduleProposal(): void {
    this.#queue.schedule(1 + this.#random.int(2 * this.#faults.proposeEvery), () => {
      if (!this.#isWorkloadOn) return
      this.#scheduleProposal()
      const leaders = this.#nodes.filter((node) => node.isUp && node.core.role === 'leader')
      if (leaders.length === 0 || (leaders.length === 1 && this.#queue.now < leaders[0]!.stalledUntil)) return
      const node = this.#random.pick(leaders)
      for (let i = this.#random.int(4); i >= 0; i--) this.#propose(node)
      this.#pump(node)
    })
  }

  #propose(node: SimulatedNode): boolean {
    const data = new Uint8Array(4 + this.#random.int(20))
    new DataView(data.buffer).setUint32(0, ++this.#proposals)
    this.#trace(4, node.id)
    return node.core.propose([{ type: 'data', data }]).ok
  }

  #scheduleNemesis(): void {
    this.#queue.schedule(1 + this.#random.int(2 * this.#faults.nemesisEvery), () => {
      if (!this.#areFaultsOn) return
      this.#scheduleNemesis()
      this.#strike(this.#random.pick(this.#faults.kinds))
    })
  }

  #strike(kind: FaultKind): void {
    const random = this.#random
    const nodeCount = this.#nodes.length
    const leader = this.#nodes.find((each) => each.isUp && each.core.role === 'leader')
    const node = leader !== undefined && random.chance(this.#faults.strikesLeaders) ? leader : random.pick(this.#nodes)
    this.#trace(5, node.id)
    switch (kind) {
      case 'crash':
        this.#crashFor(node, random.between(1, 40) * tickTime)
        return
      case 'crash-all':
        for (const each of this.#nodes) this.#crashFor(each, random.between(1, 20) * tickTime)
        return
      case 'stall':
        this.#stall(node, random.between(1, 60) * tickTime)
        return
      case 'one-way':
        this.#blocked.add(node.id * nodeCount + random.int(nodeCount))
        return
      case 'isolate':
        for (const other of this.#nodes) this.#block(node.id, other.id)
        return
      case 'partition': {
        const sides = this.#nodes.map(() => random.chance(0.5))
        for (const a of this.#nodes) {
          for (const b of this.#nodes) if (sides[a.id] !== sides[b.id]) this.#block(a.id, b.id)
        }
        return
      }
      case 'heal':
        this.#blocked.clear()
    }
  }

  #block(a: NodeId, b: NodeId): void {
    this.#blocked.add(a * this.#nodes.length + b).add(b * this.#nodes.length + a)
  }

  #crashFor(node: SimulatedNode, time: number): void {
    if (!node.isUp) return
    this.#crash(node)
    const { life } = node
    this.#queue.schedule(time, () => {
      if (node.life === life) this.#start(node)
    })
  }

  /** The event loop of `node` stands still; then what came in is read before time goes on. */
  #stall(node: SimulatedNode, time: number): void {
    if (!node.isUp || this.#queue.now < node.stalledUntil) return
    node.stalledUntil = this.#queue.now + time
    this.#later(node, time, 6, () => {
      this.#drain(node)
      this.#pump(node)
    })
  }

  // ---- liveness ----

  /** All faults end; a majority (sometimes no more) is up: it must elect, commit something new, and all must apply it. */
  #converge(): void {
    this.#areFaultsOn = false
    this.#isWorkloadOn = false
    this.#blocked.clear()
    Object.assign(this.#faults, { drop: 0, duplicate: 0, longDelay: 0 })
    const majority = (this.#nodes.length >> 1) + 1
    const keptDown = this.#random.chance(0.5) ? this.#nodes.length - majority : 0
    const shuffled = this.#nodes.map((node) => ({ node, key: this.#random.float() })).sort((a, b) => a.key - b.key)
    const alive = shuffled.slice(keptDown).map(({ node }) => node)
    for (const { node } of shuffled.slice(0, keptDown)) this.#crash(node)
    for (const { node } of shuffled.slice(0, keptDown)) node.life++ // a restart that was planned is off
    for (const node of alive) {
      if (!node.isUp) this.#start(node)
    }
    const timeout = this.#config.electionTicks * tickTime
    const deadline = this.#queue.now + livenessTimeouts * timeout
    let progressDeadline = this.#queue.now + progressTimeouts * timeout
    let progress = 0
    let target: LogIndex | undefined
    while (this.#queue.now < Math.min(deadline, progressDeadline)) {
      if (target !== undefined && alive.every((node) => node.appliedIndex >= target!)) return
      const leader = alive.find(
        (node) => node.isUp && node.core.role === 'leader' && node.stalledUntil < this.#queue.now,
      )
      // Proposed by a leader that was deposed before anyone had it.
      if (target !== undefined && leader !== undefined && leader.core.lastIndex < target) target = undefined
      if (target === undefined && leader !== undefined && this.#propose(leader)) {
        target = leader.core.lastIndex
        this.#pump(leader)
      }
      let reached = (leader?.core.term ?? 0) * 1e9
      for (const node of alive) reached += node.appliedIndex + (leader?.core.progressOf(node.id)?.matchIndex ?? 0)
      if (reached > progress) {
        progress = reached
        progressDeadline = this.#queue.now + progressTimeouts * timeout
      }
      if (!this.#queue.runNext()) break
      this.#events++
    }
    const states = alive.map(({ id, core, appliedIndex }) => {
      return `${id}: ${core.role} term ${core.term} last ${core.lastIndex} commit ${core.commitIndex} applied ${appliedIndex} uncommitted ${core.uncommittedBytes}`
    })
    throw new Error(`No convergence after the faults ended (${states.join('; ')})`)
  }

  #trace(kind: number, detail: number): void {
    this.#traceHash = (Math.imul(this.#traceHash, 31) + Math.imul(this.#queue.now, 131) + kind * 17 + detail) | 0
  }
}

function stateOf({ data }: Snapshot): number {
  return data.length === 0 ? 0 : new DataView(data.buffer).getInt32(0)
}
