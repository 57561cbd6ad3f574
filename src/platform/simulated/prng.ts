/** sfc32: small, fast, and the same on every machine. One for each purpose, so that a draw for one doesn't move the others. */
export class Prng {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number, purpose: string) {
    // FNV-1a over the text, with a different start for each of the three words.
    const text = `${seed}/${purpose}`
    const words = [0x811c9dc5, 0x9e3779b9, 0x85ebca6b].map((start) => {
      let hash = start
      for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
      return hash
    })
    this.#a = words[0]!
    this.#b = words[1]!
    this.#c = words[2]!
    for (let i = 0; i < 16; i++) this.next()
  }

  /** Uniform in 0 to 2^32-1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** Uniform whole number from `first` to `last`, both included; less than 2^32 apart. */
  between(first: number, last: number): number {
    return first + Math.floor((this.next() / 2 ** 32) * (last - first + 1))
  }

  /** True with probability `share`. */
  chance(share: number): boolean {
    return this.next() < share * 2 ** 32
  }

  fill(target: Uint8Array): void {
    let word = 0
    for (let i = 0; i < target.length; i++) {
      if ((i & 3) === 0) word = this.next()
      target[i] = word
      word >>>= 8
    }
  }
}
