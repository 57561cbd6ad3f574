import { assert, Deque } from '../base/index.ts'

/** 'raft' goes first: an election or a commit must not wait behind a produce storm. */
export type FlushLane = 'raft' | 'log'

interface Waiting {
  readonly work: () => Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Decides which syncs run now: one per process, for all that sync files.
 *
 * Every sync takes a thread of libuv's pool. When all threads sit in syncs, reads, DNS and compression wait behind them
 * (measured: a sync of 0.2 ms takes 6 ms behind 64 others); so fewer run at a time than the pool has threads. Within a
 * lane the order is that of the calls.
 */
export class FlushScheduler {
  readonly #maxConcurrent: number
  readonly #lanes: Record<FlushLane, Deque<Waiting>> = { raft: new Deque(), log: new Deque() }
  #running = 0

  /** `maxConcurrent`: 1 or more, less than the threads of the pool. One more may run for Raft alone. */
  constructor(options: { readonly maxConcurrent: number }) {
    assert(options.maxConcurrent >= 1, 'at least one sync may run')
    this.#maxConcurrent = options.maxConcurrent
  }

  /** Runs `work` when it is its turn; settles as `work` does. */
  run(lane: FlushLane, work: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { work, resolve, reject }
      if (this.#mayStart(lane)) this.#start(waiting)
      else this.#lanes[lane].pushBack(waiting)
    })
  }

  /** Syncs running now. */
  get running(): number {
    return this.#running
  }

  #mayStart(lane: FlushLane): boolean {
    return this.#running < this.#maxConcurrent + (lane === 'raft' ? 1 : 0)
  }

  #start(waiting: Waiting): void {
    this.#running++
    waiting.work().then(
      () => {
        this.#finish()
        waiting.resolve()
      },
      (error: unknown) => {
        this.#finish()
        waiting.reject(error)
      },
    )
  }

  #finish(): void {
    this.#running--
    for (const lane of ['raft', 'log'] as const) {
      while (this.#mayStart(lane)) {
        const next = this.#lanes[lane].popFront()
        if (next === undefined) break
        this.#start(next)
      }
    }
  }
}
