import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Broker, startBroker } from '../../src/index.ts'
import { until } from '../support/condition.ts'
import { recordsOfAnyAge } from '../support/records-of-any-age.ts'
import { RookeryProcess, type RunOptions, rookery } from '../support/rookery-process.ts'

const main = join(import.meta.dirname, '../../src/cli/main.ts')

let broker: Broker
beforeAll(async () => {
  broker = await startBroker({ config: recordsOfAnyAge })
})
afterAll(() => broker.stop())

const withBroker = (args: readonly string[]) => [...args, '-b', broker.bootstrapServers]

async function run(args: readonly string[], options?: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await rookery(withBroker(args), options)
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

async function refused(args: readonly string[], options?: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await rookery(withBroker(args), options)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  return stderr
}

const all = (topic: string, ...args: string[]) => run(['consume', topic, '--from', 'beginning', '--exit', ...args])

describe('rookery produce', () => {
  test('makes null of a marker, for keys and values, and of nothing else', async () => {
    const input = 'a:NIL\nNIL:b\nNIL:NIL\nNILS:x\n:\n'
    await run(['produce', 'nulls', '-k', ':', '--null', 'NIL', '-p', '0'], { input })
    const records = (await all('nulls', '--json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { key: string; value: string })
    expect(records.map(({ key, value }) => [key, value])).toEqual([
      ['a', null],
      [null, 'b'],
      [null, null],
      ['NILS', 'x'],
      ['', ''],
    ])
    expect(await all('nulls', '-k', ':', '--null', 'NIL')).toBe(input)
  })

  test('takes one key for all, and bytes as hex and base64', async () => {
    await run(['produce', 'bytes', '--key', 'ff00', '--key-format', 'hex', '--value-format', 'base64'], {
      input: '/wA=\n',
    })
    const [record] = (await all('bytes', '--json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(record).toMatchObject({ keyBase64: '/wA=', valueBase64: '/wA=' })
    expect(await all('bytes', '-k', ' ', '--key-format', 'hex', '--value-format', 'hex')).toBe('ff00 ff00\n')
    expect(await refused(['produce', 'bytes', '--value-format', 'hex'], { input: 'xyz\n' })).toContain(
      'The value of Line 1',
    )
    expect(await refused(['produce', 'bytes', '--value-format', 'json'], { input: '{"a":1}\n{a}\n' })).toContain(
      'The value of Line 2 is not JSON: ',
    )
  })

  test('stops after so many lines, and keeps to a rate', async () => {
    const startMs = performance.now()
    await run(['produce', 'paced', '--max', '3', '--rate', '5'], { input: '1\n2\n3\n4\n' })
    expect(performance.now() - startMs).toBeGreaterThan(400) // the third record's turn
    expect(await all('paced')).toBe('1\n2\n3\n')
  })

  test('says when it made the topic, and takes a tab as kcat does', async () => {
    const produce = () => rookery(withBroker(['produce', 'tabbed', '-k', '\\t']), { input: 'a\tb\n' })
    expect((await produce()).stderr).toBe('Topic tabbed was created with 1 partition\n1 record written to tabbed\n')
    expect((await produce()).stderr).toBe('1 record written to tabbed\n')
    expect(await all('tabbed', '-k', '\\t')).toBe('a\tb\na\tb\n')
  })

  test('names the nearest topic where the broker makes none', async () => {
    await using strict = await startBroker({ topics: ['payments'], config: { 'auto.create.topics.enable': false } })
    const args = ['produce', 'paymnets', '-b', strict.bootstrapServers, '--timeout', '300']
    expect(await rookery(args, { input: 'a\n' })).toMatchObject({
      code: 1,
      stderr: 'rookery: There is no topic paymnets. Did you mean payments?\n',
    })
  })

  test('says nothing of its timers at a high rate', async () => {
    const input = Array.from({ length: 3000 }, (_, i) => `${i}\n`).join('')
    const { code, stderr } = await rookery(withBroker(['produce', 'hurried', '--rate', '4000']), { input })
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^.*\n3000 records written to hurried\n$/),
    })
  })

  test('sends what it has read, and says so, when it is interrupted', async () => {
    const child = spawn(process.execPath, [main, ...withBroker(['produce', 'interrupted'])], { stdio: 'pipe' })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.stdin.write('first\n')
    await until(async () => (await all('interrupted').catch(() => '')) === 'first\n', 'the first record')
    child.kill('SIGINT')
    await once(child, 'close')
    expect(stderr).toBe('Topic interrupted was created with 1 partition\n1 record written to interrupted\n')
  })

  test('options that contradict each other are refused before anything is written', async () => {
    for (const args of [
      ['--key', 'a', '-k', ':'],
      ['--json', '--null', 'x'],
      ['--json', '--value-format', 'hex'],
      ['--rate', '0'],
      ['--key-format', 'xml'],
    ]) {
      await refused(['produce', 'never-written', ...args], { input: '{"value":"x"}\n' })
    }
    expect(await run(['topics', 'list'])).not.toContain('never-written')
  })
})

test('a folder is no file of lines', async () => {
  expect(await refused(['produce', 'folders', '--file', import.meta.dirname])).toMatch(/ a folder; allowed is a file/)
})

test('an option before the command is told where it belongs', async () => {
  const { code, stderr } = await rookery(['-b', broker.bootstrapServers, 'topics', 'list'])
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('options come after the command') })
})

test('an empty KAFKA_BOOTSTRAP_SERVERS is none', async () => {
  const { stderr } = await rookery(['topics', 'list', '--help'], { env: { KAFKA_BOOTSTRAP_SERVERS: '' } })
  expect(stderr).toBe('')
  const listed = await rookery(['topics', 'list'], { env: { KAFKA_BOOTSTRAP_SERVERS: '' } })
  expect(listed.stderr).not.toContain('allowed is host:port')
})

describe('JSON lines', () => {
  test('come back exactly: keys, values, headers, times and partitions, whatever the bytes', async () => {
    await run(['topics', 'create', 'exact', '-p', '3', '-c', 'retention.ms=-1'])
    await run(['topics', 'create', 'exact-copy', '-p', '3', '-c', 'retention.ms=-1'])
    const lines = [
      { partition: 0, timestamp: 1, key: 'k', value: 'v' },
      { partition: 1, timestamp: 1_700_000_000_000, key: null, value: null },
      {
        partition: 2,
        timestamp: 2,
        keyBase64: '/w==',
        valueBase64: 'wA==',
        headers: [
          { key: 'a', valueBase64: '/w==' },
          { key: 'a', value: null },
        ],
      },
      { partition: 0, timestamp: 3, key: '', value: '', headers: [{ key: '', value: '' }] },
      { partition: 0, timestamp: 4, key: '"\\\u0000\u2028', value: '{"a": 1}' },
      { partition: 0, timestamp: -1, key: 'no time', value: 'x'.repeat(10_000) },
    ]
    await run(['produce', 'exact', '--json'], { input: lines.map((line) => `${JSON.stringify(line)}\n`).join('') })
    const first = await all('exact', '--json')
    const got = first
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { partition: number; offset: number })
    expect(got).toHaveLength(lines.length)
    for (const line of lines) expect(got).toContainEqual(expect.objectContaining(line))
    await run(['produce', 'exact-copy', '--json'], { input: first })
    const second = await all('exact-copy', '--json')
    expect(second.split('\n').sort().join('\n').replaceAll('exact-copy', 'exact')).toBe(
      first.split('\n').sort().join('\n'),
    )
  })

  test('hold values that are JSON as such when asked', async () => {
    await run(['produce', 'embedded', '-p', '0'], { input: '{"a":[1]}\n"text"\nnull\nplain\n7\n' })
    const values = (await all('embedded', '--json', '--value-format', 'json')).trim().split('\n')
    expect(values.map((line) => (JSON.parse(line) as { value: unknown }).value)).toEqual([
      { a: [1] },
      '"text"',
      'null',
      'plain',
      7,
    ])
  })
})

describe('rookery consume', () => {
  beforeAll(async () => {
    await run(['topics', 'create', 'two', '-p', '2', '-c', 'retention.ms=-1'])
    const lines = Array.from({ length: 20 }, (_, i) =>
      JSON.stringify({ partition: i % 2, timestamp: 1_000_000 + i * 1000, key: `k${i % 4}`, value: `v${i}` }),
    )
    await run(['produce', 'two', '--json'], { input: lines.join('\n') })
  })

  test('the last records of all partitions, in the order of their times', async () => {
    expect(await run(['consume', 'two', '--last', '3'])).toBe('v17\nv18\nv19\n')
    expect(await run(['consume', 'two', '--last', '100', '--key', 'k3'])).toBe('v3\nv7\nv11\nv15\nv19\n')
  })

  test('from and until places, for all partitions or for some', async () => {
    const sorted = async (...args: string[]) => (await run(['consume', 'two', ...args])).trim().split('\n').sort()
    expect(await sorted('--from', '2', '--until', '4')).toEqual(['v4', 'v5', 'v6', 'v7'])
    expect(await sorted('--from', '0:8', '--exit')).toEqual(['v16', 'v18'])
    expect(await sorted('--from', '0:9,1:-2', '--exit')).toEqual(['v17', 'v18', 'v19'])
    const [from, until] = [5, 8].map((i) => new Date(1_000_000 + i * 1000).toISOString())
    expect(await sorted('--from', from!, '--until', until!)).toEqual(['v5', 'v6', 'v7'])
    expect(await refused(['consume', 'two', '--from', '7:0'])).toContain('two has partitions 0 to 1')
    expect(await refused(['consume', 'two', '--until', 'soon'])).toContain('--until soon: allowed is')
  })

  test('several topics, and patterns of names', async () => {
    await run(['produce', 'many-a'], { input: 'a\n' })
    await run(['produce', 'many-b'], { input: 'b\n' })
    const read = await run(['consume', 'many-*', '--from', 'beginning', '--exit', '--format', '%t %v'])
    expect(read.split('\n').sort()).toEqual(['', 'many-a a', 'many-b b'])
    const group = ['consume', 'many-a', 'many-b', '-g', 'many', '--from', 'beginning', '--exit']
    expect((await run(group)).split('\n').sort()).toEqual(['', 'a', 'b'])
    expect(await run(group)).toBe('')
    const none = await rookery(withBroker(['consume', 'nothing-*', '--exit']))
    expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no topic nothing-*') })
  })

  test('what is told to end begins at the beginning', async () => {
    expect((await run(['consume', 'two', '--exit'])).split('\n')).toHaveLength(21)
    expect((await run(['consume', 'two', '--until', '0:1'])).split('\n')).toHaveLength(12)
  })

  test('a pattern says what is printed', async () => {
    const line = await run(['consume', 'two', '--from', '0:0', '-n', '1', '--format', '%t/%p/%o\\t%T %d %k=%v %h%%'])
    expect(line).toBe('two/0/0\t1000000 1970-01-01T00:16:40.000Z k0=v0 %\n')
    expect(await refused(['consume', 'two', '--format', '%x'])).toContain('%x is unknown')
    expect(await refused(['consume', 'two', '--format', '\\q'])).toContain('\\q is unknown')
  })

  test('a group that is not to commit reads the same again', async () => {
    const args = ['consume', 'two', '-g', 'peekers', '--from', 'beginning', '--exit', '--no-commit']
    const read = await run(args)
    expect(read.split('\n')).toHaveLength(21)
    expect(await run(args)).toBe(read)
  })

  test('ends in order when whoever reads it goes away', async () => {
    const input = Array.from({ length: 50_000 }, (_, i) => `line ${i} ${'x'.repeat(100)}\n`).join('')
    await run(['produce', 'long'], { input })
    const args = withBroker(['consume', 'long', '--from', 'beginning', '--exit'])
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.stdout.once('data', () => child.stdout.destroy())
    const [code] = (await once(child, 'close')) as [number | null]
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  test('leaves its group when whoever reads it goes away', async () => {
    const args = withBroker(['consume', 'long', '--from', 'beginning', '-g', 'headed'])
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout.once('data', () => child.stdout.destroy())
    const [code] = (await once(child, 'close')) as [number | null]
    expect(code).toBe(0)
    expect(await run(['groups'])).toMatch(/^headed +Empty/m)
  })

  test('goes on when the broker comes back, with a group and without, and says what it waits for', async () => {
    const first = await startBroker({ topics: ['lasting'] })
    const { port, bootstrapServers } = first
    const consumers = [[], ['-g', 'lasting']].map((more) => {
      return new RookeryProcess(['consume', 'lasting', '--from', 'beginning', ...more, '-b', bootstrapServers])
    })
    const produce = async (input: string) => {
      expect((await rookery(['produce', 'lasting', '-b', bootstrapServers], { input })).code).toBe(0)
    }
    await produce('before\n')
    for (const each of consumers) await each.untilSays('before')
    await first.stop()
    for (const each of consumers) await each.untilSays('Trying again for 2')
    await using _second = await startBroker({ topics: ['lasting'], port })
    await produce('after\nand after\n')
    for (const each of consumers) {
      await each.untilSays('and after')
      expect(await each.signal('SIGINT')).toEqual({
        code: 0,
        stdout: 'before\nafter\nand after\n',
        stderr: expect.stringContaining('records read'),
      })
    }
  })

  test('ends at once when it is told to while it waits for the broker', async () => {
    const lost = await startBroker()
    const servers = ['-b', lost.bootstrapServers]
    await rookery(['produce', 'lost', ...servers], { input: 'here\n' })
    const consumer = new RookeryProcess(['consume', 'lost', '--from', 'beginning', ...servers])
    const member = new RookeryProcess(['consume', 'lost', '--from', 'beginning', '-g', 'lost', ...servers])
    for (const each of [consumer, member]) await each.untilSays('here')
    await lost.stop()
    for (const each of [consumer, member]) await each.untilSays('Trying again')
    const startMs = performance.now()
    expect((await consumer.signal('SIGINT')).code).toBe(0)
    expect(await member.signal('SIGTERM')).toMatchObject({ code: expect.any(Number) })
    expect(performance.now() - startMs).toBeLessThan(10_000)
  })

  test('a second signal ends it at once', async () => {
    const consumer = new RookeryProcess(withBroker(['consume', 'two', '-g', 'stubborn']))
    await until(async () => /^stubborn +Stable/m.test(await run(['groups'])), 'the group is stable')
    expect((await consumer.signal('SIGTERM')).code).toBe(0)
  })
})

test('a topic that is mistyped is answered with the nearest name', async () => {
  await run(['topics', 'create', 'payments'])
  for (const command of [
    ['consume', 'paymnets'],
    ['topics', 'describe', 'paymnets'],
    ['offsets', 'paymnets'],
    ['topics', 'delete', 'paymnets', '--yes'],
    ['topics', 'alter', 'paymnets', '--partitions', '9'],
    ['topics', 'alter', 'paymnets', '--config', 'retention.ms=1'],
    ['configs', 'describe', 'topic', 'paymnets'],
    ['configs', 'alter', 'topic', 'paymnets', '--set', 'retention.ms=1'],
  ]) {
    const { code, stderr } = await rookery(withBroker(command))
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'rookery: There is no topic paymnets. Did you mean payments?\n',
    })
  }
})

test('a command that is mistyped is not taken for a topic', async () => {
  expect(await refused(['topics', 'crate', 'x'])).toBe(
    'rookery: There is no topic crate. Did you mean `topics create`?\n',
  )
  expect(await rookery(withBroker(['topics', 'list', 'paymnets']))).toMatchObject({ code: 1, stdout: '' })
})

test('topics and groups without a name are all of them', async () => {
  expect(await run(['topics', 'describe'])).toMatch(/^payments: 1 partition/m)
  expect(await run(['topics', 'describe', 'payments', '--all'])).toMatch(/^ {2}retention\.ms=\d+ \(default\)$/m)
  expect(await run(['topics', 'list', 'many-*', '--json'])).toBe(
    '[{"name":"many-a","partitions":1,"replicas":1},{"name":"many-b","partitions":1,"replicas":1}]\n',
  )
  expect(await run(['groups', 'describe'])).toMatch(/^many: Empty, lag 0, 0 members/m)
})

test('what settings are of is told when it is mistyped, and a broker that is not there', async () => {
  const told = async (...args: string[]) => {
    const { code, stderr } = await rookery(withBroker(['configs', 'describe', ...args]))
    return `${code} ${stderr}`
  }
  expect(await told('topics')).toMatch(/^2 .*'topics'.*Did you mean topic\?/)
  expect(await told('group')).toMatch(/^2 .*Allowed choices are topic, broker\./)
  expect(await told('broker', '7')).toBe('1 rookery: There is no broker 7 that is up; the only broker is 1\n')
})
