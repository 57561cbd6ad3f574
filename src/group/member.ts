import { ownCopy } from '../base/index.ts'
import type { Ticket } from '../coordinator-runtime/index.ts'
import type { GroupMetadata } from './records.ts'
import type { GroupProtocol, JoinGroupRequest, JoinGroupResponse, SyncGroupResponse } from './types.ts'

const noBytes = Buffer.alloc(0)

/** One member of a classic group. What isn't in `GroupMetadataValue` is lost when the coordinator moves. */
export class Member {
  readonly memberId: string
  /** Null: dynamic. */
  readonly groupInstanceId: string | null
  readonly clientId: string
  readonly clientHost: string
  rebalanceTimeoutMs: number
  sessionTimeoutMs: number
  /** Most wanted first, names unique. */
  protocols: readonly GroupProtocol[]
  /** Of the group's generation; empty before the leader has assigned. */
  assignment: Buffer = noBytes
  /** A JoinGroup that waits for the others; while it waits the member counts as alive, unless it is new. */
  joinTicket: Ticket<JoinGroupResponse> | undefined
  /** A SyncGroup that waits for the leader. */
  syncTicket: Ticket<SyncGroupResponse> | undefined
  /** Waits in its first join: it doesn't know its id yet and cannot send heartbeats. */
  isNew: boolean = false
  /** When the session ends (monotonic); every sign of life moves it. */
  sessionEndMs = 0
  /** When its timer fires: at `sessionEndMs` or before, as only the firing timer is moved on. Undefined: not set. */
  timerEndMs: number | undefined

  constructor(fields: {
    readonly memberId: string
    readonly groupInstanceId: string | null
    readonly clientId: string
    readonly clientHost: string
    readonly rebalanceTimeoutMs: number
    readonly sessionTimeoutMs: number
    readonly protocols: readonly GroupProtocol[]
  }) {
    this.memberId = fields.memberId
    this.groupInstanceId = fields.groupInstanceId
    this.clientId = fields.clientId
    this.clientHost = fields.clientHost
    this.rebalanceTimeoutMs = fields.rebalanceTimeoutMs
    this.sessionTimeoutMs = fields.sessionTimeoutMs
    this.protocols = fields.protocols
  }

  /** As far as the log tells: of its protocols only the one that was chosen. */
  static fromRecord(record: GroupMetadata['members'][number], protocolName: string | null): Member {
    const { memberId, groupInstanceId, clientId, clientHost, sessionTimeout, rebalanceTimeout } = record
    return new Member({
      memberId,
      groupInstanceId,
      clientId,
      clientHost,
      sessionTimeoutMs: sessionTimeout,
      rebalanceTimeoutMs: rebalanceTimeout < 0 ? sessionTimeout : rebalanceTimeout,
      protocols: [{ name: protocolName ?? '', metadata: record.subscription }],
    })
  }

  says({ name, metadata }: GroupProtocol): boolean {
    return this.protocols.some((own) => own.name === name && own.metadata.equals(metadata))
  }

  /** Whether a join says nothing new. */
  matches(protocols: readonly GroupProtocol[]): boolean {
    if (protocols.length !== this.protocols.length) return false
    return protocols.every((protocol, i) => {
      const own = this.protocols[i]!
      return protocol.name === own.name && protocol.metadata.equals(own.metadata)
    })
  }

  /** What it sent for a protocol; empty when it doesn't speak it. */
  metadataFor(protocolName: string | null): Buffer {
    return this.protocols.find(({ name }) => name === protocolName)?.metadata ?? noBytes
  }

  /** Its session doesn't end while the coordinator keeps it waiting. */
  get isKeptWaiting(): boolean {
    return !this.isNew && (this.joinTicket !== undefined || this.syncTicket !== undefined)
  }
}

/** A request's protocols as a member keeps them: copied, as the request's memory is used again, and the first of each name. */
export function ownProtocols(request: JoinGroupRequest): readonly GroupProtocol[] {
  const byName = new Map<string, GroupProtocol>()
  for (const { name, metadata } of request.protocols) {
    if (!byName.has(name)) byName.set(name, { name, metadata: ownCopy(metadata) })
  }
  return [...byName.values()]
}
