import { crc32c } from '@node-rs/crc32'

/** More names than this are of temporary files and the like: the cache starts again. */
const maxNames = 10_000

/** What is kept of the calls: nothing, a hash, or a line for each beside the hash. */
export type Tracing = 'none' | 'hash' | 'lines'

/**
 * A running 64-bit hash of everything that the hosts did: when, who, what, to what, and with which bytes. Two runs of one
 * seed must agree in it; the first line that differs between their recorded traces shows where they part.
 */
export class Trace {
  /** One line for each call; empty unless it was asked for. */
  readonly lines: string[] = []
  readonly #tracing: Tracing
  readonly #names = new Map<string, number>()
  #low = 0x243f6a88
  #high = 0x13198a2e

  constructor(tracing: Tracing) {
    this.#tracing = tracing
  }

  /** `a` and `b` are whole numbers: a position and a length, a port and a delay. */
  record(
    timeUs: number,
    host: string,
    operation: string,
    subject: string,
    a: number,
    b: number,
    chunks?: readonly Uint8Array[],
  ): void {
    if (this.#tracing === 'none') return
    let crc = 0
    if (chunks !== undefined) for (const chunk of chunks) crc = crc32c(chunk, crc)
    this.#mix(timeUs)
    this.#mix(this.#nameHash(host))
    this.#mix(this.#nameHash(operation))
    this.#mix(this.#nameHash(subject))
    this.#mix(a)
    this.#mix(b)
    this.#mix(crc)
    if (this.#tracing === 'hash') return
    const content = chunks === undefined ? '' : ` crc32c=${crc.toString(16)}`
    this.lines.push(`${(timeUs / 1000).toFixed(3)} ms ${host} ${operation} ${subject} ${a} ${b}${content}`)
  }

  /** 16 hexadecimal digits; empty when nothing is kept. */
  hash(): string {
    if (this.#tracing === 'none') return ''
    const digits = (word: number): string => (word >>> 0).toString(16).padStart(8, '0')
    return digits(this.#high) + digits(this.#low)
  }

  #mix(value: number): void {
    let low = Math.imul(this.#low ^ (value | 0), 0x9e3779b1)
    low = (low << 13) | (low >>> 19)
    const high = Math.imul(this.#high ^ low ^ Math.floor(value / 2 ** 32), 0x85ebca77)
    this.#high = (high << 17) | (high >>> 15)
    this.#low = low ^ (high >>> 15)
  }

  #nameHash(name: string): number {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    if (this.#names.size >= maxNames) this.#names.clear()
    const hash = crc32c(name)
    this.#names.set(name, hash)
    return hash
  }
}
