import type { Platform } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { StorageError } from './errors.ts'
import type { FlushScheduler } from './flush-scheduler.ts'
import type { HandlePool } from './handle-pool.ts'
import type { IndexCache } from './index-cache.ts'
import type { LogProbe } from './probe.ts'
import type { ReadBuffers } from './read-buffers.ts'
import type { TailCache } from './tail-cache.ts'

/** What all logs of a node share. */
export interface LogEnvironment {
  readonly platform: Platform
  readonly logger: Logger
  readonly probe: LogProbe
  readonly scheduler: FlushScheduler
  readonly handles: HandlePool
  readonly buffers: ReadBuffers
  readonly tailCache: TailCache
  readonly indexCache: IndexCache
  /** Milliseconds after its last write until an idempotent producer is forgotten. */
  producerIdExpirationMs: number
}

/** The log directory that a log lies in. */
export interface LogHost {
  readonly path: string
  /** A write or sync failed: every log of the directory goes offline, in this turn. */
  fail(error: StorageError): void
  /** Removes files that are out of use, after a while and in the background. */
  removeLater(paths: readonly string[], delayMs: number): void
  /** Writes the recovery points as they are now; durable when it resolves. */
  saveRecoveryPoints(): Promise<void>
  /** Writes where the cleaning of each log ended, as it is now; durable when it resolves. */
  saveCleanedOffsets(): Promise<void>
  /** Writes the log start offsets as they are now; durable when it resolves. */
  saveLogStarts(): Promise<void>
}
