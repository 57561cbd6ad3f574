import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Broker, startBroker } from '../../src/index.ts'
import { until } from '../support/condition.ts'
import { recordsOfAnyAge } from '../support/records-of-any-age.ts'
import { RookeryProcess, type RunOptions, rookery } from '../support/rookery-process.ts'

let broker: Broker
let folder: string

beforeAll(async () => {
  broker = await startBroker({ config: recordsOfAnyAge })
  folder = mkdtempSync(join(tmpdir(), 'rookery-cli-'))
})

afterAll(async () => {
  await broker.stop()
  rmSync(folder, { recursive: true, force: true })
})

const withBroker = (args: readonly string[]) => [...args, '--bootstrap-server', broker.bootstrapServers]

/** Runs a command and expects it to succeed. */
async function run(args: readonly string[], options?: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await rookery(withBroker(args), options)
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

async function runJson<T>(args: readonly string[], options?: RunOptions): Promise<T> {
  return JSON.parse(await run([...args, '--json'], options)) as T
}

interface ShownRecord {
  readonly partition: number
  readonly offset: number
  readonly key: string | null
  readonly value: string | null
  readonly headers?: readonly { readonly key: string; readonly value: string }[]
}

async function consumed(topic: string, ...args: string[]): Promise<ShownRecord[]> {
  const stdout = await run(['consume', topic, '--from', 'beginning', '--exit', '--json', ...args])
  const lines = stdout.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line) as ShownRecord)
}

describe('rookery topics', () => {
  test('creates, lists, describes and deletes', async () => {
    await run(['topics', 'create', 'life', '--partitions', '2', '--config', 'retention.ms=1000'])
    expect(await run(['topics', 'list'])).toMatch(/^TOPIC +PARTITIONS +REPLICAS\n[\s\S]*^life +2 +1$/m)
    const [described] = await runJson<{ configs: object; partitions: object[] }[]>(['topics', 'describe', 'life'])
    expect(described).toMatchObject({ name: 'life', configs: { 'retention.ms': '1000' } })
    expect(described?.partitions[1]).toEqual({
      partition: 1,
      leader: 1,
      replicas: [1],
      isr: [1],
      firstOffset: 0,
      endOffset: 0,
      error: null,
    })
    await run(['topics', 'delete', 'life'])
    expect(await run(['topics'])).not.toContain('life')
  })

  test('says what the broker says, and exits with 1; unless that is fine', async () => {
    await run(['topics', 'create', 'twice'])
    const again = await rookery(withBroker(['topics', 'create', 'twice', 'fresh']))
    expect(again).toMatchObject({ code: 1, stdout: 'Topic fresh created with 1 partition\n' })
    expect(again.stderr).toContain('TOPIC_ALREADY_EXISTS')
    await run(['topics', 'create', 'twice', '--if-not-exists'])
    await run(['topics', 'delete', 'never', '--if-exists'])
    expect(await rookery(withBroker(['topics', 'delete', 'never']))).toMatchObject({ code: 1 })
    const missing = await rookery(withBroker(['topics', 'describe', 'never']))
    expect(missing).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'rookery: There is no topic never. `rookery topics list` shows which there are\n',
    })
  })
})

describe('rookery topics alter', () => {
  test('adds partitions, sets and deletes settings', async () => {
    await run(['topics', 'create', 'grown', 'grown-too', '--config', 'retention.ms=1000'])
    const change = ['--partitions', '3', '--config', 'segment.bytes=2000000', '--delete-config', 'retention.ms']
    expect(await run(['topics', 'alter', 'grown', 'grown-too', ...change])).toBe(
      'Topic grown altered: 3 partitions\nTopic grown-too altered: 3 partitions\n',
    )
    for (const name of ['grown', 'grown-too']) {
      const [described] = await runJson<{ configs: object; partitions: object[] }[]>(['topics', 'describe', name])
      expect(described?.partitions).toHaveLength(3)
      expect(described?.configs).toEqual({ 'segment.bytes': '2000000' })
    }
  })

  test('what is refused is told, for each topic, and its settings stay as they are', async () => {
    await run(['topics', 'create', 'narrow', '-p', '1'])
    await run(['topics', 'create', 'wide', '-p', '5'])
    const changes = ['--partitions', '3', '--config', 'retention.ms=1000']
    const altered = await rookery(withBroker(['topics', 'alter', 'narrow', 'wide', 'never', ...changes]))
    expect(altered).toMatchObject({ code: 1, stdout: 'Topic narrow altered: 3 partitions\n' })
    expect(altered.stderr).toMatch(/Topic wide: .*INVALID_PARTITIONS[\s\S]*There is no topic never\./)
    const [wide] = await runJson<{ configs: object }[]>(['topics', 'describe', 'wide'])
    expect(wide?.configs).toEqual({})
    const bad = await rookery(withBroker(['topics', 'alter', 'narrow', '--config', 'retention.ms=long', '--json']))
    expect(bad).toMatchObject({ code: 1 })
    expect(JSON.parse(bad.stdout)).toEqual([{ name: 'narrow', error: expect.stringContaining('retention.ms=long') }])
  })
})

describe('rookery configs', () => {
  interface Described {
    readonly kind: string
    readonly name: string
    readonly configs: readonly { readonly key: string; readonly value: string | null; readonly source: string }[]
  }

  test('describes what is set and by whom, for topics, a broker and all brokers', async () => {
    await run(['topics', 'create', 'set', '--config', 'retention.ms=1000'])
    expect(await run(['configs', 'describe', 'topic', 'set'])).toMatch(
      /^topic set\nKEY +VALUE +SET BY +ALTERABLE\nretention\.ms +1000 +topic +yes\n$/,
    )
    const [all] = await runJson<Described[]>(['configs', 'describe', 'topic', 'set', '--all'])
    expect(all?.configs.length).toBeGreaterThan(30)
    expect(await run(['configs', 'describe', 'broker'])).toBe(
      'Nothing is set for all brokers; --all shows the defaults\n',
    )
    const [own] = await runJson<Described[]>(['configs', 'describe', 'broker', '1'])
    expect(own).toMatchObject({ kind: 'broker', name: '1' })
    expect(own?.configs.find(({ key }) => key === 'listeners')).toMatchObject({ source: 'start' })
  })

  test('alters them: sets, deletes, appends and subtracts, and asks first with --dry-run', async () => {
    await run(['topics', 'create', 'altered'])
    const policy = async () => {
      const [found] = await runJson<Described[]>(['configs', 'describe', 'topic', 'altered'])
      return found?.configs.find(({ key }) => key === 'cleanup.policy')?.value
    }
    const alter = (...args: string[]) => run(['configs', 'alter', 'topic', 'altered', ...args])
    expect(await alter('--append', 'cleanup.policy=compact', '--dry-run')).toBe(
      'Settings of topic altered can be altered so\n',
    )
    expect(await policy()).toBeUndefined()
    expect(await alter('--append', 'cleanup.policy=compact')).toBe('Settings of topic altered altered\n')
    expect(await policy()).toBe('delete,compact')
    await alter('--subtract', 'cleanup.policy=delete', '--set', 'retention.ms=5')
    expect(await policy()).toBe('compact')
    await alter('--delete', 'cleanup.policy')
    expect(await policy()).toBeUndefined()

    await run(['configs', 'alter', 'broker', '--set', 'log.retention.ms=8888'])
    await run(['configs', 'alter', 'broker', '1', '--set', 'log.retention.ms=7777'])
    const [own] = await runJson<Described[]>(['configs', 'describe', 'broker', '1'])
    expect(own?.configs).toContainEqual(
      expect.objectContaining({ key: 'log.retention.ms', value: '7777', source: 'broker' }),
    )
    expect(await run(['configs', 'describe', 'broker'])).toMatch(/log\.retention\.ms +8888 +all brokers +yes/)
    for (const broker of [[], ['1']])
      await run(['configs', 'alter', 'broker', ...broker, '--delete', 'log.retention.ms'])
  })

  test('says what the broker refuses, and which resources there are not', async () => {
    const fixed = await rookery(withBroker(['configs', 'alter', 'broker', '1', '--set', 'num.partitions=3']))
    expect(fixed).toMatchObject({ code: 1, stdout: '' })
    expect(fixed.stderr).toContain('Settings of broker 1: Cannot update num.partitions dynamically')
    expect(await rookery(withBroker(['configs', 'describe', 'topic', 'never']))).toMatchObject({ code: 1, stdout: '' })
    const other = await rookery(withBroker(['configs', 'describe', 'broker', '9']))
    expect(other).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no broker 9 that is up; the only broker is 1'),
    })
  })
})

describe('rookery produce and consume', () => {
  test('lines become records, in order, and come out as lines', async () => {
    const lines = Array.from({ length: 5000 }, (_, i) => `line ${i}\n`).join('')
    await run(['topics', 'create', 'lines'])
    await run(['produce', 'lines'], { input: lines })
    expect(await run(['consume', 'lines', '--from', 'beginning', '--exit'])).toBe(lines)
    expect(await run(['consume', 'lines', '--from', '-2', '--exit'])).toBe('line 4998\nline 4999\n')
    expect(await run(['consume', 'lines', '--from', '10', '--max', '2'])).toBe('line 10\nline 11\n')
  })

  test('keys decide the partition as with any client, and headers are kept', async () => {
    await run(['topics', 'create', 'keyed', '-p', '5'])
    await run(['produce', 'keyed', '-k', ':', '-H', 'h=1'], { input: 'foobar:a\n21:b\nfoobar:c' })
    const records = await consumed('keyed')
    // murmur2 as in partitioner.test.ts, without its sign, modulo 5
    const expected = { foobar: (-790332482 & 0x7fffffff) % 5, '21': (-973932308 & 0x7fffffff) % 5 }
    const found = records.map(({ key, value, partition }) => `${key} ${value} ${partition}`)
    expect(found.sort()).toEqual([
      `21 b ${expected['21']}`,
      `foobar a ${expected.foobar}`,
      `foobar c ${expected.foobar}`,
    ])
    for (const { headers } of records) expect(headers).toEqual([{ key: 'h', value: '1' }])
  })

  test.each(['none', 'gzip', 'snappy', 'lz4', 'zstd'])('batches packed with %s are read', async (codec) => {
    const input = 'x'.repeat(1000)
    await run(['produce', `codec-${codec}`, '-z', codec], { input })
    expect(await run(['consume', `codec-${codec}`, '--from', 'beginning', '--exit'])).toBe(`${input}\n`)
  })

  test.each(['all', '1', '0'])('acks=%s', async (acks) => {
    const result = await runJson<{ records: number }>(['produce', `acks-${acks}`, '--acks', acks], {
      input: '{"value":"a"}\n{"key":"k"}\n',
    })
    expect(result).toMatchObject({ records: 2 })
    await until(async () => (await consumed(`acks-${acks}`)).length === 2, 'both records')
  })

  test('what was consumed as JSON can be produced again', async () => {
    const file = join(folder, 'records.jsonl')
    writeFileSync(file, '{"key":"k","value":{"a":1},"headers":{"h":"x"}}\n{"keyBase64":"/w==","value":null}\n')
    await run(['produce', 'first-copy', '--json', '--file', file])
    const copy = await run(['consume', 'first-copy', '--from', 'beginning', '--exit', '--json'])
    await run(['produce', 'second-copy', '--json'], { input: copy })
    const again = await run(['consume', 'second-copy', '--from', 'beginning', '--exit', '--json'])
    expect(again).toBe(copy.replaceAll('first-copy', 'second-copy'))
  })

  test('a line that cannot be used is named; those before it are written', async () => {
    const input = '{"value":"good"}\nbad\n{"value":"after"}\n'
    const result = await rookery(withBroker(['produce', 'partly', '--json']), { input })
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining('rookery: Line 2 is not JSON: ') })
    expect((await consumed('partly')).map(({ value }) => value)).toEqual(['good'])
  })

  test('a record that is too large is refused with its reason', async () => {
    await run(['topics', 'create', 'small', '--config', 'max.message.bytes=1000'])
    const result = await rookery(withBroker(['produce', 'small']), { input: 'x'.repeat(2000) })
    expect(result.code).toBe(1)
    expect(result.stderr).toContain('MESSAGE_TOO_LARGE')
  })

  test('consume follows a topic until it is told to stop, and begins at the end', async () => {
    await run(['produce', 'followed'], { input: 'before\n' })
    const consumer = new RookeryProcess(withBroker(['consume', 'followed', '--details']))
    await until(async () => {
      await run(['produce', 'followed'], { input: 'now\n' })
      return consumer.stdout.includes('now')
    }, 'a record that was followed')
    const { code, stdout } = await consumer.signal('SIGINT')
    expect(code).toBe(0)
    expect(stdout).not.toContain('before')
    expect(stdout).toMatch(/^followed-0@\d+ \d{4}-\d\d-\d\dT[\d:.]+Z now\n/)
  })

  test('consume waits no longer than for what is there when told to exit', async () => {
    await run(['topics', 'create', 'empty'])
    expect(await consumed('empty')).toEqual([])
    const missing = await rookery(withBroker(['consume', 'never-made', '--exit']))
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no topic never-made. ') })
  })
})

describe('rookery offsets', () => {
  test('tells first, end and what a place or a time means', async () => {
    await run(['topics', 'create', 'spans', '-p', '2'])
    const times = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z']
    const input = times.map((time) => `${JSON.stringify({ value: 'v', timestamp: Date.parse(time) })}\n`).join('')
    await run(['produce', 'spans', '-p', '1', '--json'], { input })
    expect(await run(['offsets', 'spans'])).toBe(
      'PARTITION  FIRST  END\n        0      0    0\n        1      0    3\n',
    )
    const at = async (place: string) =>
      (await runJson<{ offset: number }[]>(['offsets', 'spans', '--at', place])).map(({ offset }) => offset)
    expect(await at('2026-01-01T12:00:00Z')).toEqual([0, 1])
    expect(await at('2027-01-01')).toEqual([0, 3])
    expect(await at('-1')).toEqual([0, 2])
    expect(await at('0:0,1:-2')).toEqual([0, 1])
    expect(await at('1:beginning')).toEqual([null, 0])
    const missing = await rookery(withBroker(['offsets', 'spans', '--at', '2:1']))
    expect(missing).toMatchObject({ code: 2, stderr: 'rookery: Partition 2: spans has partitions 0 to 1\n' })
    const refused = await rookery(withBroker(['offsets', 'spans', '--at', 'never']))
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toContain('--at never: allowed is latest, beginning')
  })
})

test('an offset beyond the end is told, with what a time would be', async () => {
  await run(['topics', 'create', 'short'])
  await run(['produce', 'short'], { input: 'a\nb\n' })
  const said = async (code: number, ...args: string[]) => {
    const outcome = await rookery(withBroker(args))
    expect(outcome).toMatchObject({ code })
    return outcome.stderr
  }
  const beyond = 'rookery: Offset 9999999 lies beyond the end of short-0 (END is 2); for a time write it as 2026'
  expect(await said(0, 'offsets', 'short', '--at', '9999999')).toContain(beyond)
  expect(await said(0, 'consume', 'short', '--from', '9999999', '--exit')).toContain(beyond)
  const reset = ['groups', 'reset-offsets', 'shorts', '--topic', 'short', '--to']
  expect(await said(0, ...reset, '9999999')).toContain(beyond)
  expect(await said(0, ...reset, '1700000000000')).toContain('write it as 2023-11-14T22:13:20.000Z')
  expect(await said(0, 'offsets', 'short', '--at', '0:2')).toBe('')
  expect(await said(2, ...reset, '3:0')).toContain('Partition 3: there is none in short')
})

describe('rookery groups', () => {
  interface Described {
    readonly state: string
    readonly members: readonly { readonly partitions: readonly object[] }[]
    readonly offsets: readonly { readonly committedOffset: number | null; readonly lag: number | null }[]
  }
  const describeGroup = async (id: string) => (await runJson<Described[]>(['groups', 'describe', id]))[0]!

  test('a group reads each record once, over several runs', async () => {
    await run(['topics', 'create', 'shared', '-p', '2'])
    const input = Array.from({ length: 20 }, (_, i) => `k${i}:v${i}\n`).join('')
    await run(['produce', 'shared', '-k', ':'], { input })
    const first = await run(['consume', 'shared', '-g', 'readers', '--from', 'beginning', '--max', '7'])
    const second = await run(['consume', 'shared', '-g', 'readers', '--from', 'beginning', '--exit'])
    const values = `${first}${second}`.trim().split('\n')
    expect(first.trim().split('\n')).toHaveLength(7)
    expect(values.sort()).toEqual(Array.from({ length: 20 }, (_, i) => `v${i}`).sort())
    expect(await run(['groups'])).toMatch(/^readers +Empty +consumer$/m)
    const { state, members, offsets } = await describeGroup('readers')
    expect({ state, members }).toEqual({ state: 'Empty', members: [] })
    expect(offsets.map(({ lag }) => lag)).toEqual([0, 0])
  })

  test('offsets are shown before they are set, kept within the partition, and gone with the group', async () => {
    await run(['topics', 'create', 'rewound', '-p', '2'])
    await run(['produce', 'rewound', '-p', '1'], { input: 'a\nb\nc\n' })
    await run(['consume', 'rewound', '-g', 'rewinder', '--from', 'beginning', '--exit'])
    const reset = ['groups', 'reset-offsets', 'rewinder', '--to']
    const preview = await rookery(withBroker([...reset, 'beginning']))
    expect(preview).toMatchObject({ code: 0, stderr: 'Nothing was changed; --execute sets these offsets\n' })
    expect(preview.stdout).toMatch(/^TOPIC +PARTITION +COMMITTED +WOULD BE +LAG$/m)
    expect(preview.stdout).toMatch(/^rewound +1 +3 +0 +3$/m)
    expect((await describeGroup('rewinder')).offsets.map(({ lag }) => lag)).toContain(0)
    await run([...reset, '1', '--topic', 'rewound', '--execute'])
    const offsets = (await describeGroup('rewinder')).offsets.map(({ committedOffset, lag }) => [committedOffset, lag])
    expect(offsets).toEqual([
      [0, 0],
      [1, 2],
    ])
    expect(await run(['consume', 'rewound', '-g', 'rewinder', '--exit'])).toBe('b\nc\n')
    expect(await runJson(['groups', 'delete', 'rewinder'])).toEqual([{ groupId: 'rewinder' }])
    const again = await rookery(withBroker(['groups', 'delete', 'rewinder']))
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain('GROUP_ID_NOT_FOUND')
    const nothing = await rookery(withBroker([...reset, 'latest']))
    expect(nothing.code).toBe(2)
    expect(nothing.stderr).toContain('has committed nothing')
  })

  test('a group with members is neither reset nor deleted', async () => {
    await run(['topics', 'create', 'held'])
    const member = new RookeryProcess(withBroker(['consume', 'held', '-g', 'holders']))
    await until(async () => /^holders +Stable/m.test(await run(['groups'])), 'the group is stable')
    const reset = ['groups', 'reset-offsets', 'holders', '--to', 'latest', '--topic', 'held', '--execute']
    for (const args of [reset, ['groups', 'delete', 'holders']]) {
      const refused = await rookery(withBroker(args))
      expect(refused.code).toBe(1)
      expect(refused.stderr).toContain('NON_EMPTY_GROUP')
    }
    await member.signal('SIGINT')
  })

  test('members share partitions, and take over those of one that leaves', async () => {
    await run(['topics', 'create', 'split', '-p', '4'])
    const args = withBroker(['consume', 'split', '-g', 'team', '--from', 'beginning'])
    const one = new RookeryProcess(args)
    const two = new RookeryProcess(args)
    const shares = async () => {
      const { code, stdout } = await rookery(withBroker(['groups', 'describe', 'team', '--json']))
      if (code !== 0) return [] // neither has joined yet
      return (JSON.parse(stdout) as Described[])[0]!.members.map(({ partitions }) => partitions.length)
    }
    await until(async () => (await shares()).join() === '2,2', 'two members with two partitions each')
    expect(await run(['groups', 'describe', 'team'])).toMatch(/^team: Stable, lag \d+, 2 members, assignor range, /)
    expect((await one.signal('SIGINT')).code).toBe(0)
    await until(async () => (await shares()).join() === '4', 'one member with all four')
    await run(['produce', 'split'], { input: 'after\n' })
    await two.untilSays('after')
    expect((await two.signal('SIGTERM')).code).toBe(0)
  })

  test('a group that was never heard of is named', async () => {
    const { code, stderr } = await rookery(withBroker(['groups', 'describe', 'nobody']))
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'rookery: There is no group nobody\n' })
  })
})

test('no broker is a sentence that says what to do', async () => {
  const { code, stdout, stderr } = await rookery(['topics', 'list', '-b', 'localhost:1', '--timeout', '5'])
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^rookery: Nobody listens on localhost:1\. .*rookery start.*--bootstrap-server.*\n$/)
})
