import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, BatchView, type Codec, openRecordBytes, readRecords } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { until } from '../support/condition.ts'
import { startKafkaBroker } from '../support/kafka-broker.ts'
import { connect } from '../support/kafka-connection.ts'
import { describeWithPeer } from '../support/peers.ts'
import { produceBatch } from '../support/producing.ts'
import { runPeer } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const codecs: readonly Codec[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
const rounds = 60
const waitMs = 100_000
const brokerConfig = { 'log.cleaner.backoff.ms': 200, 'log.initial.task.delay.ms': 0 }
const topicConfig = {
  'cleanup.policy': 'compact',
  'internal.segment.bytes': '8000',
  'min.cleanable.dirty.ratio': '0.01',
  'index.interval.bytes': '100',
}

describeWithPeer('kafka', 'a compacted log', (peer) => {
  test('has the records and batches that Apache Kafka leaves of it, and Kafka reads its files without a fault', async () => {
    await using folder = await temporaryFolder()
    await using rookery = await BrokerProcess.start({ folder: folder.path, config: brokerConfig })
    await using kafka = await startKafkaBroker(peer, { config: brokerConfig })
    const clients = [await connect(rookery.bootstrapServers), await connect(kafka.bootstrapServers)]
    const startMs = Date.now()
    for (const client of clients) await writeWorkload(client, startMs)
    const [ours, theirs] = clients as [KafkaClient, KafkaClient]
    // The same moment can't be met in both while they clean; in the end they agree.
    let found: string[] = []
    let expected: string[] = []
    const isClean = async () => {
      found = await contents(ours)
      expected = await contents(theirs)
      return batchCount(found) < (codecs.length * rounds) / 2 && lasting(found).join() === lasting(expected).join()
    }
    await until(isClean, 'both logs are clean', waitMs).catch(() => {})
    expect(lasting(found)).toEqual(lasting(expected))
    // Kafka keeps the last batch of a producer when it is empty, Rookery the last five.
    expect(found).toEqual(expect.arrayContaining(expected))
    expect(found.length - expected.length).toBeLessThanOrEqual(4)
    expect(batchCount(found)).toBeLessThan((codecs.length * rounds) / 2)
    expect(found.some((line) => line.includes('horizon'))).toBe(true)
    expect(found.some((line) => line.endsWith(' empty'))).toBe(true)
    for (const client of clients) client.close()
    expect((await rookery.stop()).exitCode).toBe(0)

    const directory = join(folder.path, 'compacted-0')
    const files = (await readdir(directory)).filter((name) => /\.(?:log|index|timeindex|snapshot)$/.test(name))
    const paths = files.map((name) => join(directory, name)).join(',')
    const dumped = await runPeer(peer, ['org.apache.kafka.tools.DumpLogSegments', '--deep-iteration', '--files', paths])
    expect(dumped.exitCode, dumped.output.slice(-5000)).toBe(0)
    expect(dumped.stdout.match(/isvalid: true/g)?.length).toBeGreaterThan(10)
    expect(dumped.stdout.match(/deleteHorizonMs: OptionalLong\[\d+\]/g)?.length).toBeGreaterThan(0)
    expect(
      dumped.stdout.split('\n').filter((line) => /mismatch|isvalid: false|invalid|exception|Found /i.test(line)),
    ).toEqual([])
  }, 240_000)
})

function lasting(lines: readonly string[]): string[] {
  return lines.filter((line) => !line.endsWith(' empty'))
}

function batchCount(lines: readonly string[]): number {
  return lines.filter((line) => line.startsWith('batch')).length
}

/** Keys that come again and again and such that don't, tombstones, every codec, an idempotent producer that stops. */
async function writeWorkload(client: KafkaClient, startMs: number): Promise<void> {
  const configs = Object.entries(topicConfig).map(([name, value]) => ({ name, value }))
  const topic = { name: 'compacted', numPartitions: 1, replicationFactor: 1, assignments: [], configs }
  const { topics } = await client.request(apis.CreateTopics, 7, { topics: [topic], timeoutMs: 10_000 })
  expect(topics[0]?.errorCode).toBe(0)
  const producer = { producerId: 4711, producerEpoch: 0 }
  let sequence = 0
  for (let round = 0; round < rounds; round++) {
    for (const [index, codec] of codecs.entries()) {
      const place = round * codecs.length + index
      const records = Array.from({ length: 1 + (place % 6) }, (_, i) => ({
        timestamp: startMs - 1000 + ((place * 37 + i * 13) % 900),
        key: Buffer.from((place + i) % 9 === 0 ? `rare ${place}` : `often ${(place + i * 2) % 8}`),
        value: (place + i) % 11 === 3 ? null : Buffer.from(`value ${place} ${i} `.repeat(8)),
      }))
      const isIdempotent = round < 10
      const options = isIdempotent ? { ...producer, baseSequence: sequence } : {}
      if (isIdempotent) sequence += records.length
      const send = () =>
        produceBatch(client, 'compacted', 0, { records, codec, ...options }).then(
          () => true,
          () => false,
        )
      await until(send, 'the topic takes records', waitMs)
    }
  }
}

/** A line for each batch and each record. Without what only tells when it was cleaned. */
async function contents(client: KafkaClient): Promise<string[]> {
  const lines: string[] = []
  let fetchOffset = 0
  for (;;) {
    const { responses } = await client.request(apis.Fetch, 12, {
      maxWaitMs: 0,
      minBytes: 0,
      maxBytes: 1 << 24,
      topics: [{ topic: 'compacted', partitions: [{ partition: 0, fetchOffset, partitionMaxBytes: 1 << 24 }] }],
      forgottenTopicsData: [],
      rackId: '',
    })
    const part = responses[0]?.partitions[0]
    const bytes = part?.records ?? Buffer.alloc(0)
    if (part === undefined || part.errorCode !== 0 || bytes.length === 0) return lines
    const view = new BatchView(bytes)
    for (let at = 0; at < bytes.length; at += view.sizeBytes) {
      view.moveTo(bytes, at)
      fetchOffset = view.lastOffset + 1
      const records = [...readRecords(view, openRecordBytes(view, 1 << 24))]
      // A batch keeps its horizon when the tombstones that it was for have gone: then it tells when it was cleaned.
      const hasTombstone = records.some(({ value }) => value === null)
      lines.push(
        `batch ${view.baseOffset}-${view.lastOffset} codec ${view.codecId} sequence ${view.baseSequence} max ${view.maxTimestamp}` +
          `${hasTombstone && view.hasDeleteHorizon ? ' horizon' : ''}${view.recordCount === 0 ? ' empty' : ''}`,
      )
      for (const { offset, timestamp, key, value } of records) lines.push(`${offset} ${timestamp} ${key} ${value}`)
    }
  }
}
