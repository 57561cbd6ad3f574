import { parseArgs } from 'node:util'

export const help = `npm run bench                              one workload, two numbers
npm run bench -- throughput [options]      produce and fetch, beside the machine's limits
npm run bench -- start [options]           start-up time and memory
npm run bench -- scale [options]           thousands of partitions and connections
npm run bench -- starvation [options]      Raft beside a data plane that does all it can, on three nodes
npm run bench -- failover [options]        one of three nodes dies, hangs or is stopped: how long clients wait
npm run bench -- partitions [options]      thousands of replicated partitions on three nodes
npm run bench -- micro [options]           parts of the hot path by themselves
npm run bench -- compaction [options]      a log is compacted: how fast, and how long the event loop is held

  --full             every row, longer (throughput); 3 GB of load (start); four times the records (compaction)
  --rows TEXT        only rows with TEXT in their names (scale: 'partitions' or 'connections'; partitions: '1000' or '10000';
                     failover: several texts with commas between them, capitals or not)
  --runs N           of each event (failover); 20 when left out
  --peer-runs N      of each event with peers, whose runs take longer (failover); 3 when left out
  --seconds N        measured seconds for each row
  --peer kafka       Apache Kafka beside Rookery, from scripts/kafka-jars.sh or --kafka-jars DIR (throughput, failover); failover: with its
                     own timeouts, and with Rookery's
  --peers-only       the peer without Rookery (failover)
  --inline           Raft on the nodes' event loops, as before it had a thread (starvation, failover)
  --profile DIR      leave CPU profiles of the brokers in DIR
  --dir DIR          data goes to a folder in DIR while a benchmark runs; in the system's temporary folder when left out

How to read each: the comment at the top of bench/<name>.ts.
`

/** The options of each benchmark, beside `--dir`; '' is the one without a name. */
const optionsOf = {
  '': ['seconds', 'profile'],
  throughput: ['full', 'rows', 'seconds', 'peer', 'kafka-jars', 'profile'],
  start: ['full', 'seconds', 'profile'],
  scale: ['full', 'seconds', 'rows', 'profile'],
  starvation: ['seconds', 'profile', 'inline'],
  failover: ['rows', 'runs', 'peer-runs', 'peer', 'kafka-jars', 'peers-only', 'inline', 'profile'],
  partitions: ['seconds', 'rows', 'profile'],
  micro: ['seconds', 'rows'],
  compaction: ['full'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type BenchmarkName = keyof typeof optionsOf

export interface BenchOptions {
  readonly name: BenchmarkName
  readonly full: boolean
  readonly rows: string | undefined
  readonly runs: number
  readonly peerRuns: number
  /** Undefined: as the benchmark chooses. */
  readonly seconds: number | undefined
  readonly peer: 'kafka' | undefined
  readonly kafkaJars: string | undefined
  readonly peersOnly: boolean
  readonly inline: boolean
  readonly profile: string | undefined
  readonly dir: string | undefined
}

/** The command line is wrong; the message says how, and what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Of the arguments after the program's name; 'help' when that is asked for. Throws `UsageError`. */
export function parseOptions(args: readonly string[]): BenchOptions | 'help' {
  const { values, positionals } = parse(args)
  if (values.help === true) return 'help'
  const [name = '', ...rest] = positionals
  if (!isBenchmark(name)) {
    const names = Object.keys(optionsOf).filter((each) => each !== '')
    throw new UsageError(`No benchmark is named ${name}: allowed are ${names.join(', ')}`)
  }
  if (rest.length > 0) throw new UsageError(`One benchmark at a time: ${positionals.join(' ')}`)
  const allowed: readonly string[] = [...optionsOf[name], 'dir', 'help']
  for (const given of Object.keys(values)) {
    if (allowed.includes(given)) continue
    const options = allowed.map((each) => `--${each}`).join(', ')
    throw new UsageError(`--${given} means nothing to '${`bench ${name}`.trim()}': allowed are ${options}`)
  }
  const { peer } = values
  if (peer !== undefined && peer !== 'kafka') throw new UsageError(`--peer ${peer}: allowed is kafka`)
  for (const needsPeer of ['peers-only', 'peer-runs', 'kafka-jars'] as const) {
    if (peer === undefined && values[needsPeer] !== undefined) throw new UsageError(`--${needsPeer} needs --peer kafka`)
  }
  return {
    name,
    full: values.full ?? false,
    rows: values.rows,
    runs: runs('runs', values.runs, 20),
    peerRuns: runs('peer-runs', values['peer-runs'], 3),
    seconds: seconds(values.seconds),
    peer,
    kafkaJars: values['kafka-jars'],
    peersOnly: values['peers-only'] ?? false,
    inline: values.inline ?? false,
    profile: values.profile,
    dir: values.dir,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        full: { type: 'boolean' },
        rows: { type: 'string' },
        seconds: { type: 'string' },
        peer: { type: 'string' },
        'kafka-jars': { type: 'string' },
        runs: { type: 'string' },
        'peer-runs': { type: 'string' },
        'peers-only': { type: 'boolean' },
        inline: { type: 'boolean' },
        profile: { type: 'string' },
        dir: { type: 'string' },
        help: { type: 'boolean' },
      },
    })
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error })
  }
}

function isBenchmark(name: string): name is BenchmarkName {
  return Object.hasOwn(optionsOf, name)
}

function runs(option: string, text: string | undefined, standard: number): number {
  if (text === undefined) return standard
  const given = Number(text)
  if (/^\d+$/.test(text) && given >= 1 && given <= 1000) return given
  throw new UsageError(`--${option} ${text}: allowed is a whole number from 1 to 1000`)
}

function seconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const given = Number(text)
  if (given > 0 && Number.isFinite(given)) return given
  throw new UsageError(`--seconds ${text}: allowed is a number above 0`)
}
