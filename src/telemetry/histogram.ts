/** Parts of each power of two: a percentile is at most 1/8 too high. */
const partsBits = 3
const parts = 2 ** partsBits
/** Enough for values below 2^52. */
const bucketCount = 53 * parts

/** What a histogram holds at one moment; all zero when nothing was recorded. */
export interface HistogramSnapshot {
  readonly count: number
  readonly sum: number
  readonly max: number
  readonly p50: number
  readonly p99: number
}

/** Counts of values by size: exact below 16, then in buckets of 1/8 of a power of two. Recording allocates nothing. */
export class Histogram {
  count = 0
  sum = 0
  max = 0
  readonly #buckets = new Float64Array(bucketCount)

  /** `value`: a whole number from 0 on, in the unit that the metric's name says; a fraction is cut off. */
  record(value: number): void {
    const whole = value > 0 ? Math.floor(value) : 0
    this.count++
    this.sum += whole
    if (whole > this.max) this.max = whole
    this.#buckets[bucketOf(whole)]!++
  }

  /** The value that `share` (0 to 1) of what was recorded doesn't exceed; at most 1/8 too high. 0 when nothing was. */
  percentile(share: number): number {
    let left = Math.ceil(this.count * share)
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      left -= this.#buckets[bucket]!
      if (left <= 0) return Math.min(lastOf(bucket), this.max)
    }
    return this.max
  }

  snapshot(): HistogramSnapshot {
    const { count, sum, max } = this
    return { count, sum, max, p50: this.percentile(0.5), p99: this.percentile(0.99) }
  }
}

function bucketOf(whole: number): number {
  if (whole < parts) return whole
  if (whole < 2 ** 31) {
    const exponent = 31 - Math.clz32(whole)
    return (exponent - partsBits + 1) * parts + ((whole >>> (exponent - partsBits)) & (parts - 1))
  }
  const exponent = Math.min(Math.floor(Math.log2(whole)), 51)
  // log2 rounds up just below a power of two; the part then comes out negative and is taken for the first.
  const part = Math.max(0, Math.min(parts - 1, Math.floor((whole / 2 ** exponent - 1) * parts)))
  return (exponent - partsBits + 1) * parts + part
}

/** The largest whole number of a bucket. */
function lastOf(bucket: number): number {
  if (bucket < parts) return bucket
  const exponent = Math.floor(bucket / parts) + partsBits - 1
  const part = bucket % parts
  return 2 ** exponent * (1 + (part + 1) / parts) - 1
}
