import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { servedApis } from '../../src/api/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { connect } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { produceBatch } from '../support/producing.ts'
import type { Outcome } from '../support/programs.ts'
import { ToolHost } from './java/tool-host.ts'

/**
 * The whole of Kafka's administration tools, one option after the other. Expected is what they say of an Apache Kafka node of the
 * same contents; where an API is not built, that its tool says so and ends.
 */
describeWithPeer('kafka-compiled', "Apache Kafka's administration tools", (peer) => {
  let node: LoggedBroker
  let host: ToolHost
  let folder: string
  /** Of the records of topic `filled`: old enough to be told apart, young enough to be kept. */
  const firstMs = Date.now() - 100_000
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rookery-tools-'))
    host = new ToolHost(peer)
    node = await startLoggedBroker({ topics: [{ name: 'filled', partitions: 2 }, 'other'] })
    const client = await connect(node.bootstrapServers)
    for (const [partition, seconds] of [
      [0, [0, 2, 1, 3, 4, 5]],
      [1, [0, 9, 8, 7]],
    ] as const) {
      for (const second of seconds) {
        const records = [{ timestamp: firstMs + second * 1000, value: Buffer.from(`${second}`) }]
        await produceBatch(client, 'filled', partition, { records })
      }
    }
    await produceBatch(client, 'other', 0, { records: [{ timestamp: firstMs, value: null }] })
    client.close()
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
    expect(node.complaints()).toEqual([])
  })

  const attempt = (tool: string, ...args: string[]): Promise<Outcome> =>
    host.run(`org.apache.kafka.tools.${tool}`, ['--bootstrap-server', node.bootstrapServers, ...args])
  const run = async (tool: string, ...args: string[]): Promise<string> => {
    const { exitCode, stdout, output } = await attempt(tool, ...args)
    expect(exitCode, output).toBe(0)
    return stdout
  }
  const file = async (name: string, content: string): Promise<string> => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }

  test('BrokerApiVersionsCommand finds each API that README lists, and would use the newest of each', async () => {
    const listed = [...(await run('BrokerApiVersionsCommand')).matchAll(/^\t(\w+)\((\d+)\): (.*?),?$/gm)]
    const usable = listed.filter(([, , , versions]) => versions !== 'UNSUPPORTED')
    const asServed = servedApis.map(({ api, versions: { min, max } }) => {
      const first = api.request.apiKey === apis.Produce.request.apiKey ? 0 : min // told to old clients, as Kafka does
      return [`${api.request.apiKey}`, first === max ? `${max} ` : `${first} to ${max} `]
    })
    const asListed = usable.map(([, , key, versions]) => [key, versions?.replace(/\[.*/, '')])
    expect(Object.fromEntries(asListed)).toEqual(Object.fromEntries(asServed))
    for (const [line, , , versions = ''] of usable) {
      const [, max, used] = /(\d+) \[usable: (\d+)\]/.exec(versions) ?? []
      expect(used, line).toBe(max)
    }
  })

  test.each([
    [
      ['--time', 'latest'],
      ['filled:0:6', 'filled:1:4'],
    ],
    [
      ['--time', '-1'],
      ['filled:0:6', 'filled:1:4'],
    ],
    [
      ['--time', 'earliest'],
      ['filled:0:0', 'filled:1:0'],
    ],
    [
      ['--time', '-2'],
      ['filled:0:0', 'filled:1:0'],
    ],
    [
      ['--time', 'max-timestamp'],
      ['filled:0:5', 'filled:1:1'],
    ],
    [
      ['--time', '-3'],
      ['filled:0:5', 'filled:1:1'],
    ],
    [
      ['--time', 'earliest-local'],
      ['filled:0:0', 'filled:1:0'],
    ],
    [
      ['--time', '-4'],
      ['filled:0:0', 'filled:1:0'],
    ],
    [['--time', 'latest-tiered'], []],
    [['--time', '-5'], []],
    [['--time', 'earliest-pending-upload'], []],
    [['--time', '-6'], []],
    [
      ['--time', '0'],
      ['filled:0:0', 'filled:1:0'],
    ],
    [
      ['--time', `${firstMs + 1500}`],
      ['filled:0:1', 'filled:1:1'],
    ],
    [['--time', `${firstMs + 6000}`], ['filled:1:1']],
    [['--time', '99999999999999'], []],
    [['--partitions', '1'], ['filled:1:4']],
  ])('GetOffsetShell %j of a topic', async (args, expected) => {
    expect((await run('GetOffsetShell', '--topic', 'filled', ...args)).split('\n').filter(Boolean)).toEqual(expected)
  })

  test('GetOffsetShell finds topics by pattern and partitions by range, and says when there are none', async () => {
    expect(await run('GetOffsetShell', '--topic-partitions', 'filled:1,other:0-1')).toBe('filled:1:4\nother:0:1\n')
    expect(await run('GetOffsetShell', '--exclude-internal-topics')).toBe('filled:0:6\nfilled:1:4\nother:0:1\n')
    const none = await attempt('GetOffsetShell', '--topic', 'none')
    expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining('Could not match any topic-partitions')])
  })

  test('ConsumerGroupCommand sets offsets in every way that it has', async () => {
    const reset = (...args: string[]) =>
      run('consumer.group.ConsumerGroupCommand', '--reset-offsets', '--group', 'reset', ...args)
    const offsets = async (topic = 'filled'): Promise<number[]> => {
      const client = await connect(node.bootstrapServers)
      const { groups } = await client.request(apis.OffsetFetch, 8, { groups: [{ groupId: 'reset', topics: null }] })
      client.close()
      const found = groups[0]?.topics.find(({ name }) => name === topic)?.partitions ?? []
      return found.toSorted((a, b) => a.partitionIndex - b.partitionIndex).map((each) => each.committedOffset)
    }
    const both = ['--topic', 'filled', '--execute']
    const planned = await reset('--topic', 'filled', '--to-latest', '--dry-run')
    expect(planned.match(/^reset +filled +[01] +\d$/gm)).toHaveLength(2)
    expect(await offsets()).toEqual([])
    const steps: readonly (readonly [readonly string[], number[]])[] = [
      [['--to-latest'], [6, 4]],
      [['--to-earliest'], [0, 0]],
      [
        ['--to-offset', '3'],
        [3, 3],
      ],
      [
        ['--to-offset', '99'],
        [6, 4],
      ], // the end is as far as it goes
      [
        ['--shift-by', '-2'],
        [4, 2],
      ],
      [
        ['--shift-by', '-9'],
        [0, 0],
      ],
      [
        ['--shift-by', '5'],
        [5, 4],
      ],
      [['--to-current'], [5, 4]],
      [
        ['--to-datetime', new Date(firstMs + 1500).toISOString()],
        [1, 1],
      ],
      [
        ['--to-datetime', '2020-01-01T00:00:00.000'],
        [0, 0],
      ],
      [
        ['--by-duration', 'PT0S'],
        [6, 4],
      ], // nothing is as young as that
      [
        ['--by-duration', 'PT1H'],
        [0, 0],
      ],
    ]
    for (const [how, expected] of steps) {
      await reset(...both, ...how)
      expect(await offsets(), how.join(' ')).toEqual(expected)
    }
    await reset('--topic', 'filled:1', '--execute', '--to-latest')
    expect(await offsets()).toEqual([0, 4])
    const exported = await reset('--all-topics', '--execute', '--shift-by', '1', '--export')
    expect(exported.split('\n').filter(Boolean).toSorted()).toEqual(['filled,0,1', 'filled,1,4'])
    const wanted = await file('plan.csv', '"filled",0,3\n"other",0,1\n')
    await reset('--from-file', wanted, '--execute')
    expect([await offsets(), await offsets('other')]).toEqual([[3, 4], [1]])
    const unknown = await reset('--topic', 'none', '--to-earliest', '--execute')
    expect(unknown).toContain('This server does not host this topic-partition')
  })

  test('ConsumerGroupCommand lists, describes and deletes groups, and their offsets', async () => {
    const groups = (...args: string[]) => run('consumer.group.ConsumerGroupCommand', ...args)
    await groups('--reset-offsets', '--group', 'looked-at', '--topic', 'filled', '--to-offset', '1', '--execute')
    const of = ['--describe', '--group', 'looked-at']
    expect(await groups(...of, '--offsets')).toMatch(/^looked-at +filled +0 +1 +6 +5 +- +- +-/m)
    expect(await groups(...of, '--offsets', '--verbose')).toMatch(/^looked-at +filled +1 +- +1 +4 +3 /m)
    expect(await groups(...of, '--state')).toMatch(/^looked-at +\S+ +\(1\) +- +Empty +0$/m)
    expect(await groups(...of, '--state', '--verbose')).toMatch(/^looked-at +\S+ +\(1\) +- +Empty +- +- +0$/m)
    expect((await attempt('consumer.group.ConsumerGroupCommand', ...of, '--members')).stderr).toContain(
      "Consumer group 'looked-at' has no active members.",
    )
    expect(await groups('--describe', '--all-groups')).toMatch(/^looked-at +filled /m)
    expect(await groups('--list', '--state', 'Empty', '--type', 'classic')).toMatch(/^looked-at +Classic +Empty/m)
    expect(await groups('--list', '--state', 'Stable')).not.toContain('looked-at')
    expect(await groups('--list', '--type', 'consumer')).not.toContain('looked-at')
    expect(await run('GroupsCommand', '--list')).toMatch(/^looked-at +Classic +/m)
    const deleted = await groups('--delete-offsets', '--group', 'looked-at', '--topic', 'filled')
    expect(deleted.match(/^filled +[01] +Successful/gm)).toHaveLength(2)
    expect(await groups('--list')).not.toContain('looked-at')
    expect(await groups('--delete-offsets', '--group', 'none', '--topic', 'filled')).toContain('does not exist')
    await groups('--reset-offsets', '--group', 'kept', '--topic', 'filled', '--to-earliest', '--execute')
    const some = await groups('--delete', '--group', 'kept', '--group', 'none')
    expect(some).toMatch(/'none' could not be deleted due to: .*GroupIdNotFoundException/)
    expect(some).toContain("These consumer groups were deleted successfully: 'kept'")
    await groups('--delete', '--all-groups')
    expect((await groups('--list')).trim()).toBe('')
  })

  test('ConsumerGroupCommand shows the members of a group, and leaves it as it is', async () => {
    const client = await connect(node.bootstrapServers)
    const joined = await client.request(apis.JoinGroup, 5, {
      groupId: 'busy',
      sessionTimeoutMs: 60_000,
      rebalanceTimeoutMs: 60_000,
      memberId: '',
      groupInstanceId: 'instance',
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
    })
    const { memberId, generationId } = joined
    const member = { groupId: 'busy', generationId, memberId, groupInstanceId: 'instance' }
    const assignments = [{ memberId, assignment: Buffer.alloc(0) }]
    const { errorCode } = await client.request(apis.SyncGroup, 3, { ...member, assignments })
    expect([joined.errorCode, errorCode]).toEqual([0, 0])

    const busy = async (...args: string[]) =>
      (await attempt('consumer.group.ConsumerGroupCommand', '--group', 'busy', ...args)).output
    expect(await busy('--describe', '--state')).toMatch(/^busy +\S+ +\(1\) +range +Stable +1$/m)
    expect(await busy('--describe', '--members')).toMatch(/^busy +instance-\S+ +instance +\/127\.0\.0\.1 +test +0/m)
    expect(await busy('--reset-offsets', '--topic', 'filled', '--to-earliest', '--execute')).toContain(
      "Assignments can only be reset if the group 'busy' is inactive, but the current state is Stable",
    )
    expect(await busy('--delete')).toMatch(/'busy' could not be deleted due to: .*GroupNotEmptyException/)
    expect(await busy('--delete-offsets', '--topic', 'filled:0')).toMatch(/GroupSubscribedToTopicException/)
    await client.request(apis.LeaveGroup, 3, { groupId: 'busy', members: [{ memberId, groupInstanceId: 'instance' }] })
    client.close()
    expect(await busy('--delete')).toContain("Deletion of requested consumer groups ('busy') was successful")
  })

  test('ConfigCommand alters topics, a broker and all brokers, and says why it does not', async () => {
    const alter = (...args: string[]) => attempt('ConfigCommand', '--alter', ...args)
    const describe = (...args: string[]) => run('ConfigCommand', '--describe', ...args)
    const topic = ['--entity-type', 'topics', '--entity-name', 'other']
    const broker = ['--entity-type', 'brokers', '--entity-name', '1']
    const all = ['--entity-type', 'brokers', '--entity-default']
    const settings = await file('settings.properties', 'retention.ms=1000\nmax.message.bytes=5000\n')
    await alter(...topic, '--add-config-file', settings)
    expect(await describe('--entity-type', 'topics')).toMatch(
      /Dynamic configs for topic other are:\n {2}max.message.bytes=5000 .*\n {2}retention.ms=1000 /,
    )
    await alter(...topic, '--delete-config', 'retention.ms,segment.bytes', '--add-config', 'max.message.bytes=6000')
    expect((await describe(...topic)).split('\n').slice(1)).toEqual([
      expect.stringMatching(/^ {2}max.message.bytes=6000 /),
      '',
    ])
    expect(await describe(...broker, '--all')).toMatch(/^ {2}group\.max\.size=2147483647 sensitive=false/m)
    expect(await describe('--entity-type', 'brokers')).toMatch(/broker 1 are:\nDefault configs for brokers/)
    for (const type of ['topics', 'brokers', 'groups', 'client-metrics']) {
      const unknown = await describe('--entity-type', type, '--entity-name', '77')
      expect(unknown).toMatch(/The \S+ '77' doesn't exist and doesn't have dynamic config/)
    }
    const refused: readonly (readonly [readonly string[], string, RegExp])[] = [
      [topic, 'nope=1', /InvalidConfigurationException: .*nope/],
      [topic, 'retention.ms=abc', /InvalidConfigurationException: .*retention\.ms/],
      [['--entity-type', 'topics', '--entity-name', 'none'], 'retention.ms=1', /UnknownTopicOrPartition/],
      [broker, 'node.id=3', /InvalidRequestException: Cannot update .*node\.id/],
      ...['group.max.size', 'group.min.session.timeout.ms', 'group.max.session.timeout.ms'].map(
        (key) => [broker, `${key}=3`, /InvalidRequestException: Cannot update .*group\./] as const,
      ),
      [all, 'group.initial.rebalance.delay.ms=3', /InvalidRequestException: Cannot update .*group\./],
      [all, 'offset.metadata.max.bytes=3', /InvalidRequestException: Cannot update .*offset\./],
      [all, 'offsets.retention.minutes=3', /InvalidRequestException: Cannot update .*offsets\./],
      [
        ['--entity-type', 'groups', '--entity-name', 'g'],
        'consumer.session.timeout.ms=50000',
        /InvalidConfigurationException: Groups/,
      ],
      [['--entity-type', 'client-metrics', '--entity-name', 'c'], 'interval.ms=60000', /Resource type 16/],
      [['--entity-type', 'broker-loggers', '--entity-name', '1'], 'kafka=DEBUG', /kafka/],
      [['--entity-type', 'clients', '--entity-name', 'c'], 'producer_byte_rate=1', /DESCRIBE_CLIENT_QUOTAS/],
      [['--entity-type', 'users', '--entity-name', 'u'], 'SCRAM-SHA-256=[password=p]', /ALTER_USER_SCRAM_CREDENTIALS/],
    ]
    for (const [entity, setting, reason] of refused) {
      const { exitCode, output } = await alter(...entity, '--add-config', setting)
      expect(exitCode, setting).toBe(1)
      expect(output).toMatch(reason)
    }
    await alter(...topic, '--delete-config', 'max.message.bytes')
    expect(await describe(...topic)).toBe('Dynamic configs for topic other are:\n')
  })

  test('TopicCommand describes by what is wrong, makes topics as assigned and does nothing twice', async () => {
    const topics = (...args: string[]) => run('TopicCommand', ...args)
    await topics('--create', '--topic', 'assigned', '--replica-assignment', '1,1,1')
    const described = await topics('--describe', '--topic', 'assigned')
    expect(described.match(/Partition: \d\tLeader: 1\tReplicas: 1\tIsr: 1/g)).toHaveLength(3)
    await topics('--create', '--topic', 'assigned', '--if-not-exists')
    await topics('--alter', '--topic', 'none', '--partitions', '3', '--if-exists')
    await topics('--delete', '--topic', 'none', '--if-exists')
    expect(await topics('--describe', '--topic', 'none', '--if-exists')).toBe('')
    for (const wrong of ['--unavailable-partitions', '--under-replicated-partitions', '--under-min-isr-partitions']) {
      expect(await topics('--describe', wrong), wrong).toBe('')
    }
    expect(await topics('--describe', '--at-min-isr-partitions')).toMatch(/Topic: assigned\tPartition: 2/)
    await topics('--create', '--topic', 'overridden', '--config', 'segment.bytes=2000000')
    expect(await topics('--describe', '--topics-with-overrides')).toMatch(
      /^Topic: overridden\t.*Configs: segment.bytes=2000000\nTopic: __consumer_offsets\t.*\n$/,
    )
    const id = /TopicId: (\S+)/.exec(described)?.[1] ?? ''
    // Asked by id it uses Metadata, which knows no eligible leaders.
    expect((await topics('--describe', '--topic-id', id)).replaceAll('N/A', '')).toBe(described)
    await topics('--delete', '--topic', '(assigned|overridden)')
    expect(await topics('--list', '--exclude-internal')).toBe('filled\nother\n')
    const refused = await attempt('TopicCommand', '--create', '--topic', 'r', '--replica-assignment', '1:2')
    expect([refused.exitCode, refused.output]).toEqual([1, expect.stringMatching(/InvalidReplicaAssignment.*broker 2/)])
  })

  test('LogDirsCommand and MetadataQuorumCommand describe the one node', async () => {
    const folders = async (...args: string[]) => {
      const [line = ''] = (await run('LogDirsCommand', '--describe', ...args)).split('\n').slice(2)
      return JSON.parse(line).brokers as { broker: number; logDirs: { error: unknown; partitions: object[] }[] }[]
    }
    const partition = (name: string, size: number) => ({ partition: name, size, offsetLag: 0, isFuture: false })
    // A batch of one record: 61 bytes, and 7 around its value.
    expect(await folders('--topic-list', 'filled,other', '--broker-list', '1')).toMatchObject([
      {
        broker: 1,
        logDirs: [
          {
            error: null,
            partitions: expect.arrayContaining([
              partition('filled-0', 6 * 69),
              partition('filled-1', 4 * 69),
              partition('other-0', 68),
            ]),
          },
        ],
      },
    ])
    expect(await folders('--topic-list', 'none')).toMatchObject([{ logDirs: [{ error: null, partitions: [] }] }])
    const unknown = await attempt('LogDirsCommand', '--describe', '--broker-list', '1,7')
    expect([unknown.exitCode, unknown.output]).toEqual([1, expect.stringContaining('do not exist')])

    const status = await run('MetadataQuorumCommand', 'describe', '--status')
    expect(status).toMatch(/^LeaderId: +1\nLeaderEpoch: +\d+\nHighWatermark: +\d+\nMaxFollowerLag: +0$/m)
    expect(status).toMatch(/^CurrentVoters: +\[\{"id": 1, /m)
    const replicas = await run('MetadataQuorumCommand', 'describe', '--replication')
    expect(replicas).toMatch(/^1 +\t\S{22}\t\d+ +\t0 +\t\d{13} +\t\d{13} +\tLeader/m)
    expect(await run('MetadataQuorumCommand', 'describe', '--replication', '--human-readable')).toMatch(
      /\d ms ago.*Leader/,
    )
    const producers = await run('TransactionsCommand', 'describe-producers', '--topic', 'filled', '--partition', '0')
    expect(producers).toMatch(/^ProducerId\t/)
  })

  test('tools for clusters find the one node in order', async () => {
    const moves = await file(
      'moves.json',
      '{"version":1,"partitions":[{"topic":"other","partition":0,"replicas":[1]}]}',
    )
    const elect = (type: string, ...args: string[]) =>
      attempt('LeaderElectionCommand', '--election-type', type, ...args)
    const partition = ['--topic', 'other', '--partition', '0']
    for (const type of ['preferred', 'unclean']) {
      expect((await elect(type, '--all-topic-partitions')).exitCode).toBe(0)
      expect((await elect(type, ...partition)).output).toContain('Valid replica already elected for partitions other-0')
    }
    const none = await elect('preferred', '--topic', 'other', '--partition', '5')
    expect([none.exitCode, none.output]).toEqual([1, expect.stringContaining('UnknownTopicOrPartition')])
    const reassign = (...args: string[]) => run('reassign.ReassignPartitionsCommand', ...args)
    const plan = ['--reassignment-json-file', moves]
    expect(await reassign('--list')).toContain('No partition reassignments found')
    expect(await reassign('--execute', ...plan)).toContain('Successfully started partition reassignment for other-0')
    expect(await reassign('--verify', ...plan)).toContain('Reassignment of partition other-0 is completed')
    expect(await reassign('--cancel', ...plan)).toContain('None of the specified partition reassignments are active')
    const voter = ['--controller-id', '1', '--controller-directory-id', 'AAAAAAAAAAAAAAAAAAAAAQ']
    const removed = await attempt('MetadataQuorumCommand', 'remove-controller', ...voter)
    expect([removed.exitCode, removed.output]).toEqual([1, expect.stringContaining('UnsupportedVersionException')])
    expect(await run('FeatureCommand', 'describe')).toMatch(/^Feature: metadata\.version/m)
    const upgrade = await attempt('FeatureCommand', 'upgrade', '--feature', 'metadata.version=25')
    expect([upgrade.exitCode, upgrade.output]).toEqual([
      1,
      expect.stringContaining('Could not upgrade metadata.version'),
    ])
  })

  test('tools whose API is not built say so and end', async () => {
    const unsupported: readonly (readonly [string, readonly string[], string])[] = [
      ['TransactionsCommand', ['list'], 'LIST_TRANSACTIONS'],
      ['AclCommand', ['--list'], 'DESCRIBE_ACLS'],
    ]
    for (const [tool, args, api] of unsupported) {
      const { exitCode, output } = await attempt(tool, ...args)
      expect(exitCode, output).toBe(1)
      expect(output).toContain(`The node does not support ${api}`)
    }
    const found = await attempt('TransactionsCommand', 'describe', '--transactional-id', 't')
    expect([found.exitCode, found.output]).toEqual([1, expect.stringContaining('Failed to describe transaction')])
    // These ask what there is, and there is nothing.
    expect((await run('ClientMetricsCommand', '--list')).trim()).toBe('')
    expect((await run('consumer.group.ShareGroupCommand', '--list')).trim()).toBe('')
    expect((await run('streams.StreamsGroupCommand', '--list')).trim()).toBe('')
  })
})
