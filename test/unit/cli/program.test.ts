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
