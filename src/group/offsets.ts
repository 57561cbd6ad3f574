import type { CommittedOffset } from './records.ts'

/** The committed offsets of one group, by topic and partition. */
export class GroupOffsets {
  readonly #topics = new Map<string, Map<number, CommittedOffset>>()
  #size = 0

  /** Partitions with a committed offset. */
  get size(): number {
    return this.#size
  }

  get(topic: string, partition: number): CommittedOffset | undefined {
    return this.#topics.get(topic)?.get(partition)
  }

  set(topic: string, partition: number, committed: CommittedOffset): void {
    let partitions = this.#topics.get(topic)
    if (partitions === undefined) {
      partitions = new Map()
      this.#topics.set(topic, partitions)
    }
    if (!partitions.has(partition)) this.#size++
    partitions.set(partition, committed)
  }

  delete(topic: string, partition: number): void {
    const partitions = this.#topics.get(topic)
    if (partitions === undefined || !partitions.delete(partition)) return
    this.#size--
    if (partitions.size === 0) this.#topics.delete(topic)
  }

  get byTopic(): ReadonlyMap<string, ReadonlyMap<number, CommittedOffset>> {
    return this.#topics
  }
}
