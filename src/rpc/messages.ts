// The types of `proto/node.proto`, as decoding gives them: numbers for all integers, Buffers for bytes, defaults where nothing was
// sent. In a `oneof` one member is there; which, says the field of the oneof's name.

export interface PeerMessage {
  readonly content?: 'hello' | 'ping' | 'pong' | 'raft'
  readonly hello?: Hello
  readonly ping?: Empty
  readonly pong?: Empty
  readonly raft?: RaftMessage
}

export type Empty = Readonly<Record<string, never>>

export interface Hello {
  readonly protocolVersion: number
  readonly clusterId: string
  readonly nodeId: number
  readonly directoryId: string
  readonly incarnationId: string
  readonly toNodeId: number
}

export interface RaftMessage {
  readonly from: number
  readonly fromDirectoryId: string
  readonly to: number
  readonly term: number
  readonly body?: keyof RaftBodies
  readonly preVote?: RaftBodies['preVote']
  readonly vote?: RaftBodies['vote']
  readonly preVoteAnswer?: RaftBodies['preVoteAnswer']
  readonly voteAnswer?: RaftBodies['voteAnswer']
  readonly append?: RaftBodies['append']
  readonly appendAnswer?: RaftBodies['appendAnswer']
  readonly heartbeat?: RaftBodies['heartbeat']
  readonly heartbeatAnswer?: RaftBodies['heartbeatAnswer']
  readonly snapshotChunk?: RaftBodies['snapshotChunk']
  readonly snapshotChunkAnswer?: RaftBodies['snapshotChunkAnswer']
  readonly timeoutNow?: RaftBodies['timeoutNow']
  readonly follow?: RaftBodies['follow']
  readonly leaderHint?: RaftBodies['leaderHint']
}

export interface RaftBodies {
  readonly preVote: RaftVote
  readonly vote: RaftVote
  readonly preVoteAnswer: { readonly granted: boolean }
  readonly voteAnswer: { readonly granted: boolean }
  readonly append: {
    readonly prevIndex: number
    readonly prevTerm: number
    readonly commitIndex: number
    readonly entries: readonly RaftEntry[]
  }
  readonly appendAnswer: {
    readonly index: number
    readonly rejection?: { readonly hintIndex: number; readonly hintTerm: number } | null
  }
  readonly heartbeat: { readonly commitIndex: number; readonly commitTerm: number; readonly readRound: number }
  readonly heartbeatAnswer: { readonly readRound: number }
  readonly snapshotChunk: {
    readonly header?: RaftSnapshotHeader | null
    readonly offset: number
    readonly data: Uint8Array
    readonly crc: number
  }
  readonly snapshotChunkAnswer: { readonly index: number; readonly nextOffset: number }
  readonly timeoutNow: { readonly lastIndex: number; readonly lastTerm: number }
  readonly follow: { readonly lastIndex: number }
  readonly leaderHint: { readonly leader?: RaftVoter | null }
}

export interface RaftVote {
  readonly lastIndex: number
  readonly lastTerm: number
  readonly isTransfer: boolean
}

export interface RaftEntry {
  readonly term: number
  readonly type: RaftEntryType
  readonly data: Uint8Array
}

export type RaftEntryType =
  | 'RAFT_ENTRY_TYPE_UNKNOWN'
  | 'RAFT_ENTRY_TYPE_NOOP'
  | 'RAFT_ENTRY_TYPE_DATA'
  | 'RAFT_ENTRY_TYPE_CONFIG'

export interface RaftSnapshotHeader {
  readonly index: number
  readonly term: number
  readonly voters: readonly RaftVoter[]
  readonly totalBytes: number
  readonly dataCrc: number
}

export interface RaftVoter {
  readonly id: number
  readonly directoryId: string
  readonly endpoint: string
}

export interface DescribeRequest {
  readonly clusterId: string
  readonly nodeId?: number
}

export interface NodeDescription {
  readonly protocolVersion: number
  readonly clusterId: string
  readonly nodeId: number
  readonly directoryId: string
  readonly incarnationId: string
  readonly configuredVoters: readonly RaftVoter[]
  readonly bootstrapServers: readonly string[]
  readonly voters: readonly RaftVoter[]
  readonly leaderId?: number
  readonly term: number
}

export interface ControllerRequest {
  readonly kind: string
  readonly clusterId: string
  readonly brokerId: number
  readonly body: Uint8Array
}

export interface ControllerAnswer {
  readonly index: number
  readonly body: Uint8Array
  readonly refusal?: ControllerRefusal | null
}

export interface ControllerRefusal {
  readonly reason: 'CONTROLLER_REFUSAL_REASON_NOT_CONTROLLER' | 'CONTROLLER_REFUSAL_REASON_OVERLOADED'
  readonly mayBeStored: boolean
  readonly controllerId?: number
}

/** Bytes of one message type, both ways. */
export interface MessageCodec<Message> {
  encode(message: Message): Buffer
  /** Unknown fields are left out. Throws `RpcError` ('invalid-message') for what is no such message. */
  decode(bytes: Buffer): Message
}

export interface NodeMessages {
  readonly peerMessage: MessageCodec<PeerMessage>
  readonly describeRequest: MessageCodec<DescribeRequest>
  readonly nodeDescription: MessageCodec<NodeDescription>
  readonly controllerRequest: MessageCodec<ControllerRequest>
  readonly controllerAnswer: MessageCodec<ControllerAnswer>
}
