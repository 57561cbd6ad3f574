import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { type RunningProgram, runPeer, startProgram } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { msOf, shortestMs } from '../support/timing.ts'

/** A record as `kcat -J` prints it. */
interface PrintedRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly ts: number
  readonly headers?: readonly string[]
  readonly key: string | null
  readonly payload: string | null
}

describeWithPeer('kcat', 'kcat (librdkafka 2.0)', (peer) => {
  let node: LoggedBroker
  beforeAll(async () => {
    node = await startLoggedBroker({
      topics: [{ name: 'two', partitions: 2 }, { name: 'edges' }, { name: 'near-limit' }],
    })
  })
  afterAll(async () => {
    await node[Symbol.asyncDispose]()
    // Every request it sent could be read and was answered.
    expect(node.complaints()).toEqual([])
  })

  const kcat = (args: readonly string[], input: string | Buffer = '') =>
    runPeer(peer, ['-b', node.bootstrapServers, '-m', '30', ...args], { input }) // its own patience is 5 s

  const produce = async (args: readonly string[], input: string | Buffer = '') => {
    const { exitCode, output } = await kcat(['-P', ...args], input)
    expect(exitCode, output).toBe(0)
  }

  const consume = async (...args: string[]): Promise<PrintedRecord[]> => {
    const { exitCode, stdout, output } = await kcat(['-C', '-J', '-e', '-q', ...args])
    expect(exitCode, output).toBe(0)
    return parsed(stdout)
  }

  test.each(['none', 'gzip', 'snappy', 'lz4', 'zstd'])('writes and reads batches packed with %s', async (codec) => {
    const topic = `codec-${codec}`
    const lines = Array.from({ length: 500 }, (_, index) => `record ${index} ${'repeated '.repeat(20)}`)
    await produce(['-t', topic, '-p', '0', '-z', codec], lines.join('\n'))
    expect((await consume('-t', topic)).map(({ payload }) => payload)).toEqual(lines)
    const client = await connect(node.bootstrapServers)
    const batches = await readPartition(client, topic, 0)
    client.close()
    // Stored as they came, not packed anew or unpacked.
    expect(new Set(batches.map((batch) => batch.codec))).toEqual(new Set([codec]))
  })

  test('keeps null apart from empty, and headers in their order', async () => {
    const headers = ['-H', 'a=1', '-H', 'a=2', '-H', 'empty=', '-H', 'null']
    await produce(['-t', 'edges', '-K:', ...headers], 'key:value\n:no key\nno value:\n:\n')
    await produce(['-t', 'edges', '-K:', '-Z'], 'key:value\n:no key\nno value:\n:\n')
    const records = await consume('-t', 'edges')
    expect(records.map(({ key, payload }) => [key, payload])).toEqual([
      ['key', 'value'],
      ['', 'no key'],
      ['no value', ''],
      ['', ''],
      ['key', 'value'],
      [null, 'no key'],
      ['no value', null],
      [null, null],
    ])
    expect(records[0]?.headers).toEqual(['a', '1', 'a', '2', 'empty', '', 'null', null])
    expect(records[4]?.headers).toBeUndefined()
  })

  test('writes a batch of exactly max.message.bytes, and is told when it is a byte more', async () => {
    await using folder = await temporaryFolder()
    const [fits, tooLarge] = [join(folder.path, 'fits'), join(folder.path, 'too-large')]
    const valueBytes = 1_048_588 - 61 - 11 // a batch's header, and what frames one record of this size
    await writeFile(fits, Buffer.alloc(valueBytes, 'x'))
    await writeFile(tooLarge, Buffer.alloc(valueBytes + 1, 'x'))
    const args = ['-t', 'near-limit', '-p', '0', '-X', 'message.max.bytes=3000000']
    await produce([...args, fits])
    const refused = await kcat(['-P', ...args, tooLarge])
    expect(refused.output).toMatch(/Broker: Message size too large/)
    const client = await connect(node.bootstrapServers)
    const batches = await readPartition(client, 'near-limit', 0)
    client.close()
    expect(batches.map(({ sizeBytes }) => sizeBytes)).toEqual([1_048_588])
  })

  test('writes as an idempotent producer', async () => {
    const args = ['-X', 'enable.idempotence=true', '-X', 'batch.num.messages=10', '-X', 'linger.ms=1']
    const lines = Array.from({ length: 300 }, (_, index) => `${index}`)
    await produce(['-t', 'idempotent', '-p', '0', ...args], lines.join('\n'))
    const client = await connect(node.bootstrapServers)
    const batches = await readPartition(client, 'idempotent', 0)
    client.close()
    expect(batches.flatMap(({ records }) => records.map(({ value }) => String(value)))).toEqual(lines)
    expect(new Set(batches.map(({ producerId }) => producerId >= 0))).toEqual(new Set([true]))
    expect(batches.map(({ baseSequence }) => baseSequence)).toEqual(batches.map(({ baseOffset }) => baseOffset))
  })

  test('writes with acks 0 and 1', async () => {
    for (const acks of ['0', '1']) await produce(['-t', `acks-${acks}`, '-p', '0', '-X', `acks=${acks}`], 'a\nb\nc')
    // Each look starts kcat anew: the second that poll() waits may be too short for one.
    await expect.poll(async () => (await consume('-t', 'acks-0')).length, { timeout: 20_000 }).toBe(3)
    expect(await consume('-t', 'acks-1')).toHaveLength(3)
  })

  test('lists brokers and topics', async () => {
    const { stdout } = await kcat(['-L', '-J'])
    const listing = JSON.parse(stdout) as Listing
    const [host, port] = node.bootstrapServers.split(':')
    expect(listing.brokers).toEqual([{ id: 1, name: `${host}:${port}` }])
    expect(listing.controllerid).toBe(1)
    const two = listing.topics.find(({ topic }) => topic === 'two')
    expect(two?.partitions.map(({ partition, leader, isrs }) => [partition, leader, isrs])).toEqual([
      [0, 1, [{ id: 1 }]],
      [1, 1, [{ id: 1 }]],
    ])
  })

  test('finds the offset of a time, and reads from it', async () => {
    const topic = 'by-time'
    for (const each of ['a', 'b', 'c']) await produce(['-t', topic, '-p', '0'], each)
    const [, second] = await consume('-t', topic)
    const time = second?.ts ?? 0
    const query = await kcat(['-Q', '-t', `${topic}:0:${time}`])
    expect(query.stdout).toMatch(/by-time \[0\] offset 1\b/)
    const later = await kcat(['-Q', '-t', `${topic}:0:${time + 60_000}`])
    expect(later.stdout).toMatch(/by-time \[0\] offset (-1|END)/)
    expect((await consume('-t', topic, '-o', `s@${time}`)).map(({ payload }) => payload)).toEqual(['b', 'c'])
  })

  test('two members share a group, take over from each other, and leave committed offsets behind', async () => {
    const member = () =>
      startProgram(peer.command, [
        '-b',
        node.bootstrapServers,
        '-G',
        'shared',
        '-J',
        '-u',
        '-X',
        'auto.offset.reset=earliest',
        'two',
      ])
    const produceTen = async (name: string) => {
      for (const partition of ['0', '1']) {
        const lines = Array.from({ length: 10 }, (_, index) => `${name} ${partition} ${index}`)
        await produce(['-t', 'two', '-p', partition], lines.join('\n'))
      }
    }
    const received = (of: RunningProgram, name: string) =>
      parsed(of.stdout).filter(({ payload }) => payload?.startsWith(name))
    await produceTen('first')
    const one = member()
    await one.until(() => received(one, 'first').length === 20, 'the first member reads both partitions')
    const other = member()
    await other.until(() => lastAssignment(other) === 1 && lastAssignment(one) === 1, 'each member has a partition')
    await produceTen('second')
    const both = () => [received(one, 'second').length, received(other, 'second').length]
    await one.until(() => String(both()) === '10,10', 'each member reads its partition')
    one.kill('SIGTERM')
    await one.ended()
    await other.until(() => lastAssignment(other) === 2, 'the member that stays has both partitions')
    await produceTen('third')
    await other.until(() => received(other, 'third').length === 20, 'the member that stays reads both partitions')
    other.kill('SIGTERM')
    await other.ended()
    // Who left had committed: nothing was read again.
    expect(parsed(one.stdout).length + parsed(other.stdout).length).toBe(60)
    await produceTen('fourth')
    const later = member()
    await later.until(() => received(later, 'fourth').length === 20, 'a later member goes on where the others ended')
    later.kill('SIGTERM')
    await later.ended()
    expect(parsed(later.stdout)).toHaveLength(20)
  })

  test('is told at once that there are no transactions', async () => {
    const refuse = async () => {
      const { exitCode, output } = await kcat(
        ['-P', '-t', 'transactional', '-X', 'transactional.id=t', '-m', '20'],
        'a',
      )
      expect(exitCode).not.toBe(0)
      expect(output).toMatch(/transaction/i)
    }
    expect(await shortestMs(10_000, () => msOf(refuse))).toBeLessThan(10_000)
  })
})

interface Listing {
  readonly controllerid: number
  readonly brokers: readonly unknown[]
  readonly topics: readonly {
    readonly topic: string
    readonly partitions: readonly { readonly partition: number; readonly leader: number; readonly isrs: unknown }[]
  }[]
}

function parsed(stdout: string): PrintedRecord[] {
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as PrintedRecord)
}

/** How many partitions it was given last. */
function lastAssignment({ stderr }: RunningProgram): number | undefined {
  const last = stderr.split('\n').findLast((line) => line.includes('assigned:'))
  return last?.match(/\[\d+\]/g)?.length
}
