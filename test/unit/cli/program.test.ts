import { CommanderError } from 'commander'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createProgram } from '../../../src/cli/program.ts'

let written = ''

beforeEach(() => {
  written = ''
  const write = (text: unknown) => {
    written += String(text)
    return true
  }
  vi.spyOn(process.stderr, 'write').mockImplementation(write)
  vi.spyOn(process.stdout, 'write').mockImplementation(write)
})

afterEach(() => {
  vi.restoreAllMocks()
})

const parse = (...args: string[]) => createProgram().parseAsync(args, { from: 'user' })

test.each([
  [['unknown'], "unknown command 'unknown'"],
  [['start', '--unknown'], "unknown option '--unknown'"],
  [['start', '--log-level', 'loud'], 'Allowed choices are debug, info, warn, error, silent'],
  [['topics', 'create'], "missing required argument 'topics'"],
  [['topics', 'create', 'a', '-p', '0'], 'Allowed is a whole number from 1'],
  [['topics', 'alter', 'a', '-p', '0'], 'Allowed is a whole number from 1'],
  [['topics', 'alter'], "missing required argument 'topics'"],
  [['configs', 'describe', 'group', 'g'], 'Allowed choices are topic, broker'],
  [['configs', 'alter'], "missing required argument 'kind'"],
  [['consume', 't', '-n', '1.5'], 'Allowed is a whole number from 1'],
  [['produce'], "missing required argument 'topic'"],
  [['produce', 't', '--acks', '2'], 'Allowed choices are all, 1, 0'],
])('%j is refused with what is allowed', async (args, message) => {
  await expect(parse(...args)).rejects.toThrow(CommanderError)
  expect(written).toContain(message)
})

test('arguments that contradict each other are refused before a broker is asked', async () => {
  await expect(parse('consume', 't', '-g', 'g', '-p', '0')).rejects.toThrow('--partition contradicts --group')
  await expect(parse('consume', 't', '--from', 'never')).rejects.toThrow('--from never: allowed is')
  await expect(parse('topics', 'alter', 't')).rejects.toThrow('Nothing to change')
  await expect(parse('topics', 'alter', 't', '-c', 'x')).rejects.toThrow('--config x: allowed is key=value')
  await expect(parse('configs', 'alter', 'topic', 't')).rejects.toThrow('Nothing to change')
  await expect(parse('configs', 'alter', 'topic', 't', '-s', '=1')).rejects.toThrow('--set =1: allowed is key=value')
  await expect(parse('configs', 'describe', 'topic')).rejects.toThrow('Which topic?')
  await expect(parse('configs', 'describe', 'broker', 'one')).rejects.toThrow('named by its id')
  await expect(parse('produce', 't', '-H', 'x')).rejects.toThrow('--header x: allowed is name=value')
  await expect(parse('produce', 't', '--json', '-k', ':')).rejects.toThrow('--key-separator is for lines of text')
})

test('every command is in the help', async () => {
  await expect(parse('--help')).rejects.toMatchObject({ exitCode: 0 })
  for (const command of ['start', 'topics', 'produce', 'consume', 'groups']) expect(written).toContain(`  ${command} `)
})

/** What the option of a size makes of `text`. */
function sizeOf(text: string): unknown {
  const reassign = createProgram().commands.find((command) => command.name() === 'reassign')
  const start = reassign?.commands.find((command) => command.name() === 'start')
  return start?.options.find(({ long }) => long === '--throttle')?.parseArg?.(text, undefined)
}

test.each([
  ['1', 1],
  ['500000', 500_000],
  ['999999999999', 999_999_999_999],
  ['64b', 64],
  ['1k', 1024],
  ['1K', 1024],
  ['1kB', 1024],
  ['1ki', 1024],
  ['512KiB', 512 * 1024],
  ['10MiB', 10 * 1024 * 1024],
  ['10 MiB', 10 * 1024 * 1024],
  ['1.5m', 1.5 * 1024 * 1024],
  ['0.001k', 1],
  ['2g', 2 * 1024 ** 3],
  ['0008', 8],
  ['8388607.999999g', Math.floor(8_388_607.999999 * 1024 ** 3)],
])('%j is a size', (text, bytes) => {
  expect(sizeOf(text)).toBe(bytes)
})

test.each([
  '',
  ' ',
  'k',
  'MiB',
  '0',
  '0k',
  '0.0',
  '0.0001k',
  '-1',
  '+1',
  '1.5',
  '1.5b',
  '1.',
  '.5m',
  '1..5k',
  '1.0000001k',
  '1e6',
  '0x10',
  '1_000',
  '1,5m',
  'NaN',
  'Infinity',
  '1t',
  '1kk',
  '1ib',
  '1 0',
  '1  k',
  ' 1k',
  '1k ',
  '1k\n',
  '1\n',
  '1k\u0000',
  '\u0661k',
  '1\u212a',
  '9999999999999',
  '8388608g',
  '999999999999g',
  'constructor',
  '1constructor',
])('%j is no size', (text) => {
  expect(() => sizeOf(text)).toThrow('Allowed is a number of bytes, such as 500000, 512KiB or 10MiB.')
})

test('a text without end is no size', () => {
  for (const text of ['1'.repeat(1e6), `1.${'0'.repeat(1e6)}k`, `1${' '.repeat(1e6)}k`])
    expect(() => sizeOf(text)).toThrow('Allowed is a number of bytes')
})
