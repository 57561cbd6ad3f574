import { messageOf } from '../../base/index.ts'
import type { Cluster } from '../client/cluster.ts'
import { Fetcher } from '../client/fetcher.ts'
import { Producer } from '../client/producer.ts'
import { createTopics, deleteTopics } from '../client/topics.ts'
import { clockFinding } from './cluster-checks.ts'
import { type DoctorFinding, fail, ok } from './finding.ts'

/** Writes a record to a topic of its own, reads it back and deletes the topic. Its time is the broker's. */
export async function checkWriting(cluster: Cluster): Promise<readonly DoctorFinding[]> {
  const suffix = Array.from({ length: 8 }, () => cluster.platform.random.int(36).toString(36)).join('')
  const name = `rookery-doctor-${suffix}`
  const configs = { 'message.timestamp.type': 'LogAppendTime' }
  const [created] = await createTopics(cluster, [{ name, partitions: 1, replicationFactor: -1, configs }])
  if (created === undefined || created.error !== undefined) {
    const reason = created?.error?.message ?? 'no answer'
    return [fail('write', `A topic for the probe can not be created: ${reason}`, 'Without it nothing was written')]
  }
  try {
    return await probe(cluster, name)
  } catch (error) {
    const advice = 'The addresses, disks and replicas above may say why'
    return [fail('write', `A record can not be written and read back: ${messageOf(error)}`, advice)]
  } finally {
    await deleteTopics(cluster, [name])
  }
}

async function probe(cluster: Cluster, topic: string): Promise<readonly DoctorFinding[]> {
  const producer = await Producer.open(cluster, { topic, acks: -1, codec: 'none' })
  const value = Buffer.from('rookery doctor')
  // The first record pays for what is set up once.
  producer.add({ timestamp: Date.now(), key: null, value })
  await producer.flush()
  const sentMs = Date.now()
  const startMs = performance.now()
  producer.add({ timestamp: sentMs, key: null, value })
  await producer.flush()
  const writeMs = performance.now() - startMs
  let readTimestamp: number | undefined
  const readStartMs = performance.now()
  const fetcher: Fetcher = new Fetcher(cluster, [{ topic, partition: 0, nextOffset: 1, endOffset: 2 }], {
    onRecords: async (records) => {
      readTimestamp = records[0]?.timestamp
      return records.length
    },
    onOutOfRange: () => fetcher.stop(),
  })
  await fetcher.run()
  const readMs = performance.now() - readStartMs
  if (readTimestamp === undefined)
    return [fail('write', 'A record that was acknowledged is not there', 'See the log of the broker')]
  return [
    ok(
      'write',
      `A record was written with acks=all in ${writeMs.toFixed(1)} ms and read back in ${readMs.toFixed(1)} ms`,
    ),
    clockFinding(readTimestamp - (sentMs + writeMs / 2), writeMs),
  ]
}
