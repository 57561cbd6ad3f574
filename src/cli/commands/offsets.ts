import { earliest, listOffsets, type Place, placeName } from '../client/offsets.ts'
import { parseFrom, placesAllowed, startingOffsets } from '../client/starting-offsets.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { UsageError } from '../exit.ts'
import { show, table } from '../output.ts'
import type { Column } from '../table.ts'

export interface OffsetsOptions extends ClusterCommandOptions {
  readonly at?: string
}

interface PartitionOffsets extends Place {
  readonly firstOffset: number
  /** Exclusive. */
  readonly endOffset: number
  /** What `--at` means there; the end where it is past all records. */
  readonly offset?: number
}

/** The first and the next offset of each partition, and the one that a place or a time means. */
export async function offsets(topic: string, options: OffsetsOptions): Promise<void> {
  const at = options.at === undefined ? undefined : parseFrom(options.at)
  if (options.at !== undefined && at === undefined) {
    throw new UsageError(`--at ${options.at}: allowed is ${placesAllowed}`)
  }
  await withCluster(options, async (cluster) => {
    const { partitions } = await cluster.topic(topic)
    const places = partitions.map(({ partition }) => ({ topic, partition }))
    const firsts = await listOffsets(cluster, places, earliest)
    const ranges = await startingOffsets(cluster, places, at ?? { kind: 'latest' })
    const rows = ranges.map(({ partition, nextOffset, endOffset }): PartitionOffsets => {
      const firstOffset = firsts.get(placeName({ topic, partition })) ?? 0
      return { topic, partition, firstOffset, endOffset, ...(at === undefined ? {} : { offset: nextOffset }) }
    })
    const columns: Column<PartitionOffsets>[] = [
      { title: 'PARTITION', value: (row) => row.partition },
      { title: 'FIRST', value: (row) => row.firstOffset },
      { title: 'END', value: (row) => row.endOffset },
    ]
    if (at !== undefined) columns.push({ title: 'AT', value: (row) => row.offset ?? null })
    await show(options, rows, () => table(columns, rows))
  })
}
