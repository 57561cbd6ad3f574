import type { HistoryEvent } from '../node/history.ts'
import { type Checker, PropertyViolation } from './checker.ts'

/** A topic whose creation was acknowledged is there with its id until somebody deletes it, and one that was deleted stays so. */
export class Topics implements Checker {
  readonly #created = new Map<string, { readonly name: string; readonly at: number }>()
  /** When the first deletion of a topic was sent. */
  readonly #deletionSent = new Set<string>()
  readonly #deleted = new Map<string, number>()

  on(event: HistoryEvent, now: number): void {
    switch (event.kind) {
      case 'topic-created':
        this.#created.set(event.topicId, { name: event.name, at: now })
        break
      case 'topic-deletion-sent':
        this.#deletionSent.add(event.topicId)
        break
      case 'topic-deleted':
        this.#deleted.set(event.topicId, now)
        break
      case 'topics-listed':
        this.#check(event)
        break
    }
  }

  #check({ topics, sentAt }: HistoryEvent & { readonly kind: 'topics-listed' }): void {
    const names = new Set<string>()
    const ids = new Map(topics.map(({ name, topicId }) => [topicId, name]))
    for (const { name } of topics) {
      if (names.has(name)) fail(`${name} is listed twice`)
      names.add(name)
    }
    for (const [topicId, { name, at }] of this.#created) {
      if (at > sentAt || this.#deletionSent.has(topicId)) continue
      const listed = ids.get(topicId)
      if (listed === undefined) fail(`${name} (${topicId}) was created and is not listed`)
      if (listed !== name) fail(`${name} (${topicId}) is listed as ${listed}`)
    }
    for (const [topicId, at] of this.#deleted) {
      if (at <= sentAt && ids.has(topicId)) fail(`${ids.get(topicId)} (${topicId}) was deleted and is listed`)
    }
  }
}

function fail(message: string): never {
  throw new PropertyViolation('topics stay as they were acknowledged', message)
}
