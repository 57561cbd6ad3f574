/** How many connections may be open at a time. */
export interface ConnectionLimits {
  /** `max.connections`, or fewer where the system doesn't allow so many open files. */
  readonly max: number
  /** `max.connections.per.ip`. */
  readonly maxPerAddress: number
  /** `max.connections.per.ip.overrides`, by address. */
  readonly overrides: ReadonlyMap<string, number>
}

export type ConnectionRefusal = 'max.connections' | 'max.connections.per.ip'

/** Counts the open connections, all of them and those of each address. */
export class ConnectionCounts {
  readonly #ofAddress = new Map<string, number>()
  #total = 0

  /** Which limit a further connection from `address` would pass; undefined when none. */
  refusalOf(address: string, limits: ConnectionLimits): ConnectionRefusal | undefined {
    if (this.#total >= limits.max) return 'max.connections'
    const limit = limits.overrides.get(address) ?? limits.maxPerAddress
    return (this.#ofAddress.get(address) ?? 0) >= limit ? 'max.connections.per.ip' : undefined
  }

  add(address: string): void {
    this.#total++
    this.#ofAddress.set(address, (this.#ofAddress.get(address) ?? 0) + 1)
  }

  remove(address: string): void {
    this.#total--
    const left = (this.#ofAddress.get(address) ?? 0) - 1
    if (left > 0) this.#ofAddress.set(address, left)
    else this.#ofAddress.delete(address)
  }
}
