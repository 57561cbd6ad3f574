import { inspect } from 'node:util'
import type { Exchange } from './recorder.ts'

/** One place where two answers to the same request differ. */
export interface Difference {
  readonly scenario: string
  /** Rookery's; Kafka's got the same request. */
  readonly exchange: Exchange
  /** `topics[0].errorCode`; empty for the whole answer. */
  readonly path: string
  readonly kafka: unknown
  readonly rookery: unknown
}

/** A difference that stays. */
export interface AcceptedDifference {
  readonly title: string
  /** Why no record and no offset differs for it, and no client behaves differently. */
  readonly reason: string
  readonly covers: (difference: Difference) => boolean
}

/** Every difference between two runs of a scenario, whose exchanges are normalised. */
export function differencesOf(
  scenario: string,
  kafka: readonly Exchange[],
  rookery: readonly Exchange[],
): Difference[] {
  const found: Difference[] = []
  for (const [i, exchange] of rookery.entries()) {
    const other = kafka[i]
    if (other === undefined) break
    const add = (path: string, left: unknown, right: unknown) =>
      void found.push({ scenario, exchange, path, kafka: left, rookery: right })
    compare('request', other.request, exchange.request, add)
    compare('', other.answer, exchange.answer, add)
  }
  if (kafka.length !== rookery.length) {
    const exchange = rookery.at(-1) ?? kafka[0]
    if (exchange !== undefined) {
      found.push({ scenario, exchange, path: 'number of requests', kafka: kafka.length, rookery: rookery.length })
    }
  }
  return found
}

/** What a person reads: differences that are alike are told once, with the first requests that show them. */
export function describeDifferences(differences: readonly Difference[]): string {
  const alike = new Map<string, Difference[]>()
  for (const each of differences) {
    const { exchange, path, kafka, rookery } = each
    const key = inspect([exchange.api, path.replaceAll(/\d+/g, ''), kafka, rookery], { depth: 9 })
    alike.set(key, [...(alike.get(key) ?? []), each])
  }
  const told = [...alike.values()].slice(0, 25).map(describeAlike)
  return [`${differences.length} differences, ${alike.size} of them unlike`, ...told].join('\n\n')
}

function describeAlike(differences: readonly Difference[]): string {
  const show = (value: unknown) => shortened(inspect(value, { depth: 8, breakLength: 140 }), 1500)
  const { path, kafka, rookery } = differences[0]!
  const names = [...new Set(differences.map((each) => each.exchange.name))]
  return [
    `${differences.length} x ${names.join(', ')}, at ${path === '' ? 'the answer' : path}`,
    `  Kafka   ${show(kafka)}`,
    `  Rookery ${show(rookery)}`,
    ...requestsOf(differences).map((request) => `  request ${shortened(request, 700)}`),
  ].join('\n')
}

/** The first few that are unlike. */
function requestsOf(differences: readonly Difference[]): string[] {
  return [...new Set(differences.map(({ exchange }) => JSON.stringify(exchange.request)))].slice(0, 4)
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}...`
}

function compare(path: string, kafka: unknown, rookery: unknown, add: (path: string, a: unknown, b: unknown) => void) {
  if (Object.is(kafka, rookery)) return
  if (Array.isArray(kafka) && Array.isArray(rookery) && kafka.length === rookery.length) {
    for (const [i, each] of kafka.entries()) compare(`${path}[${i}]`, each, rookery[i], add)
    return
  }
  if (isPlain(kafka) && isPlain(rookery)) {
    // Where one failed and the other didn't, or otherwise, the rest differs for that reason.
    if (kafka.errorCode !== rookery.errorCode) return add(`${path}.errorCode`, kafka.errorCode, rookery.errorCode)
    for (const key of new Set([...Object.keys(kafka), ...Object.keys(rookery)])) {
      compare(path === '' ? key : `${path}.${key}`, kafka[key], rookery[key], add)
    }
    return
  }
  add(path, kafka, rookery)
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
