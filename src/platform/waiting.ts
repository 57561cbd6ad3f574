import type { Timers } from './ports.ts'

/** Resolves `delayMs` (0 or more) from now at the earliest. Doesn't keep the process alive. */
export function pause(timers: Pick<Timers, 'set'>, delayMs: number): Promise<void> {
  return new Promise((resolve) => timers.set(delayMs, resolve))
}

/** Lets the event loop turn: resolves after the I/O of this turn was handled. */
export function nextTurn(timers: Pick<Timers, 'defer'>): Promise<void> {
  return new Promise((resolve) => timers.defer(resolve))
}
