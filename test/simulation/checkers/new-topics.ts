import type { HistoryEvent, SeenRecord, SimulatedTopic } from '../node/history.ts'
import { type Checker, PropertyViolation, partitionKey } from './checker.ts'

/** What was acknowledged in a topic is in no other that got its name. */
export class NewTopics implements Checker {
  readonly #topicOf = new Map<string, string>()

  on(event: HistoryEvent): void {
    if (event.kind === 'batch-acked') {
      for (const value of event.batch.values) this.#topicOf.set(value, event.batch.topic.topicId)
    } else if (event.kind === 'fetched') {
      this.#look(event.fetched, event.fetched.records)
    } else if (event.kind === 'final-log') {
      this.#look(event, event.records)
    }
  }

  #look(
    { topic, partition }: { readonly topic: SimulatedTopic; readonly partition: number },
    records: readonly SeenRecord[],
  ): void {
    for (const { value } of records) {
      const topicId = this.#topicOf.get(value)
      if (topicId === undefined || topicId === topic.topicId) continue
      const message = `${value} was acknowledged in the topic ${topicId}, and is in ${partitionKey(topic, partition)}`
      throw new PropertyViolation('a new topic is empty', message)
    }
  }
}
