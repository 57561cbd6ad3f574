import { Deque } from '../base/index.ts'
import type { Clock } from '../platform/index.ts'
import type { Counter, Metrics } from '../telemetry/index.ts'

/** `replication.quota.window.num` and `.size.seconds`. */
export interface QuotaWindows {
  readonly count: number
  readonly sizeMs: number
}

interface Sample {
  readonly startMs: number
  bytes: number
}

/**
 * How many bytes a second of throttled replicas one end of replication has moved, against what it may (KIP-73). The rate is that
 * over the last windows: bytes over the time since the oldest window that counts began, or over one window when that is longer.
 * Nothing that moves is cut to fit: it is above the quota until time has made up for it. Unlike Kafka, which forgets a window when
 * it is old, this keeps it until then, so that a low rate holds too where one batch is more than all windows allow.
 */
export class ReplicationQuota {
  readonly #clock: Clock
  readonly #windows: QuotaWindows
  readonly #throttledBytes: Counter
  /** Oldest first. */
  readonly #samples = new Deque<Sample>()
  #last: Sample | undefined
  /** Over all samples. */
  #sampledBytes = 0
  #bytesPerSecond = Number.POSITIVE_INFINITY

  constructor(clock: Clock, windows: QuotaWindows, throttledBytes: Counter) {
    this.#clock = clock
    this.#windows = windows
    this.#throttledBytes = throttledBytes
  }

  /** Infinity for no limit. What moved under another limit doesn't count against a new one. */
  set bytesPerSecond(limit: number) {
    if (limit === this.#bytesPerSecond) return
    this.#bytesPerSecond = limit
    this.#samples.clear()
    this.#last = undefined
    this.#sampledBytes = 0
  }

  /** Throttled replicas have moved that much. */
  record(bytes: number): void {
    this.#throttledBytes.value += bytes
    if (bytes === 0 || this.#bytesPerSecond === Number.POSITIVE_INFINITY) return
    const nowMs = this.#clock.monotonic()
    this.#forgetOld(nowMs)
    if (this.#last === undefined || nowMs - this.#last.startMs >= this.#windows.sizeMs) {
      this.#last = { startMs: nowMs, bytes: 0 }
      this.#samples.pushBack(this.#last)
    }
    this.#last.bytes += bytes
    this.#sampledBytes += bytes
  }

  /** Milliseconds until throttled replicas may move again; 0 when they may now, infinity at a rate of 0. */
  get waitMs(): number {
    const nowMs = this.#clock.monotonic()
    this.#forgetOld(nowMs)
    return this.#excessMs(nowMs)
  }

  get isExceeded(): boolean {
    return this.waitMs > 0
  }

  #excessMs(nowMs: number): number {
    const first = this.#samples.front()
    if (first === undefined) return 0
    const neededMs = (this.#sampledBytes * 1000) / this.#bytesPerSecond
    const hadMs = nowMs - first.startMs
    return neededMs <= Math.max(hadMs, this.#windows.sizeMs) ? 0 : neededMs - hadMs
  }

  #forgetOld(nowMs: number): void {
    const { count, sizeMs } = this.#windows
    while (this.#excessMs(nowMs) === 0) {
      const first = this.#samples.front()
      if (first === undefined || nowMs - first.startMs < count * sizeMs) return
      this.#samples.popFront()
      this.#sampledBytes -= first.bytes
      if (first === this.#last) this.#last = undefined
    }
  }
}

/** Both ends of replication on one broker. */
export class ReplicationQuotas {
  /** Of what this broker serves as a leader. */
  readonly leader: ReplicationQuota
  /** Of what it fetches as a follower. */
  readonly follower: ReplicationQuota

  constructor(clock: Clock, windows: QuotaWindows, metrics: Metrics) {
    this.leader = new ReplicationQuota(clock, windows, metrics.counter('ThrottledBytes,type=LeaderReplication'))
    this.follower = new ReplicationQuota(clock, windows, metrics.counter('ThrottledBytes,type=FollowerReplication'))
  }
}
