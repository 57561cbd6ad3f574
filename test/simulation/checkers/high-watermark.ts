import type { HistoryEvent } from '../node/history.ts'
import { type Checker, getOrMake, PowerLosses, PropertyViolation, partitionKey } from './checker.ts'

/**
 * The high watermark and the log start only move up while one leader lasts (which, of several nodes, a new one may have to learn
 * anew): over the whole run, or, where syncs are in the background, up to a
 * power loss.
 */
export class HighWatermark implements Checker {
  readonly #powerLosses = new PowerLosses()
  /** Rising steps of the highest value that was told so far: `[time of the answer, value]`. */
  readonly #told = new Map<string, { readonly isDurable: boolean; readonly steps: [at: number, value: number][] }>()

  on(event: HistoryEvent, now: number): void {
    if (this.#powerLosses.on(event, now)) {
      for (const [key, { isDurable }] of this.#told) if (!isDurable) this.#told.delete(key)
    }
    if (event.kind !== 'fetched') return
    const { topic, partition, leaderEpoch, highWatermark, logStartOffset, sentAt } = event.fetched
    if (!topic.isDurable && this.#powerLosses.mayHaveTakenBack(sentAt)) return
    const place = partitionKey(topic, partition)
    const key = leaderEpoch === -1 ? place : `${place} in leader epoch ${leaderEpoch}`
    this.#rise(`high watermark of ${key}`, topic.isDurable, highWatermark, sentAt, now)
    this.#rise(`log start of ${key}`, topic.isDurable, logStartOffset, sentAt, now)
  }

  /** An answer may be older than one that overtook it, but not older than what was known when it was asked for. */
  #rise(key: string, isDurable: boolean, value: number, sentAt: number, now: number): void {
    const told = getOrMake(this.#told, key, () => ({ isDurable, steps: [] }))
    const known = told.steps.findLast(([at]) => at <= sentAt)?.[1] ?? 0
    if (value < known) {
      throw new PropertyViolation('watermarks rise', `The ${key} was ${known} and is ${value} in a later answer`)
    }
    if (value > (told.steps.at(-1)?.[1] ?? -1)) told.steps.push([now, value])
  }
}
