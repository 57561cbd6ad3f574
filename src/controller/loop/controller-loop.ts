import { assert, type Deferred, deferred } from '../../base/index.ts'
import { MetadataDeltaBuilder, type MetadataImage, type MetadataRecord } from '../../metadata/index.ts'
import { type Decision, maxRecordsPerEntry } from '../decision.ts'
import type { RecordSink } from './record-sink.ts'

/** What became of a request. */
export type ControllerAnswer<Response> =
  /** The answer is true in every image that holds entry `index`. */
  | { readonly ok: true; readonly response: Response; readonly index: number }
  /** This node isn't the active controller. `mayBeStored`: it was when it decided, and the next one may keep the records. */
  | { readonly ok: false; readonly reason: 'not-controller'; readonly mayBeStored: boolean }
  /** More wait than may. Nothing was decided. */
  | { readonly ok: false; readonly reason: 'overloaded'; readonly mayBeStored: false }

/** Reads the head image, which holds all that was decided before; `nextIndex` is that of the entry of its first record. */
export type Decide<Response> = (head: MetadataImage, nextIndex: number) => Decision<Response>

export interface ControllerLoopOptions {
  readonly sink: RecordSink
  /** Requests that may wait to be decided. */
  readonly maxQueuedRequests: number
  /** While this many records are decided and not stored, requests wait. One decision always fits. */
  readonly maxUnstoredRecords: number
}

/**
 * Decides one request after the other, and holds each answer until what it rests on is stored.
 *
 * States: *inactive*, where every request is refused; `activate` makes it *active*, with the image of all that was stored
 * before; `deactivate` makes it inactive again. An append refused with 'not-controller' deactivates it as well.
 *
 * A decision sees the head image: all that is stored plus all that this loop decided itself. It is replayed on the head
 * when it is made, so that two requests in one turn can't both create a topic. Its answer waits for its last entry, or, when
 * it changes nothing, for the highest entry decided before it: what it saw might still be lost. With leadership goes the
 * head, and all that waits is told so at once.
 *
 * A decision that throws has a bug; its request is rejected with the error, nothing of it is in the head, and the others go on.
 */
export class ControllerLoop {
  readonly #sink: RecordSink
  readonly #maxQueuedRequests: number
  readonly #maxUnstoredRecords: number
  #head: MetadataImage | undefined
  /** Last entry that is known to be stored. */
  #storedIndex = 0
  #unstoredRecords = 0
  readonly #queue: QueuedRequest[] = []
  /** Decided, but the sink was full. Nothing is decided before they are appended: they have their indexes. */
  #unsent: (readonly MetadataRecord[])[] = []
  /** Decided, in the order of their indexes. */
  #waiting: WaitingAnswer[] = []

  constructor(options: ControllerLoopOptions) {
    this.#sink = options.sink
    this.#maxQueuedRequests = options.maxQueuedRequests
    this.#maxUnstoredRecords = options.maxUnstoredRecords
  }

  /** Undefined while inactive. Holds what may yet be lost: to decide with, never to show. */
  get head(): MetadataImage | undefined {
    return this.#head
  }

  /** This node is the controller, and `image` holds every entry that was before it became so. */
  activate(image: MetadataImage): void {
    assert(this.#head === undefined, 'a loop is activated once in a reign')
    this.#head = image
    this.#storedIndex = image.index
  }

  /** This node is no longer the controller, or stops. */
  deactivate(): void {
    if (this.#head === undefined) return
    this.#head = undefined
    this.#unstoredRecords = 0
    this.#unsent = []
    const waiting = this.#waiting
    const queue = this.#queue.splice(0)
    this.#waiting = []
    for (const answer of waiting) answer.fail(answer.recordCount > 0)
    for (const request of queue) request.fail()
  }

  /** Decides at once where it may, else when enough of what was decided before is stored. */
  submit<Response>(decide: Decide<Response>): Promise<ControllerAnswer<Response>> {
    const answer = deferred<ControllerAnswer<Response>>()
    if (this.#head === undefined) {
      answer.resolve(notController(false))
    } else if (this.#queue.length >= this.#maxQueuedRequests) {
      answer.resolve({ ok: false, reason: 'overloaded', mayBeStored: false })
    } else {
      this.#queue.push({ run: () => this.#run(decide, answer), fail: () => answer.resolve(notController(false)) })
      this.#drain()
    }
    return answer.promise
  }

  /** Every entry up to `index`, inclusive, is stored for good, and this node's image has it. */
  onStored(index: number): void {
    if (index <= this.#storedIndex) return
    this.#storedIndex = index
    const end = this.#waiting.findIndex((answer) => answer.index > index)
    for (const answer of this.#waiting.splice(0, end === -1 ? this.#waiting.length : end)) {
      this.#unstoredRecords -= answer.recordCount
      answer.succeed()
    }
    this.#drain()
  }

  #drain(): void {
    while (this.#sendUnsent() && this.#unstoredRecords < this.#maxUnstoredRecords) {
      const request = this.#queue.shift()
      if (request === undefined) return
      request.run()
    }
  }

  /** True when nothing is left to be appended. */
  #sendUnsent(): boolean {
    for (let records = this.#unsent[0]; records !== undefined; records = this.#unsent[0]) {
      const outcome = this.#sink.append(records)
      if (outcome === 'not-controller') this.deactivate()
      if (outcome !== 'appended') return false
      this.#unsent.shift()
    }
    return true
  }

  #run<Response>(decide: Decide<Response>, answer: Deferred<ControllerAnswer<Response>>): void {
    assert(this.#head !== undefined, 'an inactive loop has no queue')
    let step: Step<Response>
    try {
      step = plan(this.#head, this.#sink.nextIndex(), decide)
    } catch (error) {
      answer.reject(error)
      return
    }
    const { response, entries, head } = step
    this.#unsent = entries.slice()
    if (!this.#sendUnsent() && this.head === undefined) {
      answer.resolve(notController(entries.length > 1))
      return
    }
    this.#head = head
    const recordCount = entries.reduce((count, records) => count + records.length, 0)
    const { index } = head
    if (index <= this.#storedIndex) {
      answer.resolve({ ok: true, response, index })
      return
    }
    this.#unstoredRecords += recordCount
    this.#waiting.push({
      index,
      recordCount,
      succeed: () => answer.resolve({ ok: true, response, index }),
      fail: (mayBeStored) => answer.resolve(notController(mayBeStored)),
    })
  }
}

interface QueuedRequest {
  run(): void
  fail(): void
}

interface WaitingAnswer {
  readonly index: number
  /** 0: it only read. */
  readonly recordCount: number
  succeed(): void
  fail(mayBeStored: boolean): void
}

interface Step<Response> {
  readonly response: Response
  readonly entries: readonly (readonly MetadataRecord[])[]
  /** With the entries replayed. */
  readonly head: MetadataImage
}

/** Decides, and replays before anything is appended, so that a decision with a bug leaves no trace. */
function plan<Response>(head: MetadataImage, nextIndex: number, decide: Decide<Response>): Step<Response> {
  const { records, response } = decide(head, nextIndex)
  const entries = []
  for (let start = 0; start < records.length; start += maxRecordsPerEntry) {
    entries.push(records.slice(start, start + maxRecordsPerEntry))
  }
  if (entries.length === 0) return { response, entries, head }
  const builder = new MetadataDeltaBuilder(head)
  for (const record of records) builder.replay(record)
  return { response, entries, head: builder.finish(nextIndex + entries.length - 1, head.term).image }
}

function notController(mayBeStored: boolean): { ok: false; reason: 'not-controller'; mayBeStored: boolean } {
  return { ok: false, reason: 'not-controller', mayBeStored }
}
