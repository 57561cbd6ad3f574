import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { apis, type Codec } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { connect } from '../support/kafka-connection.ts'
import { describeWithPeer, type Peer } from '../support/peers.ts'
import { initProducerId, produceBatch } from '../support/producing.ts'
import { runPeer } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const codecs: readonly Codec[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
/** Small, so that a short workload rolls many segments and has many index entries. */
const segmentBytes = 16 * 1024
const config = { 'log.index.interval.bytes': 512, 'num.partitions': 1 }

describeWithPeer('kafka', "Apache Kafka's DumpLogSegments", (peer) => {
  test('finds no fault in what a node wrote, after a clean stop and after kill -9 with recovery', async () => {
    await using folder = await temporaryFolder()
    await using first = await BrokerProcess.start({ folder: folder.path, config })
    await createTopic(first.bootstrapServers)
    await writeWorkload(first.bootstrapServers, 'first')
    expect((await first.stop()).exitCode).toBe(0)
    const afterStop = await dumpFolder(peer, folder.path)
    expect(afterStop.batchCount).toBe(batchesPerWorkload)
    expect(afterStop.segmentCount).toBeGreaterThan(3)
    expect(afterStop.commitsOf('group-first')).toEqual([1, 2, 3])

    await using second = await BrokerProcess.start({ folder: folder.path, config })
    await writeWorkload(second.bootstrapServers, 'second')
    await second.kill()
    await using third = await BrokerProcess.start({ folder: folder.path, config })
    await writeWorkload(third.bootstrapServers, 'third')
    // The node runs on: its files are as they are while it serves.
    const afterKill = await dumpFolder(peer, folder.path)
    expect(afterKill.batchCount).toBe(3 * batchesPerWorkload)
    expect(afterKill.commitsOf('group-second')).toEqual([1, 2, 3])
    expect(afterKill.commitsOf('group-third')).toEqual([1, 2, 3])
  })
})

async function createTopic(address: string): Promise<void> {
  const client = await connect(address)
  const configs = [{ name: 'internal.segment.bytes', value: `${segmentBytes}` }]
  const topic = { numPartitions: 1, replicationFactor: 1, assignments: [], configs }
  const { topics } = await client.request(apis.CreateTopics, 7, {
    topics: ['plain', 'idempotent'].map((name) => ({ ...topic, name })),
    timeoutMs: 10_000,
  })
  expect(topics.map(({ errorCode, errorMessage }) => [errorCode, errorMessage])).toEqual([
    [0, null],
    [0, null],
  ])
  client.close()
}

const roundsPerWorkload = 30
const batchesPerWorkload = 2 * roundsPerWorkload * codecs.length

/** Every codec, null and empty fields, headers, times that go back; and commits of a group. */
async function writeWorkload(address: string, name: string): Promise<void> {
  const client = await connect(address)
  const producer = await initProducerId(client)
  let sequence = 0
  const startMs = Date.now()
  for (let round = 0; round < roundsPerWorkload; round++) {
    for (const codec of codecs) {
      const records = Array.from({ length: 1 + (round % 7) }, (_, index) => ({
        timestamp: startMs + round * 10 - index * 25,
        key: index === 0 ? null : Buffer.from(index === 1 ? '' : `key ${index}`),
        value: index === 2 ? null : Buffer.from(`${name} ${round} ${index} `.repeat(30)),
        headers: index === 3 ? [{ key: 'h', value: null }] : [],
      }))
      await produceBatch(client, 'plain', 0, { records, codec })
      await produceBatch(client, 'idempotent', 0, { records, codec, ...producer, baseSequence: sequence })
      sequence += records.length
    }
  }
  await client.request(apis.FindCoordinator, 3, { key: `group-${name}`, keyType: 0 })
  for (const committedOffset of [1, 2, 3]) {
    const { topics } = await client.request(apis.OffsetCommit, 8, {
      groupId: `group-${name}`,
      generationIdOrMemberEpoch: -1,
      memberId: '',
      topics: [{ name: 'plain', partitions: [{ partitionIndex: 0, committedOffset, committedMetadata: 'm' }] }],
    })
    expect(topics[0]?.partitions[0]?.errorCode).toBe(0)
  }
  client.close()
}

interface Dump {
  readonly segmentCount: number
  /** Of the two topics that the workload wrote. */
  readonly batchCount: number
  /** The offsets that a group committed, as the decoder shows them. */
  commitsOf(groupId: string): number[]
}

/** Has Kafka read every file of every partition, and fails for any fault that it names. */
async function dumpFolder(peer: Peer, folder: string): Promise<Dump> {
  const files = await partitionFiles(folder)
  const of = (...extensions: string[]) => files.filter((file) => extensions.some((each) => file.endsWith(each)))
  const offsets = of('.log').filter((file) => file.includes('__consumer_offsets-'))
  const dump = async (paths: readonly string[], ...options: string[]) => {
    expect(paths.length).toBeGreaterThan(0)
    const args = ['org.apache.kafka.tools.DumpLogSegments', ...options, '--files', paths.join(',')]
    const { exitCode, stdout, stderr, output } = await runPeer(peer, args)
    expect(exitCode, output.slice(-5_000)).toBe(0)
    expect(stderr.replace(beforeTheFirst, '')).toBe('')
    expect(faultsIn(stdout)).toEqual([])
    for (const path of paths) expect(stdout).toContain(`Dumping ${path}`)
    return stdout
  }
  const everything = await dump(of('.log', '.index', '.timeindex', '.snapshot'), '--deep-iteration')
  const sanity = await dump(of('.index', '.timeindex'), '--index-sanity-check')
  expect(sanity.match(/ (?:passed sanity check|is empty)\.$/gm)).toHaveLength(of('.index', '.timeindex').length)
  const decoded = await dump(offsets, '--offsets-decoder', '--deep-iteration')

  const batches = everything.split('\n').filter((line) => line.startsWith('baseOffset: '))
  for (const batch of batches) expect(batch).toContain('isvalid: true')
  const records = everything.split('\n').filter((line) => line.startsWith('| offset: '))
  expect(records.length).toBeGreaterThan(batches.length)
  // Rolled segments have entries in their indexes, and each roll left a snapshot with the producer in it.
  expect(everything).toMatch(/^offset: \d+ position: \d+$/m)
  expect(everything).toMatch(/^timestamp: \d+ offset: \d+$/m)
  expect(everything).toMatch(/^producerId: \d+ producerEpoch: 0 coordinatorEpoch: -1/m)

  const segments = of('.log').filter((file) => /\/(?:plain|idempotent)-0\//.test(file))
  return {
    segmentCount: segments.length,
    batchCount: segments.map((file) => batchesOf(everything, file)).reduce((sum, count) => sum + count, 0),
    commitsOf: (groupId) =>
      [...decoded.matchAll(/"group":"([^"]+)".*?"offset":(\d+)/g)]
        .filter((match) => match[1] === groupId)
        .map((match) => Number(match[2])),
  }
}

/** The tool begins with -1 in every file, so that it misses something before each segment but the one at 0. */
const beforeTheFirst = /^Non-consecutive offsets in .*\/0*(\d+)\.log\n {2}-1 is followed by \1\n/gm

/** What the tool says when a file is not as it should be; it ends with 0 all the same. */
function faultsIn(stdout: string): string[] {
  const fault =
    /mismatch|isvalid: false|out of order|invalid|corrupt|exception|not found|failed|error|larger than|Found /i
  return stdout.split('\n').filter((line) => fault.test(line))
}

/** Batches that were dumped of one segment. */
function batchesOf(stdout: string, path: string): number {
  const [, rest = ''] = stdout.split(`Dumping ${path}\n`)
  return (rest.split('\nDumping ')[0] ?? '').split('\n').filter((line) => line.startsWith('baseOffset: ')).length
}

async function partitionFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && /-\d+$/.test(entry.parentPath) && !entry.parentPath.includes('__cluster'))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => /\.(?:log|index|timeindex|snapshot)$/.test(path))
    .sort()
}
