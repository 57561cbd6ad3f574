import { earliest, latest, listOffsets, type Place, placeName } from '../client/offsets.ts'
import {
  beyondEndText,
  missingPartition,
  missingText,
  parseFroms,
  placesAllowed,
  startingOffsetsEach,
} from '../client/starting-offsets.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { UsageError } from '../exit.ts'
import { note, show, table } from '../output.ts'
import type { Column } from '../table.ts'

export interface OffsetsOptions extends ClusterCommandOptions {
  readonly at?: string
}

interface PartitionOffsets extends Place {
  readonly firstOffset: number
  /** Exclusive. */
  readonly endOffset: number
  /** What `--at` means there; the end for a time past all records, null where it names other partitions alone. */
  readonly offset?: number | null
}

/** The first and the next offset of each partition, and the one that a place or a time means. */
export async function offsets(topic: string, options: OffsetsOptions): Promise<void> {
  const at = options.at === undefined ? undefined : parseFroms(options.at)
  if (options.at !== undefined && at === undefined) {
    throw new UsageError(`--at ${options.at}: allowed is ${placesAllowed}`)
  }
  await withCluster(options, async (cluster) => {
    const { partitions } = await cluster.topic(topic)
    const places = partitions.map(({ partition }) => ({ topic, partition }))
    const missing = at === undefined ? undefined : missingPartition(at, partitions.length)
    if (missing !== undefined) throw new UsageError(missingText(topic, missing, partitions.length))
    const firsts = await listOffsets(cluster, places, earliest)
    const ends = await listOffsets(cluster, places, latest)
    const ranges = at === undefined ? [] : await startingOffsetsEach(cluster, places, at)
    const offsetBy = new Map(ranges.map((range) => [range.partition, range.nextOffset]))
    const rows = places.map(({ partition }): PartitionOffsets => {
      const firstOffset = firsts.get(placeName({ topic, partition })) ?? 0
      const endOffset = ends.get(placeName({ topic, partition })) ?? 0
      const offset = offsetBy.get(partition) ?? null
      return { topic, partition, firstOffset, endOffset, ...(at === undefined ? {} : { offset }) }
    })
    const columns: Column<PartitionOffsets>[] = [
      { title: 'PARTITION', value: (row) => row.partition },
      { title: 'FIRST', value: (row) => row.firstOffset },
      { title: 'END', value: (row) => row.endOffset },
    ]
    if (at !== undefined) columns.push({ title: 'AT', value: (row) => row.offset ?? null })
    await show(options, rows, () => table(columns, rows))
    const beyond = at === undefined ? undefined : beyondEndText(at, rows)
    if (beyond !== undefined) note(`rookery: ${beyond}`)
  })
}
