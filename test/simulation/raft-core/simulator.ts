import type { Uuid } from '../../../src/base/index.ts'
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
  type SnapshotChunk,
  type Term,
} from '../../../src/raft/index.ts'
import { Checker, InvariantViolation } from './checker.ts'
import { EventQueue } from './event-queue.ts'
import { SeededRandom } from './random.ts'

/** Places where a known bug can be put in, to show that the checker finds it. */
export interface Mutation {
  readonly makeLog?: (durable: MemoryLog, commitIndex: LogIndex) => RaftLog
  /** What the disk is given instead of `hardState`. */
  readonly alterHardState?: (hardState: HardState) => HardState
  readonly sendsBeforeSync?: boolean
  /** What the bug needs much of: few voters that change often, reads from leaders that others take for dead, or leaders that crash. */
  readonly needs?: 'changes' | 'reads' | 'elections'
  /** A read is answered without asking anyone. */
  readonly confirmsReadsAtOnce?: boolean
  /** What comes of another snapshot is added to what there is. */
  readonly keepsStaleChunks?: boolean
  /** A wiped disk keeps its name. */
  readonly keepsDirectoryId?: boolean
  /** What arrives at `core` instead of `message`. */
  readonly alterMessage?: (core: RaftCore, message: Message) => Message
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
  readonly membershipsCommitted: number
  readonly readsConfirmed: number
  readonly handovers: number
  readonly wipes: number
  /** Of all events in order. */
  readonly traceHash: number
}

const tickTime = 10
/** Virtual time, in election timeouts, within which a healthy quorum must get on: elect, or commit or copy one more entry. Long, as
 * some runs have links and disks so slow that most elections time out. */
const progressTimeouts = 100
/** The same for all of the quiet time: some runs copy a long log with one small message in flight. */
const livenessTimeouts = 2000

const faultKinds = ['crash', 'crash-all', 'partition', 'isolate', 'one-way', 'stall', 'wipe', 'hint', 'heal'] as const
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
  readonly readEvery: number
  /** Between attempts to change the voters, or to hand leadership over. 0: never. */
  readonly changeEvery: number
  /** The host goes on to step and tick while a write is under way. */
  readonly stepsDuringWrite: boolean
  /** It sends what may leave before the write is done. */
  readonly sendsDuringWrite: boolean
}

/** Chunks of a snapshot that is coming are not synced. */
interface SimulatedDisk {
  directoryId: Uuid
  log: MemoryLog
  term: Term
  hardState: HardState
  chunks: SnapshotChunk[]
}

/** One member: its core while it runs, its disk always. */
class SimulatedNode {
  readonly id: NodeId
  readonly disk: SimulatedDisk
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
  /** What was committed when each read began. */
  readonly reads = new Map<number, number>()
  /** How many it has had. */
  disks = 1

  constructor(id: NodeId, membership: Membership, tickPhase: number) {
    this.id = id
    this.disk = emptyDisk(directoryOf(id, 1), membership)
    this.tickPhase = tickPhase
  }
}

function directoryOf(id: NodeId, disk: number): Uuid {
  return `${id}/${disk}` as Uuid
}

function emptyDisk(directoryId: Uuid, membership: Membership): SimulatedDisk {
  const bootstrap: Snapshot = { index: 0 as LogIndex, term: 0 as Term, membership, data: new Uint8Array(0) }
  const term = 0 as Term
  const hardState: HardState = { term, votedFor: null, votedDirectoryId: null, commitIndex: 0 as LogIndex }
  return { directoryId, log: new MemoryLog(bootstrap), term, hardState, chunks: [] }
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
  #readsConfirmed = 0
  #handovers = 0
  #wipes = 0
  #traceHash = 0

  constructor(seed: number, mutation: Mutation = {}) {
    this.#seed = seed
    this.#mutation = mutation
    const random = new SeededRandom(seed)
    this.#random = random
    const changesOften = mutation.needs === 'changes'
    const readsOften = mutation.needs === 'reads'
    const electsOften = mutation.needs === 'elections'
    const nodeCount = random.pick(changesOften ? [2, 3] : [1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 7])
    const spareCount = random.pick(changesOften ? [2, 3] : [0, 0, 1, 2])
    const voters = Array.from({ length: nodeCount }, (_, i) => {
      const id = i as NodeId
      return { id, directoryId: directoryOf(id, 1) }
    })
    this.#nodes = Array.from({ length: nodeCount + spareCount }, (_, i) => {
      const membership = i < nodeCount ? { voters } : { voters: [] }
      return new SimulatedNode(i as NodeId, membership, random.int(tickTime))
    })
    const electionTicks = random.between(8, 20)
    this.#config = {
      ...defaultRaftConfig,
      electionTicks,
      campaignTicks: electionTicks,
      heartbeatTicks: random.between(1, 3),
      maxBytesPerMessage: random.pick([1, 20, 200, 1 << 20]),
      maxInflightCount: random.pick([1, 2, 8, 64]),
      maxInflightBytes: random.pick([1, 100, 1 << 20]),
      maxUncommittedBytes: random.pick([200, 1 << 20]),
      maxCommittedBytesPerReady: random.pick([1, 50, 1 << 20]),
      maxSnapshotChunkBytes: random.pick([3, 16, 1 << 20]),
      snapshotRetryTicks: random.between(5, 40),
      falseHintTicks: random.pick([0, 100]),
    }
    this.#faults = {
      drop: random.pick([0, 0.01, 0.05, 0.2]),
      duplicate: random.pick([0, 0.02, 0.1]),
      longDelay: random.pick([0, 0.01, 0.05]),
      maxLatency: random.pick([2, 5, 15, 40]),
      maxDiskDelay: random.pick([0, 2, 10, 50]),
      nemesisEvery: readsOften || electsOften ? 30 : random.pick([30, 100, 300, 1000]),
      strikesLeaders: electsOften ? 0.9 : random.pick([0, 0.5, 0.9]),
      kinds: faultKinds.filter(
        (kind) => kind === 'heal' || readsOften || random.chance(kind === 'crash-all' ? 0.2 : 0.6),
      ),
      compaction: random.pick([0, 0.02, 0.2]),
      keptEntries: random.pick([0, 0, 3, 50]),
      proposeEvery: random.pick([3, 10, 30]),
      readEvery: readsOften ? 3 : random.pick([5, 20, 100]),
      changeEvery: changesOften ? 10 : electsOften ? 0 : random.pick([0, 20, 100, 300]),
      stepsDuringWrite: random.chance(0.5),
      sendsDuringWrite: random.chance(0.5),
    }
    this.#checker = new Checker(
      { voters },
      this.#nodes.map((node) => node.disk),
    )
  }

  /** `eventCount` events with faults, then a quiet time in which the quorum must come together. Throws on any violation. */
  run(eventCount: number): RunResult {
    for (const node of this.#nodes) this.#start(node)
    this.#scheduleNemesis()
    this.#scheduleProposal()
    this.#scheduleRead()
    if (this.#faults.changeEvery > 0) this.#scheduleChange()
    while (this.#events < eventCount && this.#queue.runNext()) this.#events++
    this.#converge()
    return {
      seed: this.#seed,
      nodeCount: this.#nodes.length,
      events: this.#events,
      committed: this.#checker.lastCommitted,
      maxTerm: Math.max(...this.#nodes.map((node) => node.disk.term)),
      snapshotsInstalled: this.#snapshotsInstalled,
      membershipsCommitted: this.#checker.membershipsCommitted,
      readsConfirmed: this.#readsConfirmed,
      handovers: this.#handovers,
      wipes: this.#wipes,
      traceHash: this.#traceHash,
    }
  }

  // ---- the host of one core: what raft-node.ts does, without promises ----

  #start(node: SimulatedNode): void {
    const { log, hardState, directoryId, chunks } = node.disk
    const makeLog = this.#mutation.makeLog ?? ((durable, commitIndex) => new RaftLog(durable, commitIndex))
    node.log = makeLog(log, hardState.commitIndex)
    const last = chunks.at(-1)
    node.core = new RaftCore({
      id: node.id,
      directoryId,
      config: this.#config,
      log: node.log,
      hardState,
      partialSnapshot: last && { header: last.header, nextOffset: last.offset + last.data.length },
      random: this.#random,
    })
    node.core.setContacts(this.#nodes.map(({ id }) => id))
    node.reads.clear()
    node.isUp = true
    node.life++
    node.appliedIndex = log.snapshot.index
    node.state = stateOf(log.snapshot)
    this.#checker.afterRestart(node)
    const { voters } = node.core.membership
    if (voters.length === 1 && node.core.hasVote) node.core.campaign()
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
    // Chunks are not synced: the last ones may be gone.
    const { chunks } = node.disk
    if (chunks.length > 0 && this.#random.chance(0.5)) chunks.length = this.#random.int(chunks.length + 1)
    this.#checker.checkDurability()
  }

  /** A disk that is replaced: the node comes back empty, under another name, and without a vote. */
  #wipe(node: SimulatedNode): void {
    if (!this.#mayLose(node)) return
    this.#crash(node)
    this.#wipes++
    const directoryId = this.#mutation.keepsDirectoryId ? node.disk.directoryId : directoryOf(node.id, ++node.disks)
    Object.assign(node.disk, emptyDisk(directoryId, { voters: [] }))
    this.#checker.afterWipe(node.id)
    this.#restartAfter(node, this.#random.between(1, 40) * tickTime)
  }

  /** Whether every membership that anyone may act on still has a majority without `node`'s disk. */
  #mayLose(node: SimulatedNode, alsoWithout: ReadonlySet<SimulatedNode> = new Set()): boolean {
    return this.#nodes.every((each) => {
      const { voters } = each.isUp ? each.core.membership : each.disk.log.membershipAt(each.disk.log.lastIndex)
      const left = voters.filter(({ id, directoryId }) => {
        const holder = this.#nodes[id]!
        return holder !== node && !alsoWithout.has(holder) && holder.disk.directoryId === directoryId
      })
      return voters.length === 0 || left.length > voters.length / 2
    })
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
    for (const arrived of node.inbox) {
      const message = this.#mutation.alterMessage?.(node.core, arrived) ?? arrived
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
      if (this.#sendsFirst(ready)) this.#sendAll(node, ready)
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
    if (ready.mustSync || ready.snapshotChunks.length > 0) this.#write(node, ready)
    node.writing = undefined
    if (!this.#sendsFirst(ready)) this.#sendAll(node, ready)
    if (ready.snapshot !== undefined) {
      this.#snapshotsInstalled++
      node.appliedIndex = ready.snapshot.index
      node.state = stateOf(ready.snapshot)
      this.#checker.onInstall(node, node.appliedIndex, node.state)
    }
    for (const entry of ready.committedEntries) this.#apply(node, entry)
    for (const { id, index } of ready.reads) this.#confirmRead(node, id, index)
    node.core.advance()
    this.#maybeAssemble(node, ready)
    this.#checker.afterEvent(node)
    if (this.#random.chance(this.#faults.compaction)) this.#compact(node)
  }

  #maybeAssemble({ core, disk }: SimulatedNode, { snapshotChunks }: Ready): void {
    const last = snapshotChunks.at(-1)
    if (last === undefined || last.offset + last.data.length < last.header.totalBytes) return
    const { index, term, membership } = last.header
    const data = Buffer.concat(disk.chunks.map((chunk) => chunk.data))
    core.snapshotAssembled(index, { index, term, membership, data })
  }

  #confirmRead(node: SimulatedNode, id: number, index: LogIndex): void {
    this.#readsConfirmed++
    this.#checker.onRead(node, node.reads.get(id)!, index)
    node.reads.delete(id)
  }

  #write(node: SimulatedNode, ready: Ready): void {
    const { disk } = node
    if (ready.snapshot !== undefined) {
      disk.log.install(ready.snapshot)
      disk.chunks = []
    }
    for (const chunk of ready.snapshotChunks) {
      if (chunk.offset === 0 && !this.#mutation.keepsStaleChunks) disk.chunks = []
      disk.chunks.push(chunk)
    }
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
    // The same number throughout, so that a mixture of two snapshots shows; nodes differ in how much of it they write.
    const data = new Uint8Array(4 * (1 + this.#random.int(10)))
    for (let at = 0; at < data.length; at += 4) new DataView(data.buffer).setInt32(at, node.state)
    const term = log.term(node.appliedIndex) as Term
    log.replaceSnapshot({ index: node.appliedIndex, term, membership: log.membershipAt(node.appliedIndex), data })
    log.compact(Math.max(0, node.appliedIndex - this.#faults.keptEntries) as LogIndex)
  }

  // ---- network ----

  #sendsFirst({ sendsFirst }: Ready): boolean {
    return (sendsFirst && this.#faults.sendsDuringWrite) || this.#mutation.sendsBeforeSync === true
  }

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

  #scheduleRead(): void {
    this.#queue.schedule(1 + this.#random.int(2 * this.#faults.readEvery), () => {
      if (!this.#isWorkloadOn) return
      this.#scheduleRead()
      const leader = this.#pickLeader()
      if (leader !== undefined) this.#read(leader)
    })
  }

  /** Any that believes that it leads; there may be several, of different terms. */
  #pickLeader(): SimulatedNode | undefined {
    const leaders = this.#nodes.filter((node) => node.isUp && node.core.role === 'leader')
    const leader = leaders.length === 0 ? undefined : this.#random.pick(leaders)
    return leader === undefined || this.#queue.now < leader.stalledUntil ? undefined : leader
  }

  #read(leader: SimulatedNode): void {
    this.#trace(7, leader.id)
    const committed = this.#checker.lastCommitted
    const outcome = leader.core.readIndex()
    if (!outcome.ok) return
    leader.reads.set(outcome.id, committed)
    if (this.#mutation.confirmsReadsAtOnce) this.#checker.onRead(leader, committed, leader.core.commitIndex)
    this.#pump(leader)
  }

  #scheduleChange(): void {
    this.#queue.schedule(1 + this.#random.int(2 * this.#faults.changeEvery), () => {
      if (!this.#isWorkloadOn) return
      this.#scheduleChange()
      const leader = this.#pickLeader()
      if (leader === undefined) return
      this.#trace(8, leader.id)
      if (this.#random.chance(0.3)) this.#handOver(leader)
      else this.#changeVoters(leader)
      this.#pump(leader)
    })
  }

  #handOver({ core }: SimulatedNode): void {
    const { id } = this.#random.pick(this.#nodes)
    if (core.transferLeadership(id) === undefined) this.#handovers++
  }

  /** Rather one voter less whose disk is gone, then one more, then one less. */
  #changeVoters({ core }: SimulatedNode): void {
    const { voters } = core.membership
    const gone = voters.find(({ id, directoryId }) => this.#nodes[id]!.disk.directoryId !== directoryId)
    const candidates = this.#nodes.filter(({ id }) => !voters.some((voter) => voter.id === id))
    if (gone !== undefined) {
      core.changeMembership({ voters: voters.filter((voter) => voter !== gone) })
    } else if (candidates.length > 0 && this.#random.chance(0.7)) {
      const { id, disk } = this.#random.pick(candidates)
      core.admit(id, disk.directoryId)
      core.changeMembership({ voters: [...voters, { id, directoryId: disk.directoryId }] })
    } else {
      const removed = this.#random.pick(voters)
      // Not down to one, which then decides all alone.
      if (voters.length > 2) core.changeMembership({ voters: voters.filter((voter) => voter !== removed) })
    }
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
      case 'wipe':
        if (random.chance(0.3)) this.#wipe(node)
        return
      case 'hint':
        // Right or wrong: whoever is told believes that the leader crashed.
        if (leader === undefined) return
        for (const each of this.#nodes) {
          if (!each.isUp || this.#queue.now < each.stalledUntil || random.chance(0.3)) continue
          each.core.forgetLeader(leader.id)
          this.#pump(each)
        }
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
    this.#restartAfter(node, time)
  }

  #restartAfter(node: SimulatedNode, time: number): void {
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
    const shuffled = this.#nodes.map((node) => ({ node, key: this.#random.float() })).sort((a, b) => a.key - b.key)
    const kept = new Set<SimulatedNode>()
    if (this.#random.chance(0.5)) {
      for (const { node } of shuffled) if (this.#mayLose(node, kept)) kept.add(node)
    }
    for (const node of kept) {
      this.#crash(node)
      node.life++ // a restart that was planned is off
    }
    const alive = this.#nodes.filter((node) => !kept.has(node))
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
      const voters = core.membership.voters.map((voter) => voter.id).join('+')
      return `${id}: ${core.role}${core.hasVote ? '' : ' without a vote'}, voters ${voters}, term ${core.term} last ${core.lastIndex} commit ${core.commitIndex} applied ${appliedIndex} uncommitted ${core.uncommittedBytes}`
    })
    throw new Error(`No convergence after the faults ended (${states.join('; ')})`)
  }

  #trace(kind: number, detail: number): void {
    this.#traceHash = (Math.imul(this.#traceHash, 31) + Math.imul(this.#queue.now, 131) + kind * 17 + detail) | 0
  }
}

function stateOf({ data }: Snapshot): number {
  if (data.length === 0) return 0
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const state = view.getInt32(0)
  for (let at = 0; at < data.length; at += 4) {
    if (data.length % 4 === 0 && view.getInt32(at) === state) continue
    throw new InvariantViolation('A snapshot is a mixture of two')
  }
  return state
}
