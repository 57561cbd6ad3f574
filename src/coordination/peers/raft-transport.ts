import { addressText } from '../../base/index.ts'
import type { Clock, Random, Timers } from '../../platform/index.ts'
import type { Membership, Message, NodeId, RaftReceiver, RaftTransport, Voter } from '../../raft/index.ts'
import type { NodeMessages, RaftMessage, RpcError, RpcNetwork, RpcTarget, StreamMethod } from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { AcceptedStreams } from './accepted-streams.ts'
import { helloTo, type NodeIdentity } from './identity.ts'
import { PeerLink } from './peer-link.ts'
import { fromWire, toWire } from './raft-codec.ts'

export interface PeerTransportOptions {
  readonly network: RpcNetwork
  readonly messages: NodeMessages
  readonly platform: { readonly clock: Clock; readonly timers: Timers; readonly random: Random }
  readonly logger: Logger
  readonly identity: () => NodeIdentity
  /** Where the settings say that a node is. It comes before what the membership says: who moves nodes changes their settings. */
  readonly configured: ReadonlyMap<number, RpcTarget>
  /** Streams that others opened: the way to who can't be called. */
  readonly accepted: AcceptedStreams
}

/** Who wants to know which nodes live. */
export interface PeerListener {
  onConnected(node: NodeId): void
  /** Its process has ended, as far as can be seen. Once, until it is connected again. */
  onCrashed(node: NodeId): void
}

/** What is known of a peer's life. */
export interface PeerSign {
  readonly id: NodeId
  /** When it was last heard on a stream either way, of the monotonic clock. */
  readonly lastHeardMs: number
  readonly isConnected: boolean
}

/** The links to one peer: Raft's messages, and apart from them its snapshots, from the first one on. */
interface Peer {
  readonly target: RpcTarget
  readonly converse: PeerLink
  snapshots: PeerLink | undefined
  /** Attempts that failed since the link was open last. */
  failures: number
}

/** So many attempts at one address, then as many at the next that is known of the same peer: twice refused is a process that ended. */
const attemptsPerAddress = 4

/** Reasons that are told while a link is not open: a peer may have ever new ones. */
const maxToldReasons = 8

/** What differs between the two streams to a peer. */
interface LinkEvents {
  onOpen(): void
  onDown(error: RpcError): void
  onCrashed(): void
}

/** Raft's messages over streams between nodes. */
export class PeerTransport implements RaftTransport {
  readonly #options: PeerTransportOptions
  readonly #peers = new Map<NodeId, Peer>()
  /** Where nodes are that another named as the leader, or that were found where the settings have controllers. */
  readonly #learned = new Map<NodeId, RpcTarget>()
  /** Where the membership says that voters are. */
  readonly #inMembership = new Map<NodeId, RpcTarget>()
  readonly #ping: Uint8Array
  readonly #listeners: PeerListener[] = []
  /** Why there is no way to a peer now, for people. */
  readonly #faults = new Map<NodeId, string>()
  #receiver: RaftReceiver | undefined

  constructor(options: PeerTransportOptions) {
    this.#options = options
    this.#ping = options.messages.peerMessage.encode({ ping: {} })
  }

  onPeers(listener: PeerListener): void {
    this.#listeners.push(listener)
  }

  /** The peers that are not connected, each with the reason, for people. */
  get unreached(): ReadonlyMap<NodeId, string> {
    return this.#faults
  }

  /** The peers that were heard since this process began. */
  get signs(): PeerSign[] {
    return [...this.#peers].flatMap(([id, { converse }]) => {
      const times = [converse.lastHeardMs, this.#options.accepted.lastHeardMs(id)].filter((ms) => ms !== undefined)
      return times.length === 0 ? [] : [{ id, lastHeardMs: Math.max(...times), isConnected: converse.isOpen }]
    })
  }

  start(receiver: RaftReceiver): void {
    this.#receiver = receiver
    for (const [id, target] of this.#options.configured) this.#connect(id as NodeId, target)
    for (const [id, target] of this.#learned) this.#connect(id, target)
  }

  setMembership({ voters }: Membership): void {
    const before = [...this.#inMembership.keys()]
    this.#inMembership.clear()
    for (const { id, endpoint } of voters) {
      const target = endpoint === undefined ? undefined : parseEndpoint(endpoint)
      if (target !== undefined) this.#inMembership.set(id, target)
    }
    // Who was taken out of it is not called any more; it calls, if it follows on.
    for (const id of before) if (!this.#inMembership.has(id)) this.#learned.delete(id)
    for (const [id, peer] of this.#peers) {
      if (this.#targetsOf(id).length === 0) this.#disconnect(id, peer)
    }
    for (const id of this.#inMembership.keys()) this.#connect(id, this.#targetsOf(id)[0]!)
  }

  learn({ id, endpoint }: Voter): void {
    const target = endpoint === undefined ? undefined : parseEndpoint(endpoint)
    if (target === undefined || this.#options.configured.has(id)) return
    this.#learned.set(id, target)
    if (!this.#peers.has(id)) this.#connect(id, target)
  }

  /** Where a node is called, or would be; undefined when nobody said where it is. */
  targetOf(id: NodeId): RpcTarget | undefined {
    return this.#peers.get(id)?.target ?? this.#targetsOf(id)[0]
  }

  /** All that is known, the best first. */
  #targetsOf(id: NodeId): readonly RpcTarget[] {
    const configured = this.#options.configured.get(id)
    if (configured !== undefined) return [configured]
    return [this.#inMembership.get(id), this.#learned.get(id)].filter((target) => target !== undefined)
  }

  /** A message of a stream that was opened to this node. Throws `RpcError` for what makes no sense. */
  receive(message: RaftMessage): void {
    this.#receiver?.onMessage(fromWire(message))
  }

  send(message: Message): void {
    const bytes = this.#options.messages.peerMessage.encode({ raft: toWire(message) })
    const peer = this.#peers.get(message.to)
    // One that can't be called, as it has moved, may have called: a snapshot goes the same way then.
    if (peer === undefined || (!peer.converse.isOpen && this.#options.accepted.isOpenTo(message.to))) {
      if (!this.#options.accepted.send(message.to, bytes)) this.#tellUnreachable(message)
    } else if (message.type === 'snapshotChunk') {
      this.#snapshotsOf(message.to, peer).send(bytes)
    } else {
      peer.converse.send(bytes)
    }
  }

  stop(): void {
    this.#receiver = undefined
    for (const [id, peer] of this.#peers) this.#disconnect(id, peer)
  }

  #tellUnreachable({ to, type }: Message): void {
    if (type === 'snapshotChunk') this.#receiver?.onSnapshotFailed(to)
    else this.#receiver?.onUnreachable(to)
  }

  /** Where a way to it is open, that is kept: it leads to that node, whatever its address. */
  #connect(id: NodeId, target: RpcTarget): void {
    if (id === this.#options.identity().nodeId || this.#receiver === undefined) return
    const present = this.#peers.get(id)
    if (present !== undefined && (present.converse.isOpen || isSame(present.target, target))) return
    if (present !== undefined) this.#disconnect(id, present)
    const converse = this.#link(id, target, 'Converse', {
      onOpen: () => {
        peer.failures = 0
        this.#faults.delete(id)
        this.#receiver?.onReachable(id)
        for (const listener of this.#listeners) listener.onConnected(id)
      },
      onDown: ({ message }) => {
        this.#faults.set(id, message)
        this.#receiver?.onUnreachable(id)
        if (++peer.failures % attemptsPerAddress === 0) this.#tryNextAddress(id, peer)
      },
      onCrashed: () => {
        this.#receiver?.onCrashed(id)
        for (const listener of this.#listeners) listener.onCrashed(id)
      },
    })
    const peer: Peer = { target, converse, snapshots: undefined, failures: 0 }
    this.#peers.set(id, peer)
    converse.start()
  }

  #tryNextAddress(id: NodeId, { target }: Peer): void {
    const targets = this.#targetsOf(id)
    const at = targets.findIndex((each) => isSame(each, target))
    const next = targets[(at + 1) % targets.length]
    if (next !== undefined) this.#connect(id, next)
  }

  #disconnect(id: NodeId, { converse, snapshots }: Peer): void {
    converse.stop()
    snapshots?.stop()
    this.#peers.delete(id)
    this.#faults.delete(id)
  }

  #snapshotsOf(id: NodeId, peer: Peer): PeerLink {
    if (peer.snapshots === undefined) {
      peer.snapshots = this.#link(id, peer.target, 'SendSnapshot', {
        onOpen() {},
        onDown: () => this.#receiver?.onSnapshotFailed(id),
        onCrashed() {}, // the other stream tells
      })
      peer.snapshots.start()
    }
    return peer.snapshots
  }

  #link(id: NodeId, target: RpcTarget, method: StreamMethod, events: LinkEvents): PeerLink {
    const { network, messages, platform, identity, logger } = this.#options
    const log = logger.child({ peer: id, address: addressText(target) })
    /** What was told since the link was open, without numbers that differ from attempt to attempt. */
    const told = new Set<string>()
    return new PeerLink({
      network,
      target,
      method,
      platform,
      hello: () => messages.peerMessage.encode({ hello: helloTo(id, identity()) }),
      ping: this.#ping,
      listener: {
        onOpen: () => {
          told.clear()
          events.onOpen()
          log.info({ stream: method }, 'peer connected')
        },
        onMessage: (bytes) => this.#onAnswer(bytes, log),
        onDown: (error) => {
          const what = error.message.replace(/\d+/g, '')
          // That its process has ended says nothing new; that it is back, and refuses this node, does.
          const isNews = told.size === 0 || (error.reason !== 'connection-refused' && !told.has(what))
          if (isNews && told.size < maxToldReasons) {
            told.add(what)
            log.warn({ stream: method, reason: error.message }, 'peer not connected')
          }
          events.onDown(error)
        },
        onCrashed: () => events.onCrashed(),
      },
    })
  }

  /** A peer that has no link of its own to this node answers on this one's. */
  #onAnswer(bytes: Buffer, log: Logger): void {
    try {
      const { raft } = this.#options.messages.peerMessage.decode(bytes)
      if (raft !== undefined) this.receive(raft)
    } catch (error) {
      log.warn({ error }, 'peer answered with what makes no sense')
    }
  }
}

function isSame(one: RpcTarget, other: RpcTarget): boolean {
  return one.host === other.host && one.port === other.port
}

function parseEndpoint(endpoint: string): RpcTarget | undefined {
  const match = /^(?:\[(.+)\]|([^[\]]+)):(\d{1,5})$/.exec(endpoint)
  return match === null ? undefined : { host: (match[1] ?? match[2])!, port: Number(match[3]) }
}
