import { isUuid, ownCopy, type Uuid } from '../../base/index.ts'
import type { Entry, EntryType, LogIndex, Message, NodeId, SnapshotHeader, Term, Voter } from '../../raft/index.ts'
import {
  type RaftBodies,
  type RaftEntry,
  type RaftMessage,
  type RaftSnapshotHeader,
  type RaftVoter,
  RpcError,
} from '../../rpc/index.ts'

/** The message as it travels. */
export function toWire(message: Message): RaftMessage {
  const { from, fromDirectoryId, to, term } = message
  return { from, fromDirectoryId, to, term, ...bodyOf(message) }
}

/**
 * The message that `wire` is, with every field's type and range checked: the core takes it as it is. Throws `RpcError`
 * ('invalid-message').
 */
export function fromWire(wire: RaftMessage): Message {
  const envelope = {
    from: nodeId(wire.from, 'from'),
    fromDirectoryId: uuid(wire.fromDirectoryId, 'from_directory_id'),
    to: nodeId(wire.to, 'to'),
    term: natural(wire.term, 'term') as Term,
  }
  switch (wire.body) {
    case 'preVote':
    case 'vote':
      return { ...envelope, type: wire.body, ...lastOf(wire[wire.body]!), isTransfer: wire[wire.body]!.isTransfer }
    case 'preVoteAnswer':
    case 'voteAnswer':
      return { ...envelope, type: wire.body, granted: wire[wire.body]!.granted }
    case 'append':
      return { ...envelope, type: 'append', ...appendFrom(wire.append!) }
    case 'appendAnswer':
      return { ...envelope, type: 'appendAnswer', ...appendAnswerFrom(wire.appendAnswer!) }
    case 'heartbeat':
      return { ...envelope, type: 'heartbeat', ...heartbeatFrom(wire.heartbeat!) }
    case 'heartbeatAnswer':
      return { ...envelope, type: 'heartbeatAnswer', readRound: natural(wire.heartbeatAnswer!.readRound, 'read_round') }
    case 'snapshotChunk':
      return { ...envelope, type: 'snapshotChunk', ...chunkFrom(wire.snapshotChunk!) }
    case 'snapshotChunkAnswer':
      return {
        ...envelope,
        type: 'snapshotChunkAnswer',
        index: index(wire.snapshotChunkAnswer!.index, 'index'),
        nextOffset: natural(wire.snapshotChunkAnswer!.nextOffset, 'next_offset'),
      }
    case 'timeoutNow':
      return { ...envelope, type: 'timeoutNow', ...lastOf(wire.timeoutNow!) }
    case 'follow':
      return { ...envelope, type: 'follow', lastIndex: index(wire.follow!.lastIndex, 'last_index') }
    case 'leaderHint': {
      const { leader } = wire.leaderHint!
      if (leader === undefined || leader === null) throw invalid('a hint at no leader')
      return { ...envelope, type: 'leaderHint', leader: voterFrom(leader) }
    }
    default:
      throw invalid('a Raft message of a kind that this node does not know')
  }
}

// ---- to the wire ----

function bodyOf(message: Message): Omit<RaftMessage, 'from' | 'fromDirectoryId' | 'to' | 'term'> {
  switch (message.type) {
    case 'preVote':
    case 'vote':
      return { [message.type]: pick(message, ['lastIndex', 'lastTerm', 'isTransfer']) }
    case 'preVoteAnswer':
    case 'voteAnswer':
      return { [message.type]: { granted: message.granted } }
    case 'append':
      return {
        append: {
          ...pick(message, ['prevIndex', 'prevTerm', 'commitIndex']),
          entries: message.entries.map(entryToWire),
        },
      }
    case 'appendAnswer':
      return { appendAnswer: pick(message, ['index', 'rejection']) }
    case 'heartbeat':
      return { heartbeat: pick(message, ['commitIndex', 'commitTerm', 'readRound']) }
    case 'heartbeatAnswer':
      return { heartbeatAnswer: { readRound: message.readRound } }
    case 'snapshotChunk':
      return { snapshotChunk: { ...pick(message, ['offset', 'data', 'crc']), header: headerToWire(message.header) } }
    case 'snapshotChunkAnswer':
      return { snapshotChunkAnswer: pick(message, ['index', 'nextOffset']) }
    case 'timeoutNow':
      return { timeoutNow: pick(message, ['lastIndex', 'lastTerm']) }
    case 'follow':
      return { follow: { lastIndex: message.lastIndex } }
    case 'leaderHint':
      return { leaderHint: { leader: voterToWire(message.leader) } }
  }
}

const entryTypes = {
  noop: 'RAFT_ENTRY_TYPE_NOOP',
  data: 'RAFT_ENTRY_TYPE_DATA',
  config: 'RAFT_ENTRY_TYPE_CONFIG',
} as const satisfies Record<EntryType, RaftEntry['type']>

function entryToWire({ term, type, data }: Entry): RaftEntry {
  return { term, type: entryTypes[type], data }
}

function headerToWire(header: SnapshotHeader): RaftSnapshotHeader {
  const voters = header.membership.voters.map(voterToWire)
  return { ...pick(header, ['index', 'term', 'totalBytes', 'dataCrc']), voters }
}

function voterToWire({ id, directoryId, endpoint }: Voter): RaftVoter {
  return { id, directoryId, endpoint: endpoint ?? '' }
}

function pick<T extends object, Key extends keyof T>(source: T, keys: readonly Key[]): Pick<T, Key> {
  return Object.fromEntries(keys.map((key) => [key, source[key]])) as unknown as Pick<T, Key>
}

// ---- from the wire ----

function lastOf({ lastIndex, lastTerm }: { readonly lastIndex: number; readonly lastTerm: number }) {
  return { lastIndex: index(lastIndex, 'last_index'), lastTerm: natural(lastTerm, 'last_term') as Term }
}

function appendFrom(wire: RaftBodies['append']) {
  const prevIndex = index(wire.prevIndex, 'prev_index')
  return {
    prevIndex,
    prevTerm: natural(wire.prevTerm, 'prev_term') as Term,
    commitIndex: index(wire.commitIndex, 'commit_index'),
    entries: wire.entries.map((entry, i) => entryFrom(entry, prevIndex + 1 + i)),
  }
}

function entryFrom(wire: RaftEntry, at: number): Entry {
  const type = (Object.keys(entryTypes) as EntryType[]).find((each) => entryTypes[each] === wire.type)
  if (type === undefined) throw invalid('an entry of a type that this node does not know')
  // It stays longer than the message that it came in.
  return { index: index(at, 'index'), term: natural(wire.term, 'term') as Term, type, data: ownCopy(wire.data) }
}

function appendAnswerFrom({ index: at, rejection }: RaftBodies['appendAnswer']) {
  if (rejection === undefined || rejection === null) return { index: index(at, 'index'), rejection: null }
  const { hintIndex, hintTerm } = rejection
  return {
    index: index(at, 'index'),
    rejection: { hintIndex: index(hintIndex, 'hint_index'), hintTerm: natural(hintTerm, 'hint_term') as Term },
  }
}

function heartbeatFrom(wire: RaftBodies['heartbeat']) {
  return {
    commitIndex: index(wire.commitIndex, 'commit_index'),
    commitTerm: natural(wire.commitTerm, 'commit_term') as Term,
    readRound: natural(wire.readRound, 'read_round'),
  }
}

function chunkFrom(wire: RaftBodies['snapshotChunk']) {
  if (wire.header === undefined || wire.header === null) throw invalid('a chunk of no snapshot')
  const header = headerFrom(wire.header)
  const offset = natural(wire.offset, 'offset')
  if (offset + wire.data.length > header.totalBytes) throw invalid(`a chunk past the end of its snapshot: ${offset}`)
  return { header, offset, data: wire.data, crc: wire.crc }
}

function headerFrom(wire: RaftSnapshotHeader): SnapshotHeader {
  return {
    index: index(wire.index, 'index'),
    term: natural(wire.term, 'term') as Term,
    membership: { voters: wire.voters.map(voterFrom) },
    totalBytes: natural(wire.totalBytes, 'total_bytes'),
    dataCrc: wire.dataCrc,
  }
}

function voterFrom({ id, directoryId, endpoint }: RaftVoter): Voter {
  return {
    id: nodeId(id, 'id'),
    directoryId: uuid(directoryId, 'directory_id'),
    ...(endpoint === '' ? {} : { endpoint }),
  }
}

function natural(value: number, field: string): number {
  if (!Number.isSafeInteger(value) || value < 0) throw invalid(`${field} ${value}`)
  return value
}

function index(value: number, field: string): LogIndex {
  return natural(value, field) as LogIndex
}

function nodeId(value: number, field: string): NodeId {
  if (natural(value, field) > 2 ** 31 - 1) throw invalid(`${field} ${value}`)
  return value as NodeId
}

function uuid(value: string, field: string): Uuid {
  if (!isUuid(value)) throw invalid(`${field} ${value.slice(0, 40)}`)
  return value
}

function invalid(what: string): RpcError {
  return new RpcError('invalid-message', `A peer sent ${what}`)
}
