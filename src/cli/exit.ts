import { RookeryError } from '../base/index.ts'

/** What the process tells who started it. */
export const exitCodes = {
  ok: 0,
  /** Something failed. */
  fault: 1,
  /** Settings or arguments can't be used: nothing was tried. */
  usage: 2,
} as const

/** What ends a command that runs on: Ctrl-C, a supervisor, a terminal that is closed. */
export const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** An argument of a command can't be used. */
export class UsageError extends RookeryError {
  override readonly code = 'USAGE_INVALID'
}
