import type { LogIndex, Term } from './types.ts'

export type ProposeOutcome =
  /** In the leader's log, not yet durable. The entries take `lastIndex` and the indexes before it. */
  | { readonly ok: true; readonly lastIndex: LogIndex; readonly term: Term }
  /** 'busy': `maxUncommittedBytes` are waiting for their commit already, or leadership is being handed over. */
  | { readonly ok: false; readonly reason: 'not-leader' | 'busy' }

export type MembershipRefusal =
  | 'not-leader'
  /** Nothing of the leader's own term is committed yet: a change now could overlap with one of another leader. */
  | 'not-ready'
  /** The change before this one isn't committed yet. */
  | 'in-flight'
  /** Leadership is being handed over. */
  | 'transferring'
  /** The voter to be isn't heard, or is far behind: it would be counted before it can help. */
  | 'not-caught-up'
  /** One id would vote with two disks: the old one must be removed first. */
  | 'duplicate-voter'
  /** Nobody would be left. */
  | 'last-voter'
  /** More than one voter comes or goes: two majorities might not meet. */
  | 'too-many'

export type MembershipOutcome =
  | { readonly ok: true; readonly index: LogIndex; readonly term: Term }
  | { readonly ok: false; readonly reason: MembershipRefusal }

export type TransferRefusal =
  | 'not-leader'
  /** It has no vote, or is this node. */
  | 'not-voter'
  /** It isn't heard, or has to get a snapshot first. */
  | 'lagging'
  /** Leadership is being handed to another one. */
  | 'busy'

export type ReadOutcome =
  /** `id` comes back in `Ready.reads`; not at all when leadership is lost before. */
  | { readonly ok: true; readonly id: number }
  /** 'not-ready': nothing of the leader's own term is committed yet, so it doesn't know all that is. */
  | { readonly ok: false; readonly reason: 'not-leader' | 'not-ready' | 'busy' }
