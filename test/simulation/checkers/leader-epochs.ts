import type { HistoryEvent } from '../node/history.ts'
import { type Checker, PropertyViolation } from './checker.ts'

/** A node that comes back leads its partitions in newer epochs: none of before is resumed. */
export class LeaderEpochs implements Checker {
  /** By topic id and partition. */
  readonly #last = new Map<string, { readonly incarnation: number; readonly leaderEpoch: number }>()

  on(event: HistoryEvent): void {
    if (event.kind !== 'topics-listed') return
    for (const { name, topicId, leaderEpochs } of event.topics) {
      for (const [partition, leaderEpoch] of leaderEpochs.entries()) {
        const key = `${topicId}/${partition}`
        const last = this.#last.get(key)
        const mustGrow = last !== undefined && last.incarnation < event.incarnation
        if (last !== undefined && (mustGrow ? leaderEpoch <= last.leaderEpoch : leaderEpoch < last.leaderEpoch)) {
          throw new PropertyViolation(
            'leader epochs grow over restarts',
            `${name}-${partition} had epoch ${last.leaderEpoch} in run ${last.incarnation} of the node and has ${leaderEpoch} in run ${event.incarnation}`,
          )
        }
        this.#last.set(key, { incarnation: event.incarnation, leaderEpoch })
      }
    }
  }
}
