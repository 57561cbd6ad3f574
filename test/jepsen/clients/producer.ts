import type { KafkaClient } from '../../../src/network/index.ts'
import { ErrorCode } from '../../../src/protocol/index.ts'
import { initProducerId, ProduceError, produceBatch } from '../../support/producing.ts'
import type { Append } from '../judge/history.ts'
import { pause, Session, type World } from './session.ts'

const maxInFlight = 5
const recordBytes = 60

/** Refusals that say for certain that nothing was appended. Others may come after the append: the leader changed, time ran out. */
const certain: ReadonlySet<number> = new Set([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS])

/** What an idempotent producer sends again after. Any other error ends it: it reached the producer. */
const retriable: ReadonlySet<number> = new Set([
  ...certain,
  ErrorCode.LEADER_NOT_AVAILABLE,
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.REQUEST_TIMED_OUT,
  ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
  ErrorCode.KAFKA_STORAGE_ERROR,
  // Of the batches behind one that was refused: all are sent again, in order.
  ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
])

/** Makes batches of one partition, at a pace, and records each as one append. */
abstract class Producer {
  readonly name: string
  readonly partition: number
  readonly session: Session
  readonly #isIdempotent: boolean
  readonly #intervalMs: number
  #sequence = 0
  #acknowledgedCount = 0

  constructor(world: World, name: string, partition: number, isIdempotent: boolean, intervalMs: number) {
    this.name = name
    this.partition = partition
    this.session = new Session(world)
    this.#isIdempotent = isIdempotent
    this.#intervalMs = intervalMs
  }

  abstract run(): Promise<void>

  /** Batches that were acknowledged so far. */
  get progress(): number {
    return this.#acknowledgedCount
  }

  protected nextAppend(): Append {
    const sequence = this.#sequence++
    const values = Array.from({ length: 1 + (sequence % 3) }, (_, index) => `${this.name}#${sequence}:${index}`)
    const { recording } = this.session.world
    const append: Append = {
      kind: 'append',
      process: this.name,
      partition: this.partition,
      values,
      sequence,
      isIdempotent: this.#isIdempotent,
      invokedMs: recording.now(),
      completedMs: Number.POSITIVE_INFINITY,
      outcome: 'unknown',
      attempts: 0,
    }
    recording.appends.push(append)
    return append
  }

  /** Throws what `produceBatch` throws. */
  protected async send(
    client: KafkaClient,
    append: Append,
    identity?: { readonly producerId: number; readonly producerEpoch: number; readonly baseSequence: number },
  ): Promise<void> {
    append.attempts++
    const records = append.values.map((value) => ({
      timestamp: Date.now(),
      value: Buffer.from(value.padEnd(recordBytes, ' ')),
    }))
    const { topic, recording, acks } = this.session.world
    const baseOffset = await produceBatch(client, topic, this.partition, { records, ...identity }, acks)
    append.completedMs = recording.now()
    append.outcome = 'ok'
    append.baseOffset = baseOffset
    this.#acknowledgedCount++
  }

  protected async pace(): Promise<void> {
    await pause(this.#intervalMs * (0.5 + this.session.world.random()))
  }

  /** A connection to the leader; undefined after a while when there is none. */
  protected async toLeader(): Promise<KafkaClient | undefined> {
    const leader = await this.session.leader(this.partition)
    const client = leader && (await this.session.connection(leader.id).catch(() => undefined))
    if (client !== undefined) return client
    this.session.forgetLeader(this.partition)
    await pause(20)
    return undefined
  }
}

/** One after the other, none sent twice: what isn't answered stays unknown. */
export class PlainProducer extends Producer {
  constructor(world: World, name: string, partition: number, intervalMs: number) {
    super(world, name, partition, false, intervalMs)
  }

  async run(): Promise<void> {
    const { world } = this.session
    while (!world.isDraining) {
      await this.pace()
      const client = await this.toLeader()
      if (client === undefined) continue
      const append = this.nextAppend()
      try {
        await this.send(client, append)
      } catch (error) {
        this.session.forgetLeader(this.partition)
        append.note = (error as Error).message
        if (error instanceof ProduceError && certain.has(error.errorCode)) {
          append.outcome = 'fail'
          append.completedMs = world.recording.now()
        }
      }
    }
    this.session.close()
  }
}

/** Up to five in flight, each sent again, in order, until it is acknowledged. */
export class IdempotentProducer extends Producer {
  #identity: { readonly producerId: number; readonly producerEpoch: number } | undefined
  /** Oldest first, with the sequence number of each one's first record. */
  readonly #unacknowledged: { readonly append: Append; readonly baseSequence: number }[] = []
  #nextSequence = 0
  #isRefused = false

  constructor(world: World, name: string, partition: number, intervalMs: number) {
    super(world, name, partition, true, intervalMs)
  }

  async run(): Promise<void> {
    const { world } = this.session
    while (!world.isOver && !this.#isRefused && !(world.isDraining && this.#unacknowledged.length === 0)) {
      const client = await this.toLeader()
      if (client === undefined) continue
      this.#identity ??= await initProducerId(client).catch(() => undefined)
      if (this.#identity === undefined) await pause(20)
      else await this.#sendAll(client, this.#identity)
      this.session.forgetLeader(this.partition)
    }
    this.session.close()
  }

  /** Until the first error. */
  async #sendAll(client: KafkaClient, identity: { producerId: number; producerEpoch: number }): Promise<void> {
    const { world } = this.session
    const again = [...this.#unacknowledged]
    const inFlight: Promise<boolean>[] = []
    let goesOn = true
    const sendNext = (entry: { readonly append: Append; readonly baseSequence: number }) => {
      const { append, baseSequence } = entry
      const sent = this.send(client, append, { ...identity, baseSequence }).then(
        () => {
          this.#unacknowledged.splice(this.#unacknowledged.indexOf(entry), 1)
          return true
        },
        (error: unknown) => {
          this.#onError(append, error)
          goesOn = false
          return false
        },
      )
      inFlight.push(sent)
    }
    while (goesOn && !world.isOver) {
      const next = again.shift()
      if (next !== undefined) sendNext(next)
      else if (world.isDraining) break
      else {
        await this.pace()
        if (goesOn) sendNext(this.#next())
      }
      if (inFlight.length >= maxInFlight) await inFlight.shift()
    }
    await Promise.all(inFlight)
  }

  #next(): { readonly append: Append; readonly baseSequence: number } {
    const append = this.nextAppend()
    const entry = { append, baseSequence: this.#nextSequence }
    this.#nextSequence += append.values.length
    this.#unacknowledged.push(entry)
    return entry
  }

  #onError(append: Append, error: unknown): void {
    append.note = (error as Error).message
    if (!(error instanceof ProduceError) || retriable.has(error.errorCode)) return
    this.#isRefused = true
    const refusal = `${this.name} was refused ${append.values[0]} in attempt ${append.attempts}: ${error.message}`
    this.session.world.recording.refusals.push(refusal)
  }
}
