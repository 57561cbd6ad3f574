import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ConfigError, type ConfigInput, type ConfigProblem, parseConfig } from '../../../src/config/index.ts'
import { kafkaBrokerKeys } from '../../../src/config/kafka-keys.ts'

const quickStart = readFileSync(join(import.meta.dirname, 'fixtures/quick-start.properties'), 'utf8')

function problemsOf(input: ConfigInput): readonly ConfigProblem[] {
  try {
    parseConfig(input)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

const messagesOf = (input: ConfigInput) => problemsOf(input).map((problem) => problem.message)

describe('parseConfig', () => {
  test('needs no setting at all', () => {
    const config = parseConfig()
    expect(config.nodeId).toBe(1)
    expect(config.logDirs).toEqual(['data'])
    expect(config.metadataLogDir).toBe('data')
    expect(config.listeners).toMatchObject([{ name: 'PLAINTEXT', host: 'localhost', port: 9092 }])
    expect(config.controllerListeners).toEqual([])
    expect(config.unused).toEqual([])
  })

  test("takes Apache Kafka's quick-start file unchanged", () => {
    const config = parseConfig({ file: quickStart })
    expect(config.listeners).toMatchObject([
      { name: 'PLAINTEXT', host: '::', port: 9092, advertisedHost: 'localhost', advertisedPort: 9092 },
    ])
    expect(config.controllerListeners).toMatchObject([{ name: 'CONTROLLER', host: '::', port: 9093 }])
    expect(config.logDirs).toEqual(['/tmp/kraft-combined-logs'])
    expect(config.unused).toEqual([
      'num.io.threads',
      'num.network.threads',
      'num.recovery.threads.per.data.dir',
      'share.coordinator.state.topic.min.isr',
      'share.coordinator.state.topic.replication.factor',
      'socket.receive.buffer.bytes',
      'socket.send.buffer.bytes',
      'transaction.state.log.min.isr',
      'transaction.state.log.replication.factor',
    ])
  })

  test('takes every key of Kafka without calling it unknown', () => {
    const file = [...kafkaBrokerKeys].map((key) => `${key}=`).join('\n')
    expect(messagesOf({ file }).filter((message) => message.includes('no key of'))).toEqual([])
  })

  test('takes keys with a listener or provider in their name', () => {
    const names = [
      'listener.name.internal.ssl.keystore.location',
      'listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config',
      'config.providers.vault.class',
    ]
    expect(parseConfig({ file: names.map((name) => `${name}=x`).join('\n') }).unused).toEqual(names.toSorted())
    expect(messagesOf({ file: 'listener.name.internal.no.such.key=x' })).toHaveLength(1)
  })

  test('lets overrides win over the environment, that over the file, that over the defaults', () => {
    const input: ConfigInput = {
      defaults: { 'num.partitions': 2 },
      file: 'num.partitions=3',
      env: { ROOKERY_NUM_PARTITIONS: '4' },
      overrides: ['num.partitions=5', 'num.partitions=6'],
    }
    expect(parseConfig(input).values.numPartitions).toBe(6)
    expect(parseConfig({ ...input, overrides: { 'num.partitions': 7 } }).values.numPartitions).toBe(7)
    expect(parseConfig({ ...input, overrides: [] }).values.numPartitions).toBe(4)
    expect(parseConfig({ ...input, overrides: [], env: {} }).values.numPartitions).toBe(3)
    expect(parseConfig({ defaults: input.defaults }).values.numPartitions).toBe(2)
  })

  test('remembers the text and the source of a value', () => {
    const config = parseConfig({ file: 'num.partitions= +07 ', env: { ROOKERY_LOG_DIRS: '/a, /b' } })
    expect(config.entries.get('num.partitions')).toMatchObject({ text: '7', defaultText: '1', source: 'file' })
    expect(config.entries.get('log.dirs')).toMatchObject({ text: '/a,/b', defaultText: null, source: 'environment' })
    expect(config.entries.get('log.dir')).toMatchObject({ text: 'data', source: 'default' })
    expect(config.logDirs).toEqual(['/a', '/b'])
  })

  test('leaves variables alone that are no keys', () => {
    const env = { ROOKERY_TOPICS: 'orders:3', ROOKERY_REQUIRE_PEERS: '1', ROOKERY_RAFT_SEEDS: '9', PATH: '/bin' }
    expect(messagesOf({ env })).toEqual([])
    expect(messagesOf({ env: { ROOKERY_TOPIC: 'x' } })).toHaveLength(1)
  })

  test('reads the syntax of Java: continuations, escapes, other separators, the last of two', () => {
    const config = parseConfig({
      file: '! c\nlog.dirs=/a,\\\n   /b\n broker.rack : r\\u00e9\nnum.partitions 2\nnum.partitions=3',
    })
    expect(config.logDirs).toEqual(['/a', '/b'])
    expect(config.values.brokerRack).toBe('ré')
    expect(config.values.numPartitions).toBe(3)
  })

  test('keeps every digit of a LONG and reads one past 2^53 as no limit', () => {
    const text = '9223372036854775807'
    const config = parseConfig({ overrides: { 'log.retention.bytes': text, 'log.flush.interval.messages': text } })
    expect(config.values.logRetentionBytes).toBe(Number.POSITIVE_INFINITY)
    expect(config.entries.get('log.retention.bytes')?.text).toBe(text)
    expect(config.topicDefaults.retentionBytes).toBe(Number.POSITIVE_INFINITY)
    expect(config.topicDefaults.flushMessages).toBe(Number.POSITIVE_INFINITY)
    expect(messagesOf({ overrides: { 'log.retention.bytes': '9223372036854775808' } })).toHaveLength(1)
    expect(parseConfig({ overrides: { 'log.retention.bytes': 2 ** 53 - 1 } }).values.logRetentionBytes).toBe(
      2 ** 53 - 1,
    )
  })

  test('takes the older broker.id for node.id, and refuses two that differ', () => {
    expect(parseConfig({ file: 'broker.id=7' }).nodeId).toBe(7)
    expect(parseConfig({ file: 'broker.id=7\nnode.id=7' }).nodeId).toBe(7)
    expect(messagesOf({ file: 'broker.id=7\nnode.id=8' })).toEqual([
      'broker.id=7 (server.properties line 1) contradicts node.id=8: set one, or both to the same',
    ])
  })

  test('takes hours and minutes where milliseconds are not set', () => {
    const retention = (file: string) => parseConfig({ file }).topicDefaults.retentionMs
    expect(retention('')).toBe(604_800_000)
    expect(retention('log.retention.hours=2')).toBe(7_200_000)
    expect(retention('log.retention.hours=2\nlog.retention.minutes=3')).toBe(180_000)
    expect(retention('log.retention.hours=2\nlog.retention.minutes=3\nlog.retention.ms=4')).toBe(4)
    expect(retention('log.retention.hours=-1')).toBe(Number.POSITIVE_INFINITY)
    expect(parseConfig({ file: 'log.roll.hours=1' }).topicDefaults.segmentMs).toBe(3_600_000)
    expect(parseConfig({ file: 'log.roll.hours=1\nlog.roll.ms=5' }).topicDefaults.segmentMs).toBe(5)
  })

  test('always has a limit for the bytes of requests', () => {
    expect(parseConfig().requestMemoryBytes).toBe(128 * 2 ** 20)
    expect(parseConfig({ overrides: { 'socket.request.max.bytes': 200_000_000 } }).requestMemoryBytes).toBe(200_000_000)
    expect(parseConfig({ overrides: { 'queued.max.request.bytes': 150_000_000 } }).requestMemoryBytes).toBe(150_000_000)
  })

  test("has the defaults of a single node for the quorum of one, and Kafka's as keys say them otherwise", () => {
    const { values } = parseConfig({ file: quickStart })
    expect(values.groupInitialRebalanceDelayMs).toBe(0)
    expect(parseConfig().values.offsetsTopicReplicationFactor).toBe(1)
    expect(parseConfig({ file: 'group.initial.rebalance.delay.ms=50' }).values.groupInitialRebalanceDelayMs).toBe(50)
  })
})

describe('parseConfig refuses', () => {
  test('listeners and voters with their file and line, beside every other mistake', () => {
    const file = [
      'num.partitons=3',
      'log.segment.bytes=x',
      'listeners=SASL_PLAINTEXT://:9092',
      'advertised.listeners=PLAINTEXT://0.0.0.0:1',
      'controller.quorum.voters=1@there',
      'authorizer.class.name=foo.Bar',
    ].join('\n')
    const fault = () => parseConfig({ file, fileName: 'a.properties' })
    for (const message of [
      'num.partitons (a.properties line 1) is no key',
      'log.segment.bytes=x (a.properties line 2): allowed',
      'listeners=SASL_PLAINTEXT://:9092 (a.properties line 3): SASL_PLAINTEXT is not built yet',
      'advertised.listeners=PLAINTEXT://0.0.0.0:1 (a.properties line 4): listeners has no PLAINTEXT',
      'controller.quorum.voters=1@there (a.properties line 5): allowed is id@host:port',
      'authorizer.class.name=foo.Bar (a.properties line 6): allowed is an empty value alone',
    ]) {
      expect(fault).toThrow(message)
    }
  })

  test('an unknown key, with the nearest name and the place', () => {
    expect(messagesOf({ file: '\nlog.dris=/x' })).toEqual([
      'log.dris (server.properties line 2) is no key of Kafka or Rookery; did you mean log.dirs?',
    ])
    expect(messagesOf({ env: { ROOKERY_NUM_PARTITION: '1' } })[0]).toContain('did you mean num.partitions?')
    expect(messagesOf({ overrides: ['nonsense.that.is.nowhere.near=1'] })[0]).not.toContain('did you mean')
    for (const name of ['__proto__', 'constructor', 'toString']) {
      expect(messagesOf({ file: `${name}=1` }), name).toHaveLength(1)
    }
  })

  test("a topic's key, with the broker's name for it", () => {
    expect(messagesOf({ file: 'retention.ms=5' })).toEqual([
      "retention.ms (server.properties line 1) is a key of topics; the broker's is log.retention.ms",
    ])
  })

  test('a bad value, with the key, the value, the place and what is allowed', () => {
    expect(messagesOf({ overrides: ['num.partitions=0'] })).toEqual([
      'num.partitions=0 (--override): allowed is a whole number from 1 to 2147483647',
    ])
    for (const bad of ['', 'x', '1.5', '1e3', '2147483648', '0x10', '१']) {
      expect(messagesOf({ overrides: { 'num.partitions': bad } }), bad).toHaveLength(1)
    }
    expect(messagesOf({ overrides: ['delete.topic.enable=yes'] })[0]).toContain('allowed is true or false')
    expect(messagesOf({ overrides: ['compression.type=rar'] })[0]).toContain('uncompressed or zstd')
    expect(messagesOf({ overrides: ['log.cleanup.policy=delete,delete'] })).toHaveLength(1)
    expect(messagesOf({ overrides: ['log.cleaner.min.cleanable.ratio=1.1'] })).toHaveLength(1)
    expect(messagesOf({ overrides: ['compression.gzip.level=0'] })[0]).toContain('from -1 to 9 but not 0')
    expect(messagesOf({ overrides: ['cluster.id=short'] })[0]).toContain('22 characters of base64url')
  })

  test('everything that is wrong at once', () => {
    const messages = messagesOf({
      file: 'num.partitions=0\nno.such=1',
      env: { ROOKERY_NODE_ID: 'x' },
      overrides: ['bare'],
    })
    expect(messages).toHaveLength(4)
    expect(() => parseConfig({ file: 'num.partitions=0\nno.such=1' })).toThrow('2 settings cannot be used:\n  - ')
  })

  test('a file of something else without a message as long as the file', () => {
    const file = Array.from({ length: 60 }, (_, line) => `word${line} and more`).join('\n')
    expect(problemsOf({ file })).toHaveLength(60)
    expect(() => parseConfig({ file })).toThrow(/^60 settings cannot be used:\n[\s\S]* {2}and 10 more$/)
  })

  test('a file that is no properties file', () => {
    expect(messagesOf({ file: 'a=\\u00zz', fileName: '/etc/x.properties' })[0]).toContain(
      '/etc/x.properties is no properties file',
    )
  })

  test.each([
    ['group.min.session.timeout.ms=9', 'group.max.session.timeout.ms=8'],
    ['log.cleaner.min.compaction.lag.ms=9', 'log.cleaner.max.compaction.lag.ms=8'],
    ['broker.heartbeat.interval.ms=9', 'broker.session.timeout.ms=8'],
    ['socket.request.max.bytes=9', 'queued.max.request.bytes=8'],
  ])('%s beside %s', (above, limit) => {
    expect(messagesOf({ overrides: [above, limit] })).toEqual([
      `${above} (--override): allowed is at most ${limit.replace('=', ', which is ')}`,
    ])
  })

  test('what would not be obeyed: an authorizer, several voters without a way to them, a voter that is another node', () => {
    expect(messagesOf({ file: 'authorizer.class.name=x.Y' })).toHaveLength(1)
    expect(messagesOf({ file: 'security.inter.broker.protocol=SSL' })).toHaveLength(1)
    expect(messagesOf({ file: 'controller.quorum.voters=1@a:1,2@b:1' })[0]).toContain('controller.listener.names')
    expect(messagesOf({ file: 'controller.quorum.bootstrap.servers=a:1,b:1' })[0]).toContain(
      'controller.listener.names',
    )
    expect(messagesOf({ file: 'controller.quorum.voters=2@a:1' })[0]).toContain('contradicts node.id=1')
    expect(messagesOf({ file: 'controller.quorum.voters=1@a:1' })).toEqual([])
    for (const bad of ['a:1', '1@a', '1@a:0', '1@a:65536', '-1@a:1', '@a:1', '99999999999@a:1']) {
      expect(messagesOf({ overrides: { 'controller.quorum.voters': bad } }), bad).toHaveLength(1)
    }
  })
})

describe('parseConfig, whatever it is given', () => {
  const key = fc.oneof(fc.constantFrom(...kafkaBrokerKeys), fc.string({ unit: 'binary', maxLength: 300 }))
  const value = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.constantFrom('', ',', '://', '-1', '9'.repeat(500), 'PLAINTEXT://[::1]:0,A://:1', '1@b:2', 'A:PLAINTEXT,A:SSL'),
    fc.integer().map(String),
  )
  const onlyConfigErrors = (input: ConfigInput) => {
    for (const problem of problemsOf(input)) expect(problem.message).not.toBe('')
  }

  test('throws nothing but a ConfigError for any text of a file', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (file) => onlyConfigErrors({ file })))
  })

  test('throws nothing but a ConfigError for any keys and values', () => {
    const entries = fc.dictionary(key, value, { maxKeys: 8 })
    fc.assert(
      fc.property(entries, entries, fc.array(value), (overrides, env, texts) => {
        onlyConfigErrors({
          overrides,
          env: Object.fromEntries(Object.entries(env).map(([k, v]) => [`ROOKERY_${k}`, v])),
        })
        onlyConfigErrors({ overrides: texts })
      }),
      { numRuns: 300 },
    )
  })

  test('answers long texts at once', () => {
    const texts = ['a,:/@.'.repeat(1e5), 'a,:/@.'.repeat(1e4), 'A://'.repeat(1e4), '9'.repeat(6e4), ':'.repeat(1e6)]
    const started = process.hrtime.bigint()
    const names = [
      'listeners',
      'listener.security.protocol.map',
      'controller.listener.names',
      'controller.quorum.voters',
      'controller.quorum.bootstrap.servers',
      'cluster.id',
      'log.dirs',
      'num.partitions',
      'log.cleaner.min.cleanable.ratio',
      'x'.repeat(1e6),
    ]
    for (const name of names) {
      for (const text of texts) {
        for (const problem of problemsOf({ overrides: { [name]: text } }))
          expect(problem.message.length).toBeLessThan(1000)
      }
    }
    expect(Number(process.hrtime.bigint() - started) / 1e9).toBeLessThan(5)
  })
})

describe('process.roles', () => {
  const quorum = 'controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@a:9093,2@b:9093\n'
  const clients = 'listeners=PLAINTEXT://:9092\n'
  const both = 'listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n'

  test('a broker listens for clients only, and is none of the voters', () => {
    const config = parseConfig({ file: `process.roles=broker\nnode.id=3\n${quorum}${clients}log.dirs=/a,/b` })
    expect(config.roles).toEqual({ broker: true, controller: false })
    expect(config.isAlone).toBe(false)
    expect(config.controllerListeners).toEqual([])
    expect(config.logDirs).toEqual(['/a', '/b'])
  })

  test('a controller listens for the quorum only, and keeps no partitions', () => {
    const file = `process.roles=controller\nnode.id=1\n${quorum}listeners=CONTROLLER://:9093\nlog.dirs=/a,/b\n`
    const config = parseConfig({ file: `${file}metadata.log.dir=/m` })
    expect(config.roles).toEqual({ broker: false, controller: true })
    expect(config.listeners).toEqual([])
    expect(config.logDirs).toEqual(['/m'])
    expect(parseConfig({ file: `${file}inter.broker.listener.name=PLAINTEXT` }).metadataLogDir).toBe('/a')
  })

  test('a node with one role has the defaults of a cluster, and one with both and nobody else those of a single node', () => {
    const servers = 'controller.quorum.bootstrap.servers=a:9093\ncontroller.listener.names=CONTROLLER\n'
    expect(parseConfig({ file: `${servers}${both}` }).values.offsetsTopicReplicationFactor).toBe(1)
    const broker = parseConfig({ file: `process.roles=broker\nnode.id=3\n${servers}${clients}` })
    expect(broker.values.offsetsTopicReplicationFactor).toBe(3)
    expect(broker.quorumBootstrapServers).toEqual([{ host: 'a', port: 9093 }])
  })

  test('only a node that names nobody, or itself without a listener for others, is alone', () => {
    expect(parseConfig({}).isAlone).toBe(true)
    expect(parseConfig({ file: 'controller.quorum.voters=1@a:1' }).isAlone).toBe(true)
    const listening = `controller.quorum.voters=1@a:9093\ncontroller.listener.names=CONTROLLER\n${both}`
    expect(parseConfig({ file: listening }).isAlone).toBe(false)
  })

  test.each([
    ['no role', 'process.roles=', 'process.roles is empty: allowed is broker, controller, or both'],
    [
      'a broker without a quorum',
      `process.roles=broker\n${clients}`,
      'controller.quorum.bootstrap.servers is not set, and process.roles=broker needs a quorum',
    ],
    [
      'a controller without a quorum',
      'process.roles=controller\ncontroller.listener.names=CONTROLLER\nlisteners=CONTROLLER://:9093',
      'controller.quorum.bootstrap.servers is not set, and process.roles=controller needs a quorum',
    ],
    [
      'a broker that is a voter',
      `process.roles=broker\nnode.id=1\n${quorum}${clients}`,
      'controller.quorum.voters=1@a:9093,2@b:9093 (server.properties line 4) names node 1, and process.roles=broker has no vote',
    ],
    [
      'a controller that is no voter',
      `process.roles=controller\nnode.id=3\n${quorum}listeners=CONTROLLER://:9093`,
      'contradicts node.id=3: this node must be one of the voters',
    ],
    [
      'a broker with a listener of controllers',
      `process.roles=broker\nnode.id=3\n${quorum}${both}`,
      'CONTROLLER is one of controller.listener.names, and process.roles=broker serves no quorum',
    ],
    [
      'a controller with a listener of clients',
      `process.roles=controller\nnode.id=1\n${quorum}${both}`,
      'PLAINTEXT is none of controller.listener.names, and process.roles=controller serves no clients',
    ],
    [
      'a broker that does not say how controllers are spoken to',
      `process.roles=broker\nnode.id=3\ncontroller.quorum.bootstrap.servers=a:1\n${clients}`,
      'controller.listener.names is not set',
    ],
    [
      'a controller whose listener is not there',
      `process.roles=controller\nnode.id=1\n${quorum}listeners=OTHER://:9093`,
      'controller.listener.names=CONTROLLER (server.properties line 3): listeners has no such name',
    ],
  ])('is refused for %s', (_what, file, message) => {
    expect(messagesOf({ file }).join('\n')).toContain(message)
  })
})
