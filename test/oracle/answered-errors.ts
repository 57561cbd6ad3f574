import { errorName } from '../../src/protocol/index.ts'
import type { Exchange } from './recorder.ts'

/** The error codes that both brokers gave in the same place of the same answer, by API; NONE too. */
export class AnsweredErrors {
  readonly #byApi = new Map<string, Set<string>>()

  /** Two runs of one scenario. */
  add(kafka: readonly Exchange[], rookery: readonly Exchange[]): void {
    for (const [i, { api, answer }] of rookery.entries()) {
      const names = this.#byApi.get(api) ?? new Set()
      this.#byApi.set(api, names)
      collect(kafka[i]?.answer, answer, names)
    }
  }

  /** Sorted. */
  of(api: string): string[] {
    return [...(this.#byApi.get(api) ?? [])].sort()
  }
}

function collect(kafka: unknown, rookery: unknown, names: Set<string>): void {
  if (typeof rookery !== 'object' || rookery === null || typeof kafka !== 'object' || kafka === null) return
  for (const [key, value] of Object.entries(rookery)) {
    const other = (kafka as Record<string, unknown>)[key]
    if (/^(error|.+Error)Code$/.test(key) && typeof value === 'number') {
      if (value === other) names.add(errorName(value))
    } else collect(other, value, names)
  }
}
