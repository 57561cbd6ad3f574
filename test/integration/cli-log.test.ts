import { cp, mkdir, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startBroker } from '../../src/index.ts'
import { apis, buildBatch } from '../../src/protocol/index.ts'
import { connect } from '../support/kafka-connection.ts'
import { initProducerId, produceBatch } from '../support/producing.ts'
import { recordsOfAnyAge } from '../support/records-of-any-age.ts'
import { rookery } from '../support/rookery-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A data folder that a broker left in order: `orders-0` has several segments, `__consumer_offsets` a commit. */
let original: Awaited<ReturnType<typeof temporaryFolder>>
const batches = 60
const recordsPerBatch = 10

beforeAll(async () => {
  original = await temporaryFolder()
  const config = { ...recordsOfAnyAge, 'log.index.interval.bytes': 512, 'offsets.topic.num.partitions': 1 }
  const broker = await startBroker({ storage: original.path, config })
  const client = await connect(broker.bootstrapServers)
  const topic = { numPartitions: 1, replicationFactor: 1, assignments: [] }
  const segments = { ...topic, name: 'orders', configs: [{ name: 'internal.segment.bytes', value: '16384' }] }
  await client.request(apis.CreateTopics, 7, { topics: [segments], timeoutMs: 10_000 })
  const producer = await initProducerId(client)
  for (let i = 0; i < batches; i++) {
    const records = Array.from({ length: recordsPerBatch }, (_, j) => ({
      timestamp: 1_000_000 + i * 100 + j,
      key: Buffer.from(`k${j}`),
      value: j === 0 ? null : Buffer.from('v'.repeat(100)),
      headers: [{ key: 'n', value: Buffer.from(String(i)) }],
    }))
    const codec = i % 3 === 0 ? 'zstd' : 'none'
    await produceBatch(client, 'orders', 0, { records, codec, ...producer, baseSequence: i * recordsPerBatch })
  }
  client.close()
  const reset = ['groups', 'reset-offsets', 'readers', '--to', '7', '--topic', 'orders', '--execute']
  expect(await rookery([...reset, '-b', broker.bootstrapServers])).toMatchObject({ code: 0 })
  await broker.stop()
})

afterAll(() => original[Symbol.asyncDispose]())

interface Report {
  readonly partitions: number
  readonly segments: number
  readonly batches: number
  readonly records: number
  readonly faults: number
  readonly inUseBy: string | null
  readonly findings: readonly { level: string; file: string; position?: number; message: string }[]
}

async function verified(path: string, ...args: string[]): Promise<{ code: number | null; report: Report }> {
  const { code, stdout, stderr } = await rookery(['log', 'verify', path, '--json', ...args])
  expect(stderr).not.toContain('at ') // no stack
  return { code, report: JSON.parse(stdout) as Report }
}

/** The faults of a copy of the folder that `damage` has changed. */
async function faultsAfter(damage: (copy: string) => Promise<void>, ...args: string[]) {
  await using copy = await temporaryFolder()
  await cp(original.path, copy.path, { recursive: true })
  await damage(copy.path)
  const { code, report } = await verified(copy.path, ...args)
  const faults = report.findings.filter(({ level }) => level === 'fault')
  expect(code).toBe(faults.length > 0 ? 1 : 0)
  return { faults, notes: report.findings.filter(({ level }) => level === 'note') }
}

async function segmentNames(folder: string): Promise<string[]> {
  return (await readdir(join(folder, 'orders-0'))).filter((name) => name.endsWith('.log'))
}

async function overwrite(path: string, position: number, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, position)
  await file.close()
}

/** Every file with its content, to see that nothing was written. */
async function contentOf(folder: string): Promise<Map<string, string>> {
  const names = await readdir(folder, { recursive: true })
  const contents = new Map<string, string>()
  for (const name of names.sort()) {
    const path = join(folder, name)
    const { mtimeMs } = await stat(path)
    const isFile = (await stat(path)).isFile()
    contents.set(name, `${isFile ? (await readFile(path)).toString('base64') : ''} ${mtimeMs}`)
  }
  return contents
}

describe('rookery log verify', () => {
  test('finds no fault in what a broker left, and writes nothing', async () => {
    const before = await contentOf(original.path)
    const { code, report } = await verified(original.path, '--records')
    expect(code).toBe(0)
    expect(report).toMatchObject({ faults: 0, inUseBy: null, batches: batches + 1 })
    expect(report.records).toBe(batches * recordsPerBatch + 1)
    expect(report.segments).toBeGreaterThan(3)
    expect(await contentOf(original.path)).toEqual(before)
  })

  test('names file and position of a flipped bit, and looks on behind it', async () => {
    const [first = '', second = ''] = await segmentNames(original.path)
    const { faults } = await faultsAfter(async (copy) => {
      await overwrite(join(copy, 'orders-0', first), 100, Buffer.from([0xff]))
      await overwrite(join(copy, 'orders-0', second), 100, Buffer.from([0xff]))
    })
    expect(faults).toMatchObject([
      { file: `orders-0/${first}`, position: 0, message: expect.stringContaining('CRC of offsets 0 to 9') },
      { file: `orders-0/${second}`, position: 0, message: expect.stringContaining('CRC') },
    ])
  })

  test('tells of a segment that was cut, with where, and of what lies behind', async () => {
    const [first = ''] = await segmentNames(original.path)
    const { faults } = await faultsAfter((copy) => truncate(join(copy, 'orders-0', first), 1000))
    const inLog = faults.filter(({ file }) => file === `orders-0/${first}`)
    expect(inLog[0]).toMatchObject({ message: expect.stringContaining('ends within a batch') })
    expect(faults.some(({ file }) => file.endsWith('.index'))).toBe(true)
    expect(faults.some(({ message }) => /offsets \d+ to \d+ are missing/.test(message))).toBe(true)
  })

  test('a torn tail after a crash is told with what a start will do', async () => {
    const last = (await segmentNames(original.path)).at(-1) ?? ''
    const { faults, notes } = await faultsAfter(async (copy) => {
      await rm(join(copy, '.kafka_cleanshutdown'))
      const path = join(copy, 'orders-0', last)
      await writeFile(path, Buffer.concat([await readFile(path), Buffer.alloc(30, 1)]))
    })
    expect(faults).toMatchObject([
      { file: `orders-0/${last}`, message: expect.stringContaining('so a start drops it') },
    ])
    expect(notes).toContainEqual(expect.objectContaining({ file: '.kafka_cleanshutdown' }))
  })

  test('zero bytes at the end, a foreign format and lengths without sense end a segment, not the check', async () => {
    const last = (await segmentNames(original.path)).at(-1) ?? ''
    const tails = [
      [Buffer.alloc(5000), 'are zero'],
      [
        Buffer.from('not a batch at all, but a text that is longer than the header of a batch is'),
        'no batch of format 2',
      ],
      [withLength(-1), 'lengths make no sense'],
      [withLength(0x7fff_ffff), 'ends within a batch'],
    ] as const
    for (const [tail, message] of tails) {
      const { faults } = await faultsAfter(async (copy) => {
        const path = join(copy, 'orders-0', last)
        await writeFile(path, Buffer.concat([await readFile(path), tail]))
      })
      expect(faults).toMatchObject([{ file: `orders-0/${last}`, message: expect.stringContaining(message) }])
    }
  })

  test('offsets that are there twice or missing, and epochs that go back', async () => {
    const last = (await segmentNames(original.path)).at(-1) ?? ''
    const append = async (copy: string, baseOffset: number, leaderEpoch: number) => {
      const path = join(copy, 'orders-0', last)
      const batch = buildBatch({ records: [{ timestamp: 5_000_000, key: null, value: null }], baseOffset, leaderEpoch })
      await writeFile(path, Buffer.concat([await readFile(path), batch]))
    }
    const end = batches * recordsPerBatch
    const twice = await faultsAfter((copy) => append(copy, end - 1, 0))
    expect(twice.faults.slice(0, 1)).toMatchObject([
      { message: `Offset ${end - 1} is there again: the batch before it ends with ${end - 1}` },
    ])
    const missing = await faultsAfter((copy) => append(copy, end + 5, 0))
    expect(missing.faults).toMatchObject([
      { message: expect.stringContaining(`offsets ${end} to ${end + 4} are missing`) },
    ])
    const compacted = await faultsAfter(async (copy) => {
      await append(copy, end + 5, 0)
      await writeFile(join(copy, 'cleaner-offset-checkpoint'), '0\n1\norders 0 600\n')
    })
    expect(compacted.faults).toEqual([])
    const ahead = await faultsAfter((copy) => append(copy, end, 9))
    expect(ahead.faults).toMatchObject([{ message: expect.stringContaining('leader epoch 9') }])
  })

  test('indexes that lead astray', async () => {
    const [first = ''] = await segmentNames(original.path)
    const index = (copy: string, suffix: string) => join(copy, 'orders-0', first.replace('.log', suffix))
    const wrongPosition = await faultsAfter((copy) => overwrite(index(copy, '.index'), 7, Buffer.from([0x01])))
    expect(wrongPosition.faults[0]).toMatchObject({
      file: expect.stringMatching(/\.index$/),
      message: expect.stringContaining('no batch begins'),
    })
    const cut = await faultsAfter(async (copy) => {
      await truncate(index(copy, '.index'), 11)
    })
    expect(cut.faults).toMatchObject([{ position: 8, message: 'The file ends within an entry' }])
    const early = await faultsAfter((copy) => overwrite(index(copy, '.timeindex'), 0, Buffer.alloc(8)))
    expect(early.faults[0]).toMatchObject({ file: expect.stringMatching(/\.timeindex$/) })
    const gone = await faultsAfter((copy) => rm(index(copy, '.index')))
    expect(gone.faults).toEqual([])
    expect(gone.notes.map(({ message }) => message)).toContain('Its index is missing; a start makes it anew')
  })

  test('snapshots of producers, checkpoints and epochs that contradict the log', async () => {
    const snapshots = (await readdir(join(original.path, 'orders-0'))).filter((name) => name.endsWith('.snapshot'))
    const [snapshot = ''] = snapshots
    expect(snapshot).not.toBe('')
    const flipped = await faultsAfter((copy) => overwrite(join(copy, 'orders-0', snapshot), 12, Buffer.from([0xee])))
    expect(flipped.faults).toMatchObject([
      { file: `orders-0/${snapshot}`, message: expect.stringContaining('no whole snapshot') },
    ])
    for (const file of [
      'recovery-point-offset-checkpoint',
      'replication-offset-checkpoint',
      'log-start-offset-checkpoint',
    ]) {
      const { faults } = await faultsAfter((copy) => writeFile(join(copy, file), '0\n1\norders 0 601\n'))
      expect(faults).toMatchObject([{ file, message: expect.stringContaining('is 601, and its log ends at 600') }])
      const damaged = await faultsAfter((copy) => writeFile(join(copy, file), '0\n2\norders 0 1\n'))
      expect(damaged.faults).toMatchObject([{ file, message: expect.stringContaining('damaged') }])
    }
    const epochs = await faultsAfter((copy) =>
      writeFile(join(copy, 'orders-0/leader-epoch-checkpoint'), '0\n2\n4 0\n3 10\n'),
    )
    expect(epochs.faults[0]).toMatchObject({
      file: 'orders-0/leader-epoch-checkpoint',
      message: 'Epoch 3 from 10 follows 4 from 0',
    })
    const meta = await faultsAfter((copy) => writeFile(join(copy, 'meta.properties'), 'version=9\n'))
    expect(meta.faults).toMatchObject([{ file: 'meta.properties' }])
    const metadata = await faultsAfter((copy) => writeFile(join(copy, 'orders-0/partition.metadata'), 'x'.repeat(50)))
    expect(metadata.faults).toMatchObject([{ file: 'orders-0/partition.metadata' }])
  })

  test('records that are not what their header says are found with --records only', async () => {
    const last = (await segmentNames(original.path)).at(-1) ?? ''
    const batch = buildBatch({
      records: [{ timestamp: 5_000_000, key: null, value: Buffer.from('abc') }],
      baseOffset: 600,
      leaderEpoch: 0,
    })
    batch[61] = 0x7e // the record claims to be longer than it is; the CRC is made anew
    const damage = async (copy: string) => {
      const { crc32c } = await import('../../src/protocol/index.ts')
      batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
      const path = join(copy, 'orders-0', last)
      await writeFile(path, Buffer.concat([await readFile(path), batch]))
    }
    expect((await faultsAfter(damage)).faults).toEqual([])
    expect((await faultsAfter(damage, '--records')).faults).toMatchObject([
      { message: expect.stringContaining('offsets 600 to 600') },
    ])
  })

  test('what the system refuses to read is a fault of that file, and the others are looked at', async () => {
    const [first = '', second = ''] = await segmentNames(original.path)
    const { faults } = await faultsAfter(async (copy) => {
      await rm(join(copy, 'orders-0', first))
      await mkdir(join(copy, 'orders-0', first))
      await overwrite(join(copy, 'orders-0', second), 100, Buffer.from([0xff]))
    })
    expect(faults).toMatchObject([
      { file: `orders-0/${first}`, message: 'It can not be read (EISDIR)' },
      { file: `orders-0/${second}`, message: expect.stringContaining('CRC') },
    ])
  })

  test('takes a partition or a segment too, and refuses what is neither', async () => {
    const [first = ''] = await segmentNames(original.path)
    const partition = await verified(join(original.path, 'orders-0'))
    expect(partition).toMatchObject({ code: 0, report: { partitions: 1, batches } })
    const segment = await verified(join(original.path, 'orders-0', first))
    expect(segment).toMatchObject({ code: 0, report: { partitions: 1, segments: 1 } })
    for (const path of [
      join(original.path, 'nowhere'),
      join(original.path, 'meta.properties'),
      join(original.path, '..'),
    ]) {
      expect(await rookery(['log', 'verify', path])).toMatchObject({ code: 2, stdout: '' })
    }
  })

  test('says when a broker uses the folder', async () => {
    await using copy = await temporaryFolder()
    await cp(original.path, copy.path, { recursive: true })
    const broker = await startBroker({ storage: copy.path })
    const { code, stdout, stderr } = await rookery(['log', 'verify', copy.path])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`in use by process ${process.pid}`) })
    expect(stdout).toContain('no faults')
    await broker.stop()
  })
})

describe('rookery log dump', () => {
  test('a line a batch, and what can not be read', async () => {
    const [first = ''] = await segmentNames(original.path)
    const { code, stdout } = await rookery(['log', 'dump', join(original.path, 'orders-0', first)])
    expect(code).toBe(0)
    const [title, columns, batch] = stdout.split('\n')
    expect(title).toBe(`orders-0/${first}`)
    expect(columns).toMatch(/^OFFSETS +RECORDS +POSITION +BYTES +EPOCH +LAST TIME +CODEC +PRODUCER +SEQUENCE +CRC/)
    expect(batch).toMatch(/^0-9 +10 +0 +\d+ +0 +1970-01-01T00:16:40\.009Z +zstd +\d+\/0 +0 +ok$/)
  })

  test('several paths one after the other, or none when one of them is not there', async () => {
    const names = await segmentNames(original.path)
    expect(names.length).toBeGreaterThan(1)
    const paths = names.slice(0, 2).map((name) => join(original.path, 'orders-0', name))
    const { code, stdout } = await rookery(['log', 'dump', ...paths])
    expect(code).toBe(0)
    const titles = stdout.split('\n').filter((line) => line.endsWith('.log'))
    expect(titles).toEqual(names.slice(0, 2).map((name) => `orders-0/${name}`))
    const missing = await rookery(['log', 'dump', ...paths, join(original.path, 'gone-0')])
    expect(missing).toMatchObject({ code: 2, stdout: '' })
  })

  test('records of some offsets, as JSON', async () => {
    const args = ['log', 'dump', join(original.path, 'orders-0'), '--records', '--from', '310', '--to', '311', '--json']
    const { code, stdout } = await rookery(args)
    expect(code).toBe(0)
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines).toMatchObject([
      {
        kind: 'batch',
        baseOffset: 310,
        lastOffset: 319,
        crc: 'ok',
        codec: 'none',
        producerEpoch: 0,
        baseSequence: 310,
      },
      {
        kind: 'record',
        offset: 310,
        timestamp: 1_003_100,
        key: 'k0',
        value: null,
        headers: [{ key: 'n', value: '31' }],
      },
      { kind: 'record', offset: 311, key: 'k1', value: 'v'.repeat(100) },
    ])
  })

  test('commits of groups are told in words', async () => {
    const { code, stdout } = await rookery(['log', 'dump', join(original.path, '__consumer_offsets-0'), '-r', '--json'])
    expect(code).toBe(0)
    const meanings = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { meaning?: object }).meaning)
    expect(meanings).toContainEqual(
      expect.objectContaining({ group: 'readers', topic: 'orders', partition: 0, offset: 7 }),
    )
  })

  test('a wrong CRC is shown, the rest is read on, and the exit code says so', async () => {
    await using copy = await temporaryFolder()
    await cp(join(original.path, 'orders-0'), join(copy.path, 'orders-0'), { recursive: true })
    const [first = ''] = await segmentNames(copy.path)
    await overwrite(join(copy.path, 'orders-0', first), 100, Buffer.from([0xff]))
    const { code, stdout } = await rookery(['log', 'dump', join(copy.path, 'orders-0')])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^0-9 .* WRONG$/m)
    expect(stdout).toMatch(/^590-599 .* ok$/m)
  })

  test('a folder of partitions is refused with one to choose', async () => {
    const { code, stderr } = await rookery(['log', 'dump', original.path])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('single partitions can be dumped') })
    const missing = await rookery(['log', 'dump', `${original.path}/orders-7`])
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('made with its first record') })
  })
})

/** The beginning of a batch with this length field. */
function withLength(length: number): Buffer {
  const bytes = buildBatch({ records: [{ timestamp: 0, key: null, value: Buffer.alloc(40) }], baseOffset: 600 })
  bytes.writeInt32BE(length, 8)
  return bytes
}
