import { until } from '../../support/condition.ts'
import type { Peer } from '../../support/peers.ts'
import { type Outcome, runPeer } from '../../support/programs.ts'
import type { Transcript } from './transcript.ts'

/** One kcat after another, as a person types them. */
export type KcatScript = (run: KcatRun) => Promise<void>

export class KcatRun {
  readonly topic: string
  readonly #peer: Peer
  readonly #broker: string
  readonly #transcript: Transcript

  constructor(peer: Peer, port: number, topic: string, transcript: Transcript) {
    this.#peer = peer
    this.#broker = `127.0.0.1:${port}`
    this.topic = topic
    this.#transcript = transcript
  }

  /** Says what kcat prints, and how it ends. */
  async kcat(args: readonly string[], input: string | Buffer = ''): Promise<void> {
    const { exitCode, stdout, stderr } = await this.#run(args, input)
    const what = args.filter((each) => !each.includes('%')).join(' ')
    this.#transcript.say(what, stdout)
    // The same complaint may come once or more often.
    for (const line of new Set(stderr.split('\n'))) this.#transcript.say(`${what}, complaint`, line)
    this.#transcript.say(what, `ends with ${exitCode}`)
  }

  /** Waits until partition 0 has so many records, which an answer does not tell where none is asked for. */
  async untilWritten(count: number): Promise<void> {
    const isWritten = async () =>
      (await this.#run(['-Q', '-t', `${this.topic}:0:-1`])).stdout.includes(`offset ${count}\n`)
    await until(isWritten, `${this.topic} has ${count} records`)
  }

  /** Its own patience with a broker is 5 s; what comes later in `args` counts. */
  #run(args: readonly string[], input: string | Buffer = ''): Promise<Outcome> {
    return runPeer(this.#peer, ['-b', this.#broker, '-m', '30', ...args], { input })
  }

  produce(args: readonly string[], input: string | Buffer): Promise<void> {
    return this.kcat(['-P', '-t', this.topic, '-p', '0', ...args], input)
  }

  /** All of partition 0, with what kcat knows of each record. */
  consume(...args: string[]): Promise<void> {
    const format = '%p %o %K %k %S %s %h %T|'
    return this.kcat(['-C', '-t', this.topic, '-p', '0', '-e', '-q', '-f', format, ...args])
  }
}

const lines = Array.from({ length: 20 }, (_, i) => `key ${i}:value ${i}`).join('\n')
const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd']

const packed = Object.fromEntries(
  codecs.map((codec): [string, KcatScript] => [
    `packs records with ${codec}`,
    async (run) => {
      await run.produce(['-z', codec, '-K:'], lines)
      await run.consume()
    },
  ]),
)

export const kcatScripts: Readonly<Record<string, KcatScript>> = {
  ...packed,

  'tells null from empty, and headers': async (run) => {
    const headers = ['-H', 'a=1', '-H', 'a=2', '-H', 'empty=', '-H', 'null']
    await run.produce(['-K:', ...headers], 'key:value\n:no key\nno value:\n:\n')
    await run.produce(['-K:', '-Z'], 'key:value\n:no key\nno value:\n:\n')
    await run.consume()
  },

  'reads from here and there': async (run) => {
    await run.produce(['-K:'], lines)
    for (const offset of ['beginning', 'end', '3', '-2', '19', '20', '99']) await run.consume('-o', offset)
    await run.consume('-o', '3', '-o', 's@1')
    await run.consume('-c', '4')
    await run.consume('-o', 'beginning', '-X', 'fetch.message.max.bytes=100')
    await run.consume('-o', '99', '-X', 'auto.offset.reset=error')
    await run.consume('-o', '99', '-X', 'auto.offset.reset=earliest')
  },

  'asks for offsets by time': async (run) => {
    await run.produce(['-K:'], lines)
    for (const time of [0, 1, -1, -2, 9_000_000_000_000]) await run.kcat(['-Q', '-t', `${run.topic}:0:${time}`])
    await run.kcat(['-Q', '-t', `${run.topic}:7:0`])
  },

  'lists a topic': async (run) => {
    await run.produce([], 'a')
    await run.kcat(['-L', '-t', run.topic])
    await run.kcat(['-L', '-J', '-t', run.topic])
    await run.kcat(['-L', '-J', '-t', `${run.topic}-missing`, '-X', 'allow.auto.create.topics=false'])
    await run.kcat(['-L', '-t', 'a b'])
  },

  'is told what is not there': async (run) => {
    const quick = ['-X', 'message.timeout.ms=30000', '-X', 'topic.metadata.propagation.max.ms=0']
    await run.produce([], 'a')
    await run.kcat(['-P', '-t', run.topic, '-p', '9', ...quick], 'a')
    await run.kcat(['-C', '-e', '-q', '-t', run.topic, '-p', '9', ...quick.slice(2)])
    await run.kcat(['-C', '-e', '-q', '-t', `${run.topic}-missing`, '-p', '0', ...quick.slice(2)])
    await run.kcat(['-P', '-t', 'a b', ...quick], 'a')
  },

  'is told what is too large': async (run) => {
    await run.produce([], 'small enough')
    await run.produce(['-D', '|', '-X', 'message.max.bytes=5000000'], 'x'.repeat(1_100_000))
    await run.produce(['-D', '|'], 'x'.repeat(1_100_000))
    await run.consume()
  },

  'writes as an idempotent producer, and with other acks': async (run) => {
    await run.produce(['-X', 'enable.idempotence=true', '-X', 'batch.num.messages=3'], lines)
    await run.produce(['-X', 'acks=0'], 'with acks 0')
    await run.untilWritten(21)
    for (const acks of ['1', '-1']) await run.produce(['-X', `acks=${acks}`], `with acks ${acks}`)
    await run.consume('-o', 'beginning', '-c', '23')
  },

  'goes on where its group was': async (run) => {
    await run.produce(['-K:'], lines)
    const group = ['-G', `${run.topic}-group`, '-e', '-q', '-X', 'auto.offset.reset=earliest', '-f', '%o %k %s|']
    await run.kcat([...group, run.topic])
    await run.produce(['-K:'], 'later:one')
    await run.kcat([...group, run.topic])
    await run.kcat([...group, '-X', 'partition.assignment.strategy=cooperative-sticky', run.topic])
    await run.kcat([...group, '-X', 'session.timeout.ms=1000', '-X', 'heartbeat.interval.ms=300', run.topic])
  },
}
