import { createRealPlatform } from '../platform/index.ts'
import { Cluster } from './client/cluster.ts'
import { endWithReader, note, type OutputOptions } from './output.ts'

/** The options of every command that asks a broker. */
export interface ClusterCommandOptions extends OutputOptions {
  readonly bootstrapServer: string
  /** In seconds. */
  readonly timeout: number
}

/** Runs `work` with a cluster that is closed afterwards. */
export async function withCluster<T>(
  options: ClusterCommandOptions,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const { bootstrapServer, timeout } = options
  endWithReader()
  const platform = createRealPlatform()
  const cluster = await Cluster.connect({
    platform,
    bootstrapServers: bootstrapServer,
    timeoutMs: timeout * 1000,
    onWaiting: (reason) => note(`rookery: ${reason}`),
  })
  try {
    return await work(cluster)
  } finally {
    cluster.close()
  }
}
