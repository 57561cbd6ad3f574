import { expect, test } from 'vitest'
import { Cluster } from '../../../../src/cli/client/cluster.ts'
import { startBroker } from '../../../../src/index.ts'
import { createRealPlatform } from '../../../../src/platform/index.ts'

test('a closed cluster makes no connection for what is still under way, which would keep the command from ending', async () => {
  await using broker = await startBroker()
  const { bootstrapServers } = broker
  const cluster = await Cluster.connect({ bootstrapServers, platform: createRealPlatform(), timeoutMs: 60_000 })
  cluster.close()
  await expect(cluster.any()).rejects.toThrow('The command has ended')
  await expect(cluster.retrying(() => cluster.refresh([]))).rejects.toThrow('The command has ended')
})
