import type { Uuid } from '../../src/base/index.ts'
import {
  decodeMembership,
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
  type Voter,
} from '../../src/raft/index.ts'

/** One command of a script with what it is to print. */
export interface Step {
  /** Comments and blank lines before the command. */
  readonly preamble: string
  readonly command: string
  readonly expected: string
}

/**
 * A script is a list of steps: comment lines (`#`), a command line, `----`, and what the command prints, up to a blank line.
 */
export function parseScript(text: string): Step[] {
  const steps: Step[] = []
  const lines = text.split('\n')
  let preamble = ''
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!
    if (line === '' || line.startsWith('#')) {
      preamble += `${line}\n`
      continue
    }
    if (lines[i + 1] !== '----') throw new Error(`Line ${i + 1}: "----" is missing after "${line}"`)
    const expected: string[] = []
    for (i += 2; i < lines.length && lines[i] !== ''; i++) expected.push(lines[i]!)
    steps.push({ preamble, command: line, expected: expected.join('\n') })
    preamble = '\n'
  }
  return steps
}

export function formatScript(steps: readonly Step[], outputs: readonly string[]): string {
  return `${steps.map(({ preamble, command }, i) => `${preamble}${command}\n----\n${outputs[i]}\n`).join('')}`
}

interface Node {
  readonly id: NodeId
  directoryId: Uuid
  disk: { log: MemoryLog; hardState: HardState; chunks: SnapshotChunk[] }
  core: RaftCore
  log: RaftLog
  isUp: boolean
  inProgress: Ready | undefined
  /** What the node's random numbers all are: its election timeout is `electionTicks` plus this. */
  jitter: number
}

/**
 * A few cores whose every step a script decides. Messages that were sent wait until `deliver` or `stabilize`, except those for a
 * node that is down or cut off, which are lost at once.
 *
 *     nodes COUNT [KEY=VALUE ...]   first; keys of `RaftConfig`
 *     elect ID [ID ...]             the first becomes leader, by the votes of those named (all); prints only that
 *     campaign ID, tick ID [COUNT], propose ID TEXT ..., forget-leader ID ..., jitter ID TICKS
 *     reachable ID PEER             the way from ID to PEER is open again
 *     add-voter LEADER ID, remove-voter LEADER ID, transfer LEADER ID, read LEADER
 *     join ID                       a new node, without a vote, that knows of all others
 *     ready ID                      takes a Ready and does all that it says
 *     begin ID, finish ID           the same in two steps: a write that takes time
 *     deliver TO [FROM], drop FROM [TO], repeat TO, cut A B, heal
 *     crash ID, restart ID, compact ID INDEX [KEPT]
 *     wipe ID                       restarts a crashed node with an empty disk of another name, and so without a vote
 *     stabilize [ID ...]            ready and deliver among those named (all) until nothing moves
 *     status, progress ID, log ID, voters
 */
export class ScriptRunner {
  #nodes = new Map<number, Node>()
  #network: Message[] = []
  readonly #cut = new Set<string>()
  #config: RaftConfig = { ...defaultRaftConfig, electionTicks: 10, campaignTicks: 10, heartbeatTicks: 1 }
  #out: string[] = []

  /** Carries out one command; what it prints. */
  run(command: string): string {
    this.#out = []
    const [name, ...args] = command.split(' ') as [string, ...string[]]
    const numbers = args.map(Number)
    switch (name) {
      case 'nodes':
        this.#makeNodes(numbers[0]!, args.slice(1))
        break
      case 'jitter':
        this.#node(args[0]).jitter = numbers[1]!
        break
      case 'campaign':
        this.#node(args[0]).core.campaign()
        break
      case 'elect':
        this.#elect(this.#node(args[0]), numbers)
        break
      case 'forget-leader':
        for (const id of args) this.#forgetLeader(this.#node(id).core)
        break
      case 'reachable':
        this.#node(args[0]).core.reportReachable(this.#node(args[1]).id)
        break
      case 'tick':
        for (let i = numbers[1] ?? 1; i > 0; i--) this.#node(args[0]).core.tick()
        break
      case 'propose':
        this.#propose(this.#node(args[0]), args.slice(1))
        break
      case 'ready':
        this.#begin(this.#node(args[0]))
        this.#finish(this.#node(args[0]))
        break
      case 'begin':
        this.#begin(this.#node(args[0]))
        break
      case 'finish':
        this.#finish(this.#node(args[0]))
        break
      case 'deliver':
        this.#deliver((message) => message.to === numbers[0] && (args[1] === undefined || message.from === numbers[1]))
        break
      case 'drop':
        this.#drop((message) => message.from === numbers[0] && (args[1] === undefined || message.to === numbers[1]))
        break
      case 'repeat':
        this.#network.push(...this.#network.filter((message) => message.to === numbers[0]))
        break
      case 'add-voter':
        this.#changeVoters(this.#node(args[0]).core, (voters) => [...voters, voterOf(this.#node(args[1]))])
        break
      case 'remove-voter':
        this.#changeVoters(this.#node(args[0]).core, (voters) => voters.filter(({ id }) => id !== numbers[1]))
        break
      case 'transfer':
        this.#print(this.#node(args[0]).core.transferLeadership(numbers[1] as NodeId) ?? 'under way')
        break
      case 'read':
        this.#read(this.#node(args[0]).core)
        break
      case 'join':
        this.#makeNode(numbers[0] as NodeId, directoryOf(numbers[0]!), [])
        break
      case 'wipe':
        this.#makeNode(numbers[0] as NodeId, `${this.#node(args[0]).directoryId}'` as Uuid, [])
        break
      case 'cut':
        this.#cut.add(`${args[0]}>${args[1]}`).add(`${args[1]}>${args[0]}`)
        this.#network = this.#network.filter(({ from, to }) => !this.#cut.has(`${from}>${to}`))
        break
      case 'heal':
        this.#cut.clear()
        break
      case 'crash':
        this.#crash(this.#node(args[0]))
        break
      case 'restart':
        this.#start(this.#node(args[0]))
        break
      case 'compact':
        this.#compact(this.#node(args[0]), numbers[1] as LogIndex, numbers[2] ?? 0)
        break
      case 'stabilize':
        this.#stabilize(numbers)
        break
      case 'status':
        for (const node of this.#nodes.values()) this.#print(this.#statusOf(node))
        break
      case 'progress':
        this.#printProgress(this.#node(args[0]))
        break
      case 'voters':
        for (const { id, core } of this.#nodes.values()) this.#print(`${id}: ${votersText(core.membership)}`)
        break
      case 'log':
        this.#print(logOf(this.#node(args[0]).log))
        break
      default:
        throw new Error(`No such command: ${command}`)
    }
    return this.#out.length === 0 ? 'ok' : this.#out.join('\n')
  }

  #print(line: string): void {
    this.#out.push(line)
  }

  #node(id: string | undefined): Node {
    const node = this.#nodes.get(Number(id))
    if (node === undefined) throw new Error(`No such node: ${id}`)
    return node
  }

  #makeNodes(count: number, options: readonly string[]): void {
    this.#network = []
    this.#cut.clear()
    for (const option of options) {
      const [key, value] = option.split('=')
      this.#config = { ...this.#config, [key!]: Number(value) }
    }
    const voters = Array.from({ length: count }, (_, i) => ({ id: (i + 1) as NodeId, directoryId: directoryOf(i + 1) }))
    for (const { id, directoryId } of voters) this.#makeNode(id, directoryId, voters)
  }

  #makeNode(id: NodeId, directoryId: Uuid, voters: readonly Voter[]): void {
    const data = new Uint8Array(0)
    const bootstrap: Snapshot = { index: 0 as LogIndex, term: 0 as Term, membership: { voters }, data }
    const hardState: HardState = { term: 0 as Term, votedFor: null, votedDirectoryId: null, commitIndex: 0 as LogIndex }
    const disk = { log: new MemoryLog(bootstrap), hardState, chunks: [] }
    const node = { id, directoryId, disk, isUp: false, inProgress: undefined, jitter: 0 } as unknown as Node
    this.#nodes.set(id, node)
    this.#start(node)
  }

  #start(node: Node): void {
    const { id, directoryId } = node
    const { log, hardState, chunks } = node.disk
    node.log = new RaftLog(log, hardState.commitIndex)
    const random = { int: () => node.jitter }
    const last = chunks.at(-1)
    const partialSnapshot = last && { header: last.header, nextOffset: last.offset + last.data.length }
    const config = this.#config
    node.core = new RaftCore({ id, directoryId, config, log: node.log, hardState, partialSnapshot, random })
    node.core.setContacts([...this.#nodes.keys()] as NodeId[])
    node.isUp = true
  }

  #changeVoters(core: RaftCore, next: (voters: readonly Voter[]) => readonly Voter[]): void {
    const outcome = core.changeMembership({ voters: next(core.membership.voters) })
    if (!outcome.ok) this.#print(`refused: ${outcome.reason}`)
  }

  #read(core: RaftCore): void {
    const outcome = core.readIndex()
    this.#print(outcome.ok ? `read ${outcome.id}` : `refused: ${outcome.reason}`)
  }

  #forgetLeader(core: RaftCore): void {
    if (core.leaderId !== null) core.forgetLeader(core.leaderId)
  }

  #elect(node: Node, voters: readonly number[]): void {
    for (const id of voters) this.#forgetLeader(this.#node(String(id)).core)
    node.core.campaign()
    this.#stabilize(voters.length > 1 ? voters : [])
    this.#out = [`${node.id} is ${node.core.role} of term ${node.core.term}`]
  }

  /** What was not durable is gone, and so are messages to the node. */
  #crash(node: Node): void {
    node.isUp = false
    node.inProgress = undefined
    this.#network = this.#network.filter(({ to }) => to !== node.id)
  }

  #propose({ core }: Node, texts: readonly string[]): void {
    const outcome = core.propose(texts.map((text) => ({ type: 'data', data: Buffer.from(text) })))
    if (!outcome.ok) this.#print(`refused: ${outcome.reason}`)
  }

  /** Takes a Ready; nothing of it is durable yet. */
  #begin(node: Node): void {
    node.inProgress = node.core.ready()
    if (node.inProgress === undefined) this.#print(`${node.id} has nothing to do`)
  }

  #finish(node: Node): void {
    const ready = node.inProgress
    if (ready === undefined) return
    node.inProgress = undefined
    const { disk, id } = node
    if (ready.softState !== undefined) {
      this.#print(`${id} is ${ready.softState.role}, leader ${ready.softState.leaderId ?? 'unknown'}`)
    }
    if (ready.membership !== undefined) this.#print(`${id} knows voters ${votersText(ready.membership)}`)
    if (ready.snapshot !== undefined) {
      disk.log.install(ready.snapshot)
      disk.chunks = []
      this.#print(`${id} installs snapshot ${ready.snapshot.index}/${ready.snapshot.term}`)
    }
    for (const chunk of ready.snapshotChunks) {
      if (chunk.offset === 0) disk.chunks = []
      disk.chunks.push(chunk)
      this.#print(
        `${id} keeps bytes ${chunk.offset}-${chunk.offset + chunk.data.length} of snapshot ${chunk.header.index}`,
      )
    }
    if (ready.entriesToPersist.length > 0) {
      disk.log.append(ready.entriesToPersist)
      this.#print(`${id} writes ${entriesText(ready.entriesToPersist)}`)
    }
    if (ready.hardState !== undefined) {
      const { term, votedFor, commitIndex } = ready.hardState
      disk.hardState = ready.hardState
      this.#print(`${id} writes term ${term} vote ${votedFor ?? '-'} commit ${commitIndex}`)
    }
    for (const message of ready.messages) {
      const isLost = this.#cut.has(`${id}>${message.to}`) || !this.#node(String(message.to)).isUp
      this.#print(messageText(message) + (isLost ? ' (lost)' : ''))
      if (!isLost) this.#network.push(message)
    }
    if (ready.committedEntries.length > 0) this.#print(`${id} applies ${entriesText(ready.committedEntries)}`)
    for (const { id: read, index } of ready.reads) this.#print(`${id} may answer read ${read} when it applied ${index}`)
    node.core.advance()
    this.#maybeAssemble(node, ready)
  }

  #maybeAssemble({ disk, core }: Node, { snapshotChunks }: Ready): void {
    const last = snapshotChunks.at(-1)
    if (last === undefined || last.offset + last.data.length < last.header.totalBytes) return
    const { index, term, membership } = last.header
    const data = Buffer.concat(disk.chunks.map((chunk) => chunk.data))
    core.snapshotAssembled(index, { index, term, membership, data })
  }

  #deliver(matches: (message: Message) => boolean): number {
    const delivered = this.#network.filter(matches)
    this.#network = this.#network.filter((message) => !matches(message))
    for (const message of delivered) {
      this.#node(String(message.to)).core.step(message)
    }
    return delivered.length
  }

  #drop(matches: (message: Message) => boolean): void {
    for (const message of this.#network.filter(matches)) this.#print(`dropped ${messageText(message)}`)
    this.#network = this.#network.filter((message) => !matches(message))
  }

  /** Readies and deliveries among `ids` (all, when none is given) until nothing moves. */
  #stabilize(ids: readonly number[]): void {
    const nodes = [...this.#nodes.values()].filter(({ id, isUp }) => isUp && (ids.length === 0 || ids.includes(id)))
    for (let isMoving = true; isMoving; ) {
      isMoving = false
      for (const node of nodes) {
        node.inProgress = node.core.ready()
        isMoving ||= node.inProgress !== undefined
        this.#finish(node)
      }
      const involved = new Set(nodes.map(({ id }) => id))
      if (this.#deliver(({ from, to }) => involved.has(to) && (ids.length === 0 || involved.has(from))) > 0)
        isMoving = true
    }
  }

  #compact({ disk }: Node, index: LogIndex, kept: number): void {
    const term = disk.log.term(index) as Term
    const membership = disk.log.membershipAt(index)
    disk.log.replaceSnapshot({ index, term, membership, data: Buffer.from(`state ${index}`) })
    disk.log.compact((index - kept) as LogIndex)
  }

  #statusOf({ id, core, log, isUp }: Node): string {
    if (!isUp) return `${id} down`
    const { role, term, votedFor, leaderId, commitIndex } = core
    return `${id} ${role} term ${term} vote ${votedFor ?? '-'} leader ${leaderId ?? '-'} last ${log.lastIndex} commit ${commitIndex}`
  }

  #printProgress({ core }: Node): void {
    for (const id of this.#nodes.keys()) {
      const progress = core.progressOf(id as NodeId)
      if (progress === undefined || id === core.id) continue
      const { state, matchIndex, nextIndex, isPaused, inflights } = progress
      const flags = `${isPaused ? ' paused' : ''}${inflights.count > 0 ? ` inflight ${inflights.count}` : ''}`
      this.#print(`${id} ${state} match ${matchIndex} next ${nextIndex}${flags}`)
    }
  }
}

function logOf(log: RaftLog): string {
  const entries = log.entries(log.firstIndex, log.lastIndex, Number.POSITIVE_INFINITY)
  const start = log.snapshot.index > 0 ? `snapshot ${log.snapshot.index}/${log.snapshot.term} ` : ''
  return `${start}${entriesText(entries)}`
}

function entriesText(entries: readonly Entry[]): string {
  const texts = entries.map(({ index, term, type, data }) => {
    if (type === 'config') return `${index}/${term} voters ${votersText(decodeMembership(data))}`
    return `${index}/${term} ${type === 'noop' ? 'noop' : Buffer.from(data).toString()}`
  })
  return `[${texts.join(', ')}]`
}

function directoryOf(id: number): Uuid {
  return `disk${id}` as Uuid
}

function voterOf({ id, directoryId }: Node): Voter {
  return { id, directoryId }
}

/** With the disk where it isn't the one that the node began with. */
function votersText({ voters }: Membership): string {
  const texts = voters.map(({ id, directoryId }) =>
    directoryId === directoryOf(id) ? `${id}` : `${id}@${directoryId}`,
  )
  return texts.length === 0 ? 'none' : texts.join('+')
}

function messageText(message: Message): string {
  const head = `${message.from}->${message.to} ${message.type} term ${message.term}`
  switch (message.type) {
    case 'preVote':
    case 'vote':
    case 'timeoutNow':
      return `${head} last ${message.lastIndex}/${message.lastTerm}${message.type === 'vote' && message.isTransfer ? ' transfer' : ''}`
    case 'follow':
      return `${head} last ${message.lastIndex}`
    case 'preVoteAnswer':
    case 'voteAnswer':
      return `${head} ${message.granted ? 'granted' : 'refused'}`
    case 'append':
      return `${head} after ${message.prevIndex}/${message.prevTerm} ${entriesText(message.entries)} commit ${message.commitIndex}`
    case 'appendAnswer': {
      const { rejection } = message
      if (rejection === null) return `${head} has ${message.index}`
      return `${head} lacks ${message.index}, try ${rejection.hintIndex}/${rejection.hintTerm}`
    }
    case 'leaderHint':
      return `${head} ${message.leader.id}`
    case 'heartbeat':
      return `${head} commit ${message.commitIndex}/${message.commitTerm}${roundText(message)}`
    case 'heartbeatAnswer':
      return `${head}${roundText(message)}`
    case 'snapshotChunk': {
      const { header, offset, data } = message
      return `${head} ${header.index}/${header.term} bytes ${offset}-${offset + data.length} of ${header.totalBytes}`
    }
    case 'snapshotChunkAnswer':
      return `${head} ${message.index} has bytes 0-${message.nextOffset}`
  }
}

function roundText({ readRound }: { readonly readRound: number }): string {
  return readRound === 0 ? '' : ` round ${readRound}`
}
