import { describe, expect, test } from 'vitest'
import { parseOptions, UsageError } from '../../../bench/options.ts'

describe('parseOptions()', () => {
  test('without arguments names the benchmark without a name', () => {
    expect(parseOptions([])).toMatchObject({ name: '', runs: 20, peerRuns: 3, seconds: undefined, peer: undefined })
  })

  test('reads what failover takes', () => {
    const args = ['failover', '--runs', '5', '--peer', 'kafka', '--peer-runs', '2', '--rows', 'SIGKILL', '--peers-only']
    expect(parseOptions(args)).toMatchObject({
      name: 'failover',
      runs: 5,
      peer: 'kafka',
      peerRuns: 2,
      rows: 'SIGKILL',
      peersOnly: true,
    })
  })

  test('asks for help wherever --help is', () => {
    expect(parseOptions(['failover', '--help'])).toBe('help')
  })

  test.each<[string, string[], RegExp]>([
    ['an unknown benchmark', ['failovers'], /No benchmark is named failovers: allowed are throughput, .*failover/],
    ['a name of Object', ['constructor'], /No benchmark is named constructor/],
    ['two benchmarks', ['failover', 'scale'], /One benchmark at a time: failover scale/],
    ['an unknown option', ['failover', '--run', '3'], /'--run'/],
    ['an option without its value', ['failover', '--runs'], /--runs/],
    ['an option of another benchmark', ['scale', '--runs', '3'], /--runs means nothing to 'bench scale': .*--rows/],
    ['an option of a named benchmark', ['--runs', '3'], /--runs means nothing to 'bench': .*--seconds/],
    ['no runs', ['failover', '--runs', '0'], /--runs 0: allowed is a whole number from 1 to 1000/],
    ['part of a run', ['failover', '--runs', '1.5'], /--runs 1.5: allowed/],
    ['runs in words', ['failover', '--runs', 'five'], /--runs five: allowed/],
    ['too many runs', ['failover', '--runs', '1001'], /--runs 1001: allowed/],
    ['bad runs of peers', ['failover', '--peer', 'kafka', '--peer-runs', '-1'], /--peer-runs/],
    ['an unknown peer', ['failover', '--peer', 'redpanda'], /--peer redpanda: allowed is kafka/],
    ['runs of no peer', ['failover', '--peer-runs', '2'], /--peer-runs needs --peer kafka/],
    ['nothing but no peer', ['failover', '--peers-only'], /--peers-only needs --peer kafka/],
    ['no seconds', ['throughput', '--seconds', '0'], /--seconds 0: allowed is a number above 0/],
    ['endless seconds', ['throughput', '--seconds', 'Infinity'], /--seconds Infinity: allowed/],
  ])('refuses %s', (_what, args, message) => {
    expect(() => parseOptions(args)).toThrow(UsageError)
    expect(() => parseOptions(args)).toThrow(message)
  })
})
