interface Scheduled {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** Virtual time: runs what is due in order of time, and of scheduling where times are equal. */
export class EventQueue {
  /** A binary heap, soonest first. */
  readonly #heap: Scheduled[] = []
  #order = 0
  now = 0

  schedule(delay: number, run: () => void): void {
    const added: Scheduled = { at: this.now + delay, order: this.#order++, run }
    const heap = this.#heap
    let position = heap.length
    heap.push(added)
    while (position > 0) {
      const parent = (position - 1) >> 1
      if (!isBefore(added, heap[parent]!)) break
      heap[position] = heap[parent]!
      position = parent
    }
    heap[position] = added
  }

  /** Moves time to the next event and runs it. False when there is none. */
  runNext(): boolean {
    const heap = this.#heap
    const next = heap[0]
    if (next === undefined) return false
    const last = heap.pop()!
    if (heap.length > 0) this.#sink(last)
    this.now = next.at
    next.run()
    return true
  }

  #sink(value: Scheduled): void {
    const heap = this.#heap
    let position = 0
    for (;;) {
      let child = 2 * position + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, value)) break
      heap[position] = heap[child]!
      position = child
    }
    heap[position] = value
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
