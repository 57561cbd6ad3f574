import { electLeaders, type PartitionName } from '../client/reassignments.ts'
import { matchingTopics } from '../client/topics.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { confirmed, note } from '../output.ts'
import { showPartitionOutcomes } from '../partition-outcomes.ts'

export interface ElectOptions extends ClusterCommandOptions {
  /** All when left out. */
  readonly partition?: readonly number[]
  readonly unclean?: boolean
  readonly yes?: boolean
}

const electionNotNeeded = 84

/**
 * Has leaders elected, of all topics or some: the first replica of each partition, or with `unclean`, where there is no leader,
 * any that lives.
 */
export async function elect(patterns: readonly string[], options: ElectOptions): Promise<void> {
  const { unclean = false, yes = false, partition: only } = options
  const question = 'Elect leaders that may lack records which were acknowledged? Those are lost then'
  if (unclean && !yes && !(await confirmed(`${question}.`))) return
  await withCluster(options, async (cluster) => {
    const named: PartitionName[] = []
    for (const topic of await matchingTopics(cluster, patterns)) {
      const { partitions } = await cluster.topic(topic)
      const wanted = only ?? partitions.map(({ partition }) => partition)
      for (const partition of wanted) named.push({ topic, partition })
    }
    const all = await electLeaders(cluster, unclean ? 'unclean' : 'preferred', patterns.length === 0 ? null : named)
    // Who asks for topics, not partitions, wants what is missing.
    const isDone = (errorCode: number | undefined) => errorCode === electionNotNeeded && only === undefined
    const outcomes = all.filter(({ error }) => !isDone(error?.errorCode))
    await showPartitionOutcomes(options, outcomes, (name) => `Partition ${name}: leader elected`)
    if (outcomes.length === 0) note('No election was needed')
  })
}
