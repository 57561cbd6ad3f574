/**
 * A fault of a disk, a peer, a request or a setting. Expected outcomes are returned values and bugs are `assert`s;
 * neither is a RookeryError. Messages are sentence case without a full stop, and name the key, the value and what is
 * allowed.
 */
export abstract class RookeryError extends Error {
  /** Stable, for programs: `STORAGE_FAILED`, `CONFIG_INVALID`. */
  abstract readonly code: string

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
  }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** What was thrown, which may be anything, as an error. */
export function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
