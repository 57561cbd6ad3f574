import type { BrokerId, Uuid } from '../base/index.ts'
import type { ControllerRequestKind, QuorumState } from '../coordination/index.ts'
import type { LogFields } from '../telemetry/index.ts'
import type { ControlConfig, NodeFolders } from './control-plane.ts'
import type { StartingIdentity } from './node-peers.ts'
import type { SentEntries } from './sent-entries.ts'
import type { SentError } from './sent-error.ts'

/** What a control plane in a thread begins with. */
export interface ControlInput {
  readonly config: ControlConfig
  readonly incarnationId: Uuid
}

/** What a node asks of its control plane; each call is answered once, in any order. */
export interface ControlCalls {
  identify(): Promise<StartingIdentity | undefined>
  open(folders: NodeFolders): Promise<void>
  start(): Promise<void>
  ask(request: SentRequest): Promise<unknown>
  waitForRoom(): Promise<void>
  transferLeadership(): Promise<void>
  stopQuorum(): Promise<void>
  unreached(): Promise<readonly string[]>
  giveUp(): Promise<void>
  stop(): Promise<void>
}

/** For a controller; `request` and the answer are those of `ControllerRequests`, plain data. */
export interface SentRequest {
  readonly controller: BrokerId
  readonly kind: ControllerRequestKind
  readonly request: unknown
  readonly timeoutMs: number
}

/** From the node to the thread. */
export interface ControlCall {
  readonly id: number
  readonly name: keyof ControlCalls
  readonly input: unknown
}

/**
 * From the thread to the node. What an answer rests on comes before it: entries, then the state that they led to, then answers. Of
 * the state each change comes, the last one at least.
 */
export type ControlMessage =
  | { readonly type: 'answer'; readonly id: number; readonly result: unknown }
  | { readonly type: 'failure'; readonly id: number; readonly error: SentError }
  | { readonly type: 'committed'; readonly entries: SentEntries }
  | { readonly type: 'snapshot'; readonly index: number; readonly term: number; readonly data: Uint8Array }
  | { readonly type: 'state'; readonly state: QuorumState }
  | { readonly type: 'fault'; readonly error: SentError }
  | ({ readonly type: 'log' } & SentLogLine)

export interface SentLogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly fields: LogFields
  /** Those of the fields that are errors. */
  readonly errors: Readonly<Record<string, SentError>>
  readonly message: string
}
