import { crc32 } from 'node:zlib'
import { assert, type Uuid } from '../../base/index.ts'
import type { RaftLog } from './log.ts'
import { hasVoter } from './membership.ts'
import { Inflights, Progress } from './progress.ts'
import { majority } from './quorum.ts'
import type {
  AppendAnswerMessage,
  LogIndex,
  Message,
  NodeId,
  RaftConfig,
  Snapshot,
  SnapshotChunkAnswerMessage,
  SnapshotHeader,
  Term,
  Voter,
} from './types.ts'

/** A message before the node adds who sends it; `term` is the sender's own unless given. */
export type Draft<T = Message> = T extends Message
  ? Omit<T, 'from' | 'fromDirectoryId' | 'to' | 'term'> & { readonly term?: Term }
  : never

export interface FollowersOptions {
  /** The leader's own. */
  readonly id: NodeId
  readonly directoryId: Uuid
  readonly config: RaftConfig
  readonly log: RaftLog
  /** Since the start of the node. */
  readonly ticks: () => number
  /** The round of reads that a heartbeat asks to confirm. */
  readonly readRound: () => number
  readonly send: (to: NodeId, draft: Draft) => void
}

/** A node without a vote that isn't heard for so many election timeouts isn't sent anything any more. */
const observerTimeouts = 4

/**
 * What a leader knows of everyone who follows, with a vote or without, itself included, and what it sends them: entries, the
 * snapshot where those are gone, and heartbeats. Empty in other roles. Decides nothing: who leads, what is committed and who is
 * admitted is the node's.
 */
export class Followers {
  readonly #options: FollowersOptions
  readonly #log: RaftLog
  readonly #progress = new Map<NodeId, Progress>()
  #sentSnapshot: { readonly snapshot: Snapshot; readonly header: SnapshotHeader } | undefined

  constructor(options: FollowersOptions) {
    this.#options = options
    this.#log = options.log
  }

  get all(): ReadonlyMap<NodeId, Progress> {
    return this.#progress
  }

  get(id: NodeId): Progress | undefined {
    return this.#progress.get(id)
  }

  /** Undefined while another disk answers for it, or none. */
  ofVoter({ id, directoryId }: Voter): Progress | undefined {
    const progress = this.#progress.get(id)
    return progress?.directoryId === directoryId ? progress : undefined
  }

  /** Somebody of whom nothing is known; takes the place of another disk of `id`. */
  add(id: NodeId, directoryId: Uuid, nextIndex: LogIndex): Progress {
    const { config, ticks } = this.#options
    const inflights = new Inflights(config.maxInflightCount, config.maxInflightBytes)
    const progress = new Progress(directoryId, nextIndex, ticks(), inflights)
    this.#progress.set(id, progress)
    return progress
  }

  clear(): void {
    this.#progress.clear()
  }

  isHeard(progress: Progress): boolean {
    return this.#options.ticks() - progress.lastContactTick < this.#options.config.electionTicks
  }

  isSelf({ id, directoryId }: Voter): boolean {
    return id === this.#options.id && directoryId === this.#options.directoryId
  }

  /** Whether a majority of the voters is heard. */
  get hasQuorumContact(): boolean {
    const { voters } = this.#log.membership
    let heard = 0
    for (const voter of voters) {
      const progress = this.ofVoter(voter)
      if (this.isSelf(voter) || (progress !== undefined && this.isHeard(progress))) heard++
    }
    return heard >= majority(voters.length)
  }

  /** Of each voter, what it is known to have. */
  get matchIndexes(): LogIndex[] {
    return this.#log.membership.voters.map((voter) => this.ofVoter(voter)?.matchIndex ?? (0 as LogIndex))
  }

  /** The voter to hand over to: heard, and with most of the log. Undefined when there is none. */
  get bestSuccessor(): NodeId | undefined {
    let best: Progress | undefined
    let bestId: NodeId | undefined
    for (const voter of this.#log.membership.voters) {
      const progress = this.ofVoter(voter)
      if (voter.id === this.#options.id || progress === undefined || !this.isHeard(progress)) continue
      if (best !== undefined && progress.matchIndex <= best.matchIndex) continue
      best = progress
      bestId = voter.id
    }
    return bestId
  }

  // ---- heartbeats ----

  /** To the voters. */
  sendHeartbeats(): void {
    for (const { id } of this.#log.membership.voters) {
      const progress = this.#progress.get(id)
      if (id !== this.#options.id && progress !== undefined) this.sendHeartbeat(id, progress)
    }
  }

  /** To everyone else; who has been silent for long is forgotten. */
  sendObserversHeartbeats(): void {
    const { id, config, ticks } = this.#options
    const { membership } = this.#log
    const silence = observerTimeouts * config.electionTicks
    for (const [follower, progress] of this.#progress) {
      if (follower === id || hasVoter(membership, follower, progress.directoryId)) continue
      const isVoterId = membership.voters.some((voter) => voter.id === follower)
      if (ticks() - progress.lastContactTick >= silence && !isVoterId) this.#progress.delete(follower)
      else this.sendHeartbeat(follower, progress)
    }
  }

  sendHeartbeatToAll(): void {
    for (const [follower, progress] of this.#progress) {
      if (follower !== this.#options.id) this.sendHeartbeat(follower, progress)
    }
  }

  sendHeartbeat(to: NodeId, progress: Progress): void {
    const { send } = this.#options
    const readRound = this.#options.readRound()
    const commitIndex = Math.min(progress.matchIndex, this.#log.commitIndex) as LogIndex
    const commitTerm = this.#log.term(commitIndex)
    if (typeof commitTerm === 'number') send(to, { type: 'heartbeat', commitIndex, commitTerm, readRound })
    else send(to, { type: 'heartbeat', commitIndex: 0 as LogIndex, commitTerm: 0 as Term, readRound })
  }

  // ---- entries ----

  /** New entries, and a new commit index, to all. */
  broadcast(): void {
    for (const [follower, progress] of this.#progress) {
      if (follower === this.#options.id) continue
      this.#maybeSendAppend(follower, progress, true)
      this.sendAppends(follower, progress)
    }
  }

  sendAppends(to: NodeId, progress: Progress): void {
    while (this.#maybeSendAppend(to, progress, false)) {}
  }

  /** One append (or the snapshot, when what must be sent is gone). False when nothing was sent. */
  #maybeSendAppend(to: NodeId, progress: Progress, evenIfEmpty: boolean): boolean {
    if (progress.isPaused || progress.state === 'snapshot') return false
    const prevIndex = (progress.nextIndex - 1) as LogIndex
    const prevTerm = this.#log.term(prevIndex)
    if (typeof prevTerm !== 'number') {
      assert(prevTerm === 'compacted', 'a leader sends from within its log')
      return this.#sendSnapshot(to, progress)
    }
    const isThrottled = progress.state === 'replicate' && progress.inflights.isFull
    const entries = isThrottled
      ? []
      : this.#log.entries(progress.nextIndex, this.#log.lastIndex, this.#options.config.maxBytesPerMessage)
    if (entries.length === 0 && !evenIfEmpty) return false
    let bytes = 0
    for (const { data } of entries) bytes += data.length
    progress.sent(entries.length, bytes)
    this.#options.send(to, { type: 'append', prevIndex, prevTerm, entries, commitIndex: this.#log.commitIndex })
    return true
  }

  onRejected({ from, index, rejection }: AppendAnswerMessage, progress: Progress): void {
    assert(rejection !== null, 'a refusal says where the logs may agree')
    let { hintIndex } = rejection
    if (rejection.hintTerm !== 0) hintIndex = this.#log.findConflictByTerm(hintIndex, rejection.hintTerm).index
    if (!progress.maybeDecreaseTo(index, hintIndex)) return
    if (progress.state === 'replicate') progress.becomeProbe()
    // It lacks what it once said it has. Asking again at once would go on for ever; its heartbeats' answers will ask.
    else if (progress.nextIndex > index) return
    this.#maybeSendAppend(from, progress, true)
  }

  /** All up to `index` is there. False when that is no news. */
  onAccepted({ index }: AppendAnswerMessage, progress: Progress): boolean {
    assert(index <= this.#log.lastIndex, 'a follower accepts only what the leader has')
    const isNews = progress.maybeUpdate(index)
    this.#noteCaughtUp(progress)
    if (!isNews && !(progress.state === 'probe' && progress.matchIndex === index)) return false
    if (progress.state === 'probe') progress.becomeReplicate()
    else if (progress.state === 'replicate') progress.inflights.freeTo(index)
    else if (this.#needsNoMoreOf(progress)) progress.becomeReplicate()
    return true
  }

  /** It answered a heartbeat, and is sent what it lacks. */
  onHeartbeatAnswered(from: NodeId, progress: Progress): void {
    this.#noteCaughtUp(progress)
    // Also with nothing to send: when every message in flight was lost, the empty one is refused, and that repairs it.
    if (progress.matchIndex < this.#log.lastIndex || progress.state === 'probe') {
      this.#maybeSendAppend(from, progress, true)
    }
  }

  #noteCaughtUp(progress: Progress): void {
    if (progress.matchIndex === this.#log.lastIndex) progress.lastCaughtUpTick = this.#options.ticks()
  }

  /** The transport knows that what was sent to `follower` did not arrive. */
  reportUnreachable(follower: NodeId): void {
    const progress = this.#progress.get(follower)
    if (progress?.state === 'replicate') progress.becomeProbe()
  }

  // ---- the snapshot ----

  #sendSnapshot(to: NodeId, progress: Progress): boolean {
    // To one that doesn't answer it would only be lost; its next heartbeat answer brings us back here.
    if (!this.isHeard(progress)) return false
    const { snapshot } = this.#log
    assert(snapshot.index > 0, 'what is compacted is in a snapshot')
    if (this.#sentSnapshot?.snapshot !== snapshot) this.#sentSnapshot = { snapshot, header: headerOf(snapshot) }
    progress.becomeSnapshot({ ...this.#sentSnapshot, offset: 0 })
    this.#sendChunk(to, progress)
    return true
  }

  #sendChunk(to: NodeId, progress: Progress): void {
    const { transfer } = progress
    const { config, ticks, send } = this.#options
    assert(transfer !== undefined, 'a chunk is of a snapshot on its way')
    const { header, offset, snapshot } = transfer
    const data = snapshot.data.subarray(offset, offset + config.maxSnapshotChunkBytes)
    progress.chunkSentTick = ticks()
    send(to, { type: 'snapshotChunk', header, offset, data, crc: crc32(data) })
  }

  /** Chunks that should have been answered by now, to who is heard. */
  sendOverdueChunks(): void {
    for (const [follower, progress] of this.#progress) {
      const isOverdue = this.#options.ticks() - progress.chunkSentTick >= this.#options.config.snapshotRetryTicks
      if (progress.state === 'snapshot' && isOverdue && this.isHeard(progress)) this.#sendChunk(follower, progress)
    }
  }

  onChunkAnswered({ from, index, nextOffset }: SnapshotChunkAnswerMessage, progress: Progress): void {
    const { transfer } = progress
    if (transfer === undefined || transfer.header.index !== index) return
    // Where it is already: a copy, which must not start a second stream, or a damaged chunk, which the timer repeats.
    if (nextOffset === transfer.offset || nextOffset >= transfer.header.totalBytes) return
    transfer.offset = nextOffset
    this.#sendChunk(from, progress)
  }

  /** The transport knows that a chunk for `follower` did not arrive. */
  reportSnapshotFailed(follower: NodeId): void {
    const progress = this.#progress.get(follower)
    // Sent again with a tick, when the follower is heard by then.
    if (progress?.state !== 'snapshot') return
    progress.chunkSentTick = this.#options.ticks() - this.#options.config.snapshotRetryTicks
  }

  /** The snapshot that is on its way is there, or the log will do instead. */
  #needsNoMoreOf({ matchIndex, transfer }: Progress): boolean {
    return matchIndex >= (transfer?.header.index ?? 0) || matchIndex + 1 >= this.#log.firstIndex
  }
}

function headerOf({ index, term, membership, data }: Snapshot): SnapshotHeader {
  return { index, term, membership, totalBytes: data.length, dataCrc: crc32(data) }
}
