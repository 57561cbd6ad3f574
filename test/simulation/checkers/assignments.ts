import type { HistoryEvent } from '../node/history.ts'
import { type Checker, PropertyViolation } from './checker.ts'

/** In one generation of a group no partition belongs to two members. */
export class Assignments implements Checker {
  readonly #owners = new Map<string, string>()

  on(event: HistoryEvent): void {
    if (event.kind !== 'assigned') return
    const { group, generation, memberId, partitions } = event
    for (const partition of partitions) {
      const key = `${partition} in generation ${generation} of ${group}`
      const owner = this.#owners.get(key)
      if (owner !== undefined && owner !== memberId) {
        throw new PropertyViolation('a partition has one owner', `${key} was given to ${owner} and to ${memberId}`)
      }
      this.#owners.set(key, memberId)
    }
  }
}
