import type { HistoryEvent } from '../node/history.ts'

/** Watches for one property in what clients see. Throws `PropertyViolation` as soon as it can't hold any more. */
export interface Checker {
  /** `now` is the logical time of the event: one more for each event. */
  on(event: HistoryEvent, now: number): void
}

/** A promise of the node was broken. */
export class PropertyViolation extends Error {
  override readonly name = 'PropertyViolation'
  readonly property: string

  constructor(property: string, message: string) {
    super(`${property}: ${message}`)
    this.property = property
  }
}

/**
 * When power was lost. Where syncs are in the background that ends what was promised before, also by an answer that was still
 * on its way to the client.
 */
export class PowerLosses {
  #last = 0

  on(event: HistoryEvent, now: number): boolean {
    if (event.kind !== 'node-ended' || !event.lostPower) return false
    this.#last = now
    return true
  }

  /** Whether the answer to what was sent at `sentAt` may be from before the last power loss. */
  mayHaveTakenBack(sentAt: number): boolean {
    return sentAt < this.#last
  }
}

/** The value of `key`; made by `make` when there is none. */
export function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const present = map.get(key)
  if (present !== undefined) return present
  const made = make()
  map.set(key, made)
  return made
}

export function partitionKey(topic: { readonly name: string; readonly topicId: string }, partition: number): string {
  return `${topic.name}-${partition} (${topic.topicId})`
}
