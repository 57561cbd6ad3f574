import { expect, test } from 'vitest'
import type { Offset } from '../../../src/base/index.ts'
import type { LogManager, PartitionLog } from '../../../src/log/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { appended, batchOf, drawing, idempotent, type Keys, openLog, openLogs } from './support.ts'

const producerIds = [7, 8, 9]
const restartsPerSeed = 5

/** A batch that the leader has at these offsets; this log may have begun behind it. */
interface Batch {
  readonly producerId: number
  readonly lastSequence: number
  readonly baseOffset: Offset
  readonly endOffset: Offset
}

/** One replica's log, through all that takes records from it, and what its producers have written. */
class History {
  readonly #draw: (end: number) => number
  readonly #simulation: Simulation
  readonly #host: SimulatedHost
  readonly #keys: Keys
  #logs!: LogManager
  #log!: PartitionLog
  #batches: Batch[] = []

  constructor(seed: number) {
    this.#draw = drawing(seed)
    this.#simulation = createSimulation({ seed })
    this.#host = this.#simulation.host('a')
    this.#keys = {
      'internal.segment.bytes': 400 + this.#draw(600),
      'flush.messages': this.#draw(2) === 0 ? 1 : 1_000_000,
      'file.delete.delay.ms': 0,
    }
  }

  async run(): Promise<void> {
    await this.#start()
    for (let restart = 0; restart < restartsPerSeed; restart++) {
      for (let step = 5 + this.#draw(40); step > 0; step--) await this.#doSomething()
      await this.#end()
      await this.#start()
      this.#check()
    }
  }

  async #start(): Promise<void> {
    this.#logs = await this.#simulation.run(openLogs(this.#host.platform))
    this.#log = await this.#simulation.run(openLog(this.#logs, this.#keys))
    this.#forgetAbove(this.#log.logEndOffset)
    this.#settle()
  }

  /** Everything is committed. */
  #settle(): void {
    this.#log.setHighWatermark(this.#log.logEndOffset)
  }

  #forgetAbove(endOffset: Offset): void {
    this.#batches = this.#batches.filter((batch) => batch.endOffset <= endOffset)
  }

  async #end(): Promise<void> {
    // It may come in the middle of something.
    if (this.#draw(2) === 0) void this.#takeRecords().catch(() => {})
    if (this.#draw(2) === 0) await this.#simulation.runFor(this.#draw(30) / 10)
    const way = this.#draw(3)
    if (way === 0) await this.#simulation.run(this.#logs.close())
    else if (way === 1) this.#host.kill()
    else this.#host.crash()
    if (way > 0) this.#host.restart()
  }

  async #doSomething(): Promise<void> {
    const action = this.#draw(12)
    if (action === 0) await this.#simulation.run(this.#log.flush())
    else if (action === 1) await this.#simulation.run(this.#takeRecords())
    else if (action === 2) await this.#simulation.run(this.#logs.enforceRetention())
    else this.#append()
    this.#check()
  }

  #append(): void {
    const producerId = producerIds[this.#draw(producerIds.length)]!
    const count = 1 + this.#draw(3)
    const sequence = this.#lastSequenceOf(producerId) + 1
    const options = idempotent(producerId, 0, sequence)
    const { baseOffset, lastOffset } = appended(this.#log, batchOf(count, 'x'.repeat(this.#draw(60)), options))
    this.#batches.push({ producerId, lastSequence: sequence + count - 1, baseOffset, endOffset: lastOffset + 1 })
    this.#settle()
  }

  async #takeRecords(): Promise<void> {
    const log = this.#log
    const { logStartOffset, logEndOffset } = log
    const way = this.#draw(8)
    if (way < 5) {
      const offset = this.#draw(3) === 0 ? logEndOffset : logStartOffset + this.#draw(logEndOffset - logStartOffset + 1)
      await log.deleteRecordsBefore(offset, logEndOffset)
    } else if (way < 7) {
      await log.truncateTo(logStartOffset + this.#draw(logEndOffset - logStartOffset + 1))
    } else {
      await log.truncateFullyAndStartAt(this.#beginBehind(logEndOffset))
    }
    this.#forgetAbove(log.logEndOffset)
    this.#settle()
  }

  /** The leader has got ahead, and deleted what this replica hasn't seen. Where its log starts. */
  #beginBehind(logEndOffset: Offset): Offset {
    const startOffset = logEndOffset + producerIds.length
    for (const [index, producerId] of producerIds.entries()) {
      const lastSequence = this.#lastSequenceOf(producerId) + 1
      const baseOffset = logEndOffset + index
      this.#batches.push({ producerId, lastSequence, baseOffset, endOffset: startOffset })
    }
    return startOffset
  }

  #lastSequenceOf(producerId: number): number {
    return this.#batches.findLast((batch) => batch.producerId === producerId)?.lastSequence ?? -1
  }

  /** Of each producer the last batch is known, or nothing; in any case when that batch is in the log. */
  #check(): void {
    const { logStartOffset } = this.#log
    const known = new Map(this.#log.activeProducers().map((each) => [Number(each.producerId), each.lastSequence]))
    for (const producerId of producerIds) {
      const last = this.#batches.findLast((batch) => batch.producerId === producerId)
      const isInLog = last !== undefined && last.endOffset > logStartOffset
      if (isInLog || known.has(producerId)) expect(known.get(producerId)).toBe(last?.lastSequence)
    }
  }
}

test('what is known of a producer is its last batch, whatever takes records from the log', async () => {
  for (let seed = 0; seed < 60; seed++) {
    await new History(seed).run().catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error })
    })
  }
})
