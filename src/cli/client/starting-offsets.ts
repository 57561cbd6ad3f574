import type { Cluster } from './cluster.ts'
import { earliest, latest, listOffsets, type Place, placeName } from './offsets.ts'

/** Where reading begins. */
export type From =
  | { readonly kind: 'latest' }
  | { readonly kind: 'beginning' }
  | { readonly kind: 'offset'; readonly offset: number }
  /** The last `count` offsets of each partition. */
  | { readonly kind: 'last'; readonly count: number }
  /** The first record at or after it; milliseconds since 1970. */
  | { readonly kind: 'time'; readonly timestamp: number }

/** What `parseFroms` takes, for people. */
export const placesAllowed =
  'latest, beginning, an offset, a time such as 2026-01-31T12:00:00Z or 90m (ago), -N for the last N, or one for each partition: 0:100,1:-5'

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Undefined for a text that means none of these. */
export function parseFrom(text: string, nowMs = Date.now()): From | undefined {
  if (text === 'latest' || text === 'end') return { kind: 'latest' }
  if (text === 'beginning' || text === 'earliest') return { kind: 'beginning' }
  if (/^\d{1,15}$/.test(text)) return { kind: 'offset', offset: Number(text) }
  if (/^-\d{1,15}$/.test(text)) return { kind: 'last', count: Number(text.slice(1)) }
  const ago = /^(\d{1,6})([smhd])$/.exec(text)
  if (ago !== null) return { kind: 'time', timestamp: nowMs - Number(ago[1]) * unitMs[ago[2] as keyof typeof unitMs] }
  const timestamp = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(timestamp) || timestamp < 0 ? undefined : { kind: 'time', timestamp }
}

/** A place for all partitions, or one for some of them: `0:100,2:beginning`. */
export type Froms = { readonly all: From } | { readonly byPartition: ReadonlyMap<number, From> }

/** Undefined for a text that means none of these. */
export function parseFroms(text: string): Froms | undefined {
  const all = parseFrom(text)
  if (all !== undefined) return { all }
  const byPartition = new Map<number, From>()
  for (const part of text.split(',')) {
    const match = /^(\d{1,9}):(.+)$/.exec(part)
    const from = parseFrom(match?.[2] ?? '')
    if (match === null || from === undefined) return undefined
    byPartition.set(Number(match[1]), from)
  }
  return { byPartition }
}

/** What is meant for a partition; undefined for one that isn't named. */
export function fromOf(froms: Froms, partition: number): From | undefined {
  return 'all' in froms ? froms.all : froms.byPartition.get(partition)
}

/** The first partition that `froms` names and the topic doesn't have. */
export function missingPartition(froms: Froms, partitionCount: number): number | undefined {
  return 'all' in froms ? undefined : [...froms.byPartition.keys()].find((partition) => partition >= partitionCount)
}

export function missingText(topic: string, partition: number, partitionCount: number): string {
  return `Partition ${partition}: ${topic} has partitions 0 to ${partitionCount - 1}`
}

/** Of offsets that lie beyond the end of their partitions, mostly times that were not written as such; undefined without one. */
export function beyondEndText(
  froms: Froms,
  ranges: readonly (Place & { readonly endOffset: number })[],
): string | undefined {
  const beyond = ranges.flatMap((range) => {
    const from = fromOf(froms, range.partition)
    return from?.kind === 'offset' && from.offset > range.endOffset ? [{ ...range, offset: from.offset }] : []
  })
  const [first] = beyond
  if (first === undefined) return undefined
  const ends = beyond.slice(0, 5).map((each) => `${placeName(each)} (END is ${each.endOffset})`)
  const more = beyond.length > 5 ? ` and ${beyond.length - 5} more` : ''
  return `Offset ${first.offset} lies beyond the end of ${ends.join(', ')}${more}; for a time write it as ${timeOf(first.offset)}`
}

/** What the number may have meant: seconds or milliseconds since 1970; an example when neither. */
function timeOf(number: number): string {
  const isMs = number >= 1e12 && number < 1e13
  const isSeconds = number >= 1e9 && number < 1e10
  return isMs || isSeconds ? new Date(isMs ? number : number * 1000).toISOString() : '2026-01-31T12:00:00Z'
}

/** `startingOffsets` where partitions differ. Places of partitions that aren't named are left out. */
export async function startingOffsetsEach(cluster: Cluster, places: readonly Place[], froms: Froms): Promise<Range[]> {
  const alike = new Map<string, { readonly from: From; readonly places: Place[] }>()
  for (const place of places) {
    const from = fromOf(froms, place.partition)
    if (from === undefined) continue
    const key = JSON.stringify(from)
    const group = alike.get(key) ?? { from, places: [] }
    alike.set(key, group)
    group.places.push(place)
  }
  const ranges: Range[] = []
  for (const group of alike.values()) ranges.push(...(await startingOffsets(cluster, group.places, group.from)))
  return ranges
}

export interface Range extends Place {
  readonly nextOffset: number
  /** Exclusive: the partition's end when it was asked for. */
  readonly endOffset: number
}

/** For each place the offset that `from` means now. */
export async function startingOffsets(cluster: Cluster, places: readonly Place[], from: From): Promise<Range[]> {
  const [firsts, ends] = await Promise.all([
    listOffsets(cluster, places, earliest),
    listOffsets(cluster, places, latest),
  ])
  const atTime = from.kind === 'time' ? await listOffsets(cluster, places, BigInt(from.timestamp)) : undefined
  return places.map((place) => {
    const firstOffset = firsts.get(placeName(place)) ?? 0
    const endOffset = ends.get(placeName(place)) ?? 0
    const found = atTime?.get(placeName(place)) ?? -1
    return { ...place, nextOffset: startOf(from, firstOffset, endOffset, found), endOffset }
  })
}

function startOf(from: From, firstOffset: number, endOffset: number, offsetAtTime: number): number {
  switch (from.kind) {
    case 'latest':
      return endOffset
    case 'beginning':
      return firstOffset
    case 'offset':
      return from.offset
    case 'last':
      return Math.max(firstOffset, endOffset - from.count)
    case 'time':
      return offsetAtTime < 0 ? endOffset : offsetAtTime
  }
}
