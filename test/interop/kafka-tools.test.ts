import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { produceBatch } from '../support/producing.ts'
import { type RunningProgram, startProgram } from '../support/programs.ts'
import { ToolHost } from './java/tool-host.ts'

// A call starts a Java machine, of which a busy machine makes a few a minute.
vi.setConfig({ testTimeout: 180_000 })

const tools = 'org.apache.kafka.tools'
const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

describeWithPeer('kafka-compiled', "Apache Kafka's console tools", (peer) => {
  let node: LoggedBroker
  let host: ToolHost
  beforeAll(async () => {
    host = new ToolHost(peer)
    node = await startLoggedBroker({ topics: [{ name: 'shared', partitions: 2 }, 'times'] })
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
    expect(node.complaints()).toEqual([])
  })

  const command = (tool: string, ...args: string[]) => [
    `${tools}.${tool}`,
    '--bootstrap-server',
    node.bootstrapServers,
    ...args,
  ]
  const attempt = ([mainClass = '', ...args]: readonly string[], input?: string) => host.run(mainClass, args, input)
  const run = async (args: readonly string[], input?: string): Promise<string> => {
    const { exitCode, stdout, output } = await attempt(args, input)
    expect(exitCode, output).toBe(0)
    return stdout
  }
  const topics = (...args: string[]) => command('TopicCommand', ...args)
  const groups = (...args: string[]) => command('consumer.group.ConsumerGroupCommand', ...args)
  const offsets = (...args: string[]) => command('GetOffsetShell', ...args)
  const producer = (topic: string, ...args: string[]) => command('ConsoleProducer', '--topic', topic, ...args)
  const consumer = (topic: string, ...args: string[]) =>
    command('consumer.ConsoleConsumer', '--topic', topic, '--from-beginning', ...args)

  const membersOf = async (groupId: string): Promise<number | undefined> => {
    const client = await connect(node.bootstrapServers)
    const {
      groups: [found],
    } = await client.request(apis.DescribeGroups, 5, { groups: [groupId] })
    client.close()
    return found?.groupState === 'Stable' ? found.members.length : undefined
  }

  test('topics are created, listed, described and deleted', async () => {
    const settings = ['--partitions', '3', '--config', 'retention.ms=1000000', '--config', 'compression.type=zstd']
    expect(await run(topics('--create', '--topic', 'made', ...settings))).toContain('Created topic made.')
    expect((await run(topics('--list'))).split('\n')).toContain('made')
    const described = await run(topics('--describe', '--topic', 'made'))
    expect(described).toMatch(
      /PartitionCount: 3\tReplicationFactor: 1\tConfigs: compression.type=zstd,retention.ms=1000000/,
    )
    expect(described.match(/Partition: \d\tLeader: 1\tReplicas: 1\tIsr: 1/g)).toHaveLength(3)
    const configs = command('ConfigCommand', '--describe', '--all', '--entity-type', 'topics', '--entity-name', 'made')
    const listed = await run(configs)
    expect(listed).toMatch(
      /retention\.ms=1000000 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=1000000/,
    )
    expect(listed).toMatch(/max\.message\.bytes=1048588 .*DEFAULT_CONFIG:message\.max\.bytes=1048588/)
    await run(topics('--delete', '--topic', 'made'))
    expect((await run(topics('--list'))).split('\n')).not.toContain('made')
  })

  test('a topic gets further partitions, as many as asked or where asked', async () => {
    await run(topics('--create', '--topic', 'grown'))
    await run(topics('--alter', '--topic', 'grown', '--partitions', '3'))
    await run(topics('--alter', '--topic', 'grown', '--partitions', '5', '--replica-assignment', '1,1,1,1,1'))
    expect(await run(topics('--describe', '--topic', 'grown'))).toMatch(/PartitionCount: 5/)
    const less = await attempt(topics('--alter', '--topic', 'grown', '--partitions', '2'))
    expect([less.exitCode, less.output]).toEqual([1, expect.stringMatching(/InvalidPartitionsException/)])
  })

  test('settings of topics, of a broker and of all brokers are altered and described', async () => {
    const configs = (...args: string[]) => command('ConfigCommand', ...args)
    const ofTopic = ['--entity-type', 'topics', '--entity-name', 'tuned']
    const ofBroker = ['--entity-type', 'brokers', '--entity-name', '1']
    const ofAll = ['--entity-type', 'brokers', '--entity-default']
    await run(topics('--create', '--topic', 'tuned'))
    await run(configs('--alter', ...ofTopic, '--add-config', 'cleanup.policy=[compact,delete],max.message.bytes=12345'))
    await run(configs('--alter', ...ofTopic, '--delete-config', 'max.message.bytes'))
    await run(configs('--alter', ...ofBroker, '--add-config', 'log.retention.ms=7777'))
    await run(configs('--alter', ...ofAll, '--add-config', 'log.retention.ms=8888,message.max.bytes=2000000'))
    expect(await run(configs('--describe', ...ofTopic))).toBe(
      'Dynamic configs for topic tuned are:\n' +
        '  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}\n',
    )
    expect(await run(configs('--describe', ...ofBroker))).toMatch(
      /log\.retention\.ms=7777 sensitive=false synonyms=\{DYNAMIC_BROKER_CONFIG:log\.retention\.ms=7777, DYNAMIC_DEFAULT_BROKER_CONFIG:log\.retention\.ms=8888, DEFAULT_CONFIG:log\.retention\.hours=168\}/,
    )
    expect(await run(configs('--describe', ...ofAll))).toMatch(/message\.max\.bytes=2000000 sensitive=false/)
    expect(await run(configs('--describe', '--all', ...ofTopic))).toMatch(/retention\.ms=7777 /)
    for (const entity of [ofBroker, ofAll]) {
      await run(configs('--alter', ...entity, '--delete-config', 'log.retention.ms'))
    }
    await run(configs('--alter', ...ofAll, '--delete-config', 'message.max.bytes'))
    expect(await run(configs('--describe', ...ofAll))).not.toContain('=')
    const fixed = await attempt(configs('--alter', ...ofBroker, '--add-config', 'num.partitions=2'))
    expect([fixed.exitCode, fixed.output]).toEqual([1, expect.stringMatching(/Cannot update num.partitions/)])
  })

  test('records at the start of a partition are deleted', async () => {
    await run(producer('emptied'), Array.from({ length: 10 }, (_, i) => `line ${i}`).join('\n'))
    const folder = await mkdtemp(join(tmpdir(), 'rookery-offsets-'))
    try {
      const file = join(folder, 'offsets.json')
      const deletion = async (offset: number) => {
        const partitions = [{ topic: 'emptied', partition: 0, offset }]
        await writeFile(file, JSON.stringify({ partitions, version: 1 }))
        return (await attempt(command('DeleteRecordsCommand', '--offset-json-file', file))).output
      }
      expect(await deletion(4)).toContain('partition: emptied-0\tlow_watermark: 4')
      expect(await run(consumer('emptied', '--max-messages', '1'))).toBe('line 4\n')
      expect(await deletion(99)).toMatch(/partition: emptied-0\terror: .*OffsetOutOfRangeException/)
      expect(await deletion(-1)).toContain('partition: emptied-0\tlow_watermark: 10')
      expect(await run(offsets('--topic', 'emptied', '--time', 'earliest'))).toBe('emptied:0:10\n')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test.each([
    ['a topic that exists', ['--create', '--topic', 'shared'], /Topic '?shared'? already exists/],
    ['a name with other characters', ['--create', '--topic', 'bad/name'], /InvalidTopicException/],
    [
      'more replicas than brokers',
      ['--create', '--topic', 'r', '--replication-factor', '3'],
      /InvalidReplicationFactor/,
    ],
    ['an unknown setting', ['--create', '--topic', 'c', '--config', 'nope=1'], /Unknown topic config name: nope/],
    ['a setting out of range', ['--create', '--topic', 'c', '--config', 'retention.ms=-2'], /retention\.ms/],
  ])('%s is refused with the reason', async (_, args, reason) => {
    const { exitCode, output } = await attempt(topics(...args))
    expect(exitCode).toBe(1)
    expect(output).toMatch(reason)
  })

  test('the producer, idempotent by default, and the consumer agree about every codec', async () => {
    const lines = (codec: string) =>
      Array.from({ length: 200 }, (_, index) => `${codec} ${index} ${'repeated '.repeat(20)}`)
    const topic = (codec: string) => `codec-${codec}`
    await Promise.all(
      codecs.map((codec) => run(producer(topic(codec), '--compression-codec', codec), lines(codec).join('\n'))),
    )
    const client = await connect(node.bootstrapServers)
    for (const codec of codecs) {
      const batches = await readPartition(client, topic(codec), 0)
      expect(new Set(batches.map((batch) => batch.codec))).toEqual(new Set([codec]))
      expect(batches.every(({ producerId }) => producerId >= 0)).toBe(true)
      expect(batches.flatMap(({ records }) => records.map(({ value }) => `${value}`))).toEqual(lines(codec))
    }
    client.close()
    const all = ['--include', 'codec-.*', '--from-beginning', '--max-messages', '1000']
    const consumed = (await run(command('consumer.ConsoleConsumer', ...all))).split('\n').slice(0, -1)
    for (const codec of codecs) expect(consumed.filter((line) => line.startsWith(codec))).toEqual(lines(codec))
  })

  test('headers, null and empty keys and values come back as they went', async () => {
    const reading = [
      'parse.key=true',
      'parse.headers=true',
      'null.marker=NULL',
      'headers.delimiter=|',
      'headers.key.separator==',
      'key.separator=:',
    ]
    const input = ['a=1,b=|key:value', 'a=2|NULL:no key', 'a=3|no value:NULL', 'a=4|:', 'a=5|NULL:NULL']
    const options = reading.flatMap((each) => ['--reader-property', each])
    await run(producer('edges', ...options), input.join('\n'))
    const printing = ['print.key=true', 'print.headers=true', 'null.literal=NULL', 'key.separator=|']
    const args = printing.flatMap((each) => ['--formatter-property', each])
    const consumed = await run(consumer('edges', '--max-messages', '5', ...args))
    expect(consumed.split('\n').slice(0, -1)).toEqual([
      'a:1,b:|key|value',
      'a:2|NULL|no key',
      'a:3|no value|NULL',
      'a:4||',
      'a:5|NULL|NULL',
    ])
  })

  test('a value near max.message.bytes goes through, a larger one is refused', async () => {
    const limit = ['--command-property', 'max.request.size=4000000']
    await run(producer('near-limit', ...limit), 'x'.repeat(1_048_588 - 61 - 11))
    const refused = await attempt(producer('near-limit', ...limit), 'x'.repeat(1_048_588 - 61 - 10))
    expect(refused.output).toMatch(/RecordTooLargeException/)
    expect((await run(consumer('near-limit', '--max-messages', '1'))).length).toBe(1_048_588 - 61 - 11 + 1)
    expect(await run(offsets('--topic', 'near-limit'))).toBe('near-limit:0:1\n')
  })

  test('two consumers share a group, and the tools show its members, offsets and states', async () => {
    const member = () => startProgram(peer.command, [...peer.args, ...consumer('shared', '--group', 'pair')])
    const send = async (name: string) => {
      const client = await connect(node.bootstrapServers)
      for (const partition of [0, 1]) {
        const records = Array.from({ length: 10 }, (_, index) => ({
          timestamp: Date.now(),
          value: Buffer.from(`${name} ${partition} ${index}`),
        }))
        await produceBatch(client, 'shared', partition, { records })
      }
      client.close()
    }
    const received = (of: RunningProgram, name: string) => of.lines().filter((line) => line.startsWith(name)).length
    await send('first')
    const one = member()
    await one.until(() => received(one, 'first') === 20, 'the first member reads both partitions', 90_000)
    const other = member()
    await until(async () => (await membersOf('pair')) === 2, 'the second member has joined', 90_000)
    const members = await run(groups('--describe', '--group', 'pair', '--members', '--verbose'))
    expect(members.match(/^pair +console-consumer-\S+ +\/127\.0\.0\.1 +console-consumer +1 /gm)).toHaveLength(2)
    expect(await run(groups('--describe', '--group', 'pair', '--state'))).toMatch(/range +Stable +2/)
    await send('second')
    await one.until(() => received(one, 'second') === 10, 'the first member reads its partition')
    await other.until(() => received(other, 'second') === 10, 'the second member reads its partition')
    one.kill('SIGTERM')
    await one.ended()
    await send('last')
    await other.until(() => received(other, 'last') === 20, 'the member that stays reads both partitions')
    other.kill('SIGTERM')
    await other.ended()
    expect(received(other, 'first')).toBe(0)
    const described = await run(groups('--describe', '--group', 'pair', '--offsets'))
    for (const partition of [0, 1]) {
      expect(described).toMatch(new RegExp(`^pair +shared +${partition} +30 +30 +0 `, 'm'))
    }
    expect(await run(groups('--list', '--state'))).toMatch(/^pair +Empty/m)
    expect((await attempt(groups('--describe', '--group', 'none'))).output).toContain('There is no such group')
  })

  test('the offsets tool finds the first, the last, and that of a time', async () => {
    const client = await connect(node.bootstrapServers)
    const first = Date.now() - 60_000 // not so old that retention takes it
    for (const timestamp of [first, first + 2000, first + 1000]) {
      await produceBatch(client, 'times', 0, { records: [{ timestamp, value: null }] })
    }
    client.close()
    const at = async (time: string) => (await run(offsets('--topic', 'times', '--time', time))).trim()
    expect(await at('earliest')).toBe('times:0:0')
    expect(await at('latest')).toBe('times:0:3')
    expect(await at('max-timestamp')).toBe('times:0:1')
    expect(await at(`${first + 500}`)).toBe('times:0:1')
  })

  test('offsets of a group are set, deleted and gone with it; folders, quorum and producers are described', async () => {
    await run(topics('--create', '--topic', 'moved', '--partitions', '2'))
    await run(producer('moved'), Array.from({ length: 10 }, (_, index) => `${index}`).join('\n'))
    await run(consumer('moved', '--group', 'mover', '--max-messages', '10'))
    const moved = (...args: string[]) => groups('--group', 'mover', ...args)
    const reset = await run(moved('--reset-offsets', '--topic', 'moved', '--to-earliest', '--execute'))
    expect(reset.match(/^mover +moved +[01] +0$/gm)).toHaveLength(2)
    expect(await run(moved('--delete-offsets', '--topic', 'moved:0'))).toMatch(/^moved +0 +Successful/m)
    expect((await run(moved('--describe', '--offsets'))).match(/^mover +moved /gm)).toHaveLength(1)
    expect(await run(moved('--delete'))).toContain('was successful')
    const folders = await run(command('LogDirsCommand', '--describe', '--topic-list', 'moved'))
    expect(folders).toMatch(/"partition":"moved-[01]","size":\d+,"offsetLag":0,"isFuture":false/)
    expect(await run(command('MetadataQuorumCommand', 'describe', '--replication'))).toMatch(/^1\s.*\tLeader\s/m)
    const producers = [0, 1].map((partition) => ['--topic', 'moved', '--partition', `${partition}`])
    const described = producers.map((each) => run(command('TransactionsCommand', 'describe-producers', ...each)))
    expect((await Promise.all(described)).join('')).toMatch(/^\d+\s+0\s+-1\s+9\s/m)
  })

  test('a producer and a consumer that run go on when the broker is reset', async () => {
    await using emptied = await startLoggedBroker({ topics: ['reset'] })
    const start = (tool: string, ...args: string[]) => {
      const server = ['--bootstrap-server', emptied.bootstrapServers]
      return startProgram(peer.command, [...peer.args, `${tools}.${tool}`, '--topic', 'reset', ...server, ...args])
    }
    const writer = start('ConsoleProducer')
    const reader = start('consumer.ConsoleConsumer', '--from-beginning', '--group', 'resetting')
    try {
      for (const round of ['one', 'two', 'three']) {
        if (round !== 'one') {
          await emptied.broker.reset()
          expect(await emptied.broker.records('reset')).toEqual([])
        }
        writer.write(`${round} a\n${round} b\n`)
        await reader.until(({ stdout }) => stdout.includes(`${round} a\n${round} b\n`), `it reads round ${round}`)
        const records = await emptied.broker.waitForRecords('reset', 2, { timeoutMs: 60_000 })
        expect(records.map(({ offset, valueText }) => [offset, valueText])).toEqual([
          [0, `${round} a`],
          [1, `${round} b`],
        ])
        await emptied.broker.waitForGroup('resetting', 'Stable', { members: 1, timeoutMs: 60_000 })
      }
    } finally {
      for (const program of [writer, reader]) {
        program.kill('SIGTERM')
        await program.ended()
      }
    }
  })
})
