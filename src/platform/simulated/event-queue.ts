import type { Process } from './process.ts'

/** Something that happens at a moment of virtual time. */
export interface SimulatedEvent {
  timeUs: number
  /** Breaks ties: what was scheduled first happens first. */
  sequence: number
  /** Whose event it is: it does not happen when that process is dead, and waits while it is paused. */
  readonly owner: Process | undefined
  /** undefined: cancelled, or happened. */
  callback: (() => void) | undefined
}

/** A binary heap ordered by (time, sequence). */
export class EventQueue {
  #heap: SimulatedEvent[] = []
  #cancelled = 0

  /** The next event; undefined when there is none. It may be cancelled. */
  get first(): SimulatedEvent | undefined {
    return this.#heap[0]
  }

  push(event: SimulatedEvent): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(event)
    while (at > 0) {
      const parentAt = (at - 1) >>> 1
      const parent = heap[parentAt]!
      if (!isBefore(event, parent)) break
      heap[at] = parent
      at = parentAt
    }
    heap[at] = event
  }

  pop(): SimulatedEvent | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (last !== undefined && heap.length > 0) sink(heap, last, 0)
    if (first?.callback === undefined) this.#cancelled = Math.max(0, this.#cancelled - 1)
    return first
  }

  cancel(event: SimulatedEvent): void {
    if (event.callback === undefined) return
    event.callback = undefined
    this.#cancelled++
    // Timeouts are mostly cancelled long before their time: without this the heap would hold all of the last minute's.
    if (this.#cancelled > 256 && this.#cancelled * 2 > this.#heap.length) this.#compact()
  }

  #compact(): void {
    const heap = this.#heap.filter((event) => event.callback !== undefined)
    for (let at = (heap.length >>> 1) - 1; at >= 0; at--) sink(heap, heap[at]!, at)
    this.#heap = heap
    this.#cancelled = 0
  }
}

/** Puts `event` in place of what is at `at`, and moves it down to where it belongs. */
function sink(heap: SimulatedEvent[], event: SimulatedEvent, at: number): void {
  const length = heap.length
  for (;;) {
    let childAt = 2 * at + 1
    if (childAt >= length) break
    if (childAt + 1 < length && isBefore(heap[childAt + 1]!, heap[childAt]!)) childAt++
    const child = heap[childAt]!
    if (!isBefore(child, event)) break
    heap[at] = child
    at = childAt
  }
  heap[at] = event
}

function isBefore(a: SimulatedEvent, b: SimulatedEvent): boolean {
  return a.timeUs < b.timeUs || (a.timeUs === b.timeUs && a.sequence < b.sequence)
}
