import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { describeWithPeer } from '../../support/peers.ts'
import { runPeer } from '../../support/programs.ts'
import type { BrokerPair } from '../pair.ts'
import { KafkajsRun, kafkajsScripts } from './kafkajs.ts'
import { KcatRun, kcatScripts } from './kcat.ts'
import { Transcript } from './transcript.ts'

/**
 * Tests in which the same scripts of real clients talk to both brokers of the pair: what their users see must be the same, but for
 * what each broker chooses for itself. Of an error that is its class or code; the sentences differ.
 */
export function compareClients(pair: () => BrokerPair): void {
  /** Both brokers' transcripts. */
  const both = async (run: (port: number, transcript: Transcript) => Promise<void>): Promise<[string[], string[]]> => {
    const transcripts = pair().ports.map((port) => new Transcript(port))
    await Promise.all(transcripts.map((transcript, i) => run(pair().ports[i]!, transcript)))
    return [transcripts[0]!.lines, transcripts[1]!.lines]
  }

  describeWithPeer('kafka-compiled', "Kafka's Java clients", (peer) => {
    test('all scripts', { timeout: 250_000 }, async () => {
      const program = join(import.meta.dirname, 'ClientScripts.java')
      const jvm = { ...peer, args: ['-Dlog4j2.level=WARN', ...peer.args] }
      const startedMs = Date.now()
      const brokers = pair().ports.map((port) => `127.0.0.1:${port}`)
      const { exitCode, stdout, stderr, output } = await runPeer(jvm, [program, ...brokers], { timeoutMs: 240_000 })
      expect(exitCode, output).toBe(0)
      const [theirs, ours] = pair().ports.map((port, i) => javaScripts(stdout, i, new Transcript(port, startedMs)))
      expect(ours?.size, stderr).toBeGreaterThan(25)
      expect(ours).toEqual(theirs)
      // Neither broker has where telemetry goes, which is no reason to say anything.
      expect(stdout.split('\n').filter((line) => /telemetry/i.test(line) && !line.startsWith('@'))).toEqual([])
    })
  })

  describeWithPeer('kcat', 'kcat', (kcat) => {
    test.each(Object.entries(kcatScripts))('%s', async (title, script) => {
      const topic = `kcat-${title.replaceAll(/[^a-z]+/g, '-')}`
      const [theirs, ours] = await both((port, transcript) => script(new KcatRun(kcat, port, topic, transcript)))
      expect(ours).toEqual(theirs)
    })
  })

  describe('kafkajs', () => {
    test.each(Object.entries(kafkajsScripts))('%s', async (title, script) => {
      const topic = `kafkajs-${title.replaceAll(/[^a-z]+/g, '-')}`
      const [theirs, ours] = await both(async (port, transcript) => {
        await using run = await KafkajsRun.start(port, topic, transcript)
        await script(run)
      })
      expect(ours).toEqual(theirs)
    })
  })
}

/** Settings that only Apache Kafka 4.4 has, as accepted-differences.ts tells. */
const onlyKafkas = /^(errors\.deadletterqueue\.|max\.decompressed\.message\.bytes|remote\.copy\.lag\.)/

/** What each script said of the broker at `place`. */
function javaScripts(stdout: string, place: number, transcript: Transcript): Map<string, string[]> {
  const scripts = new Map<string, string[]>()
  for (const line of stdout.split('\n')) {
    const [who, script, said] = line.split('\t')
    if (who !== `@${place}` || script === undefined || said === undefined || onlyKafkas.test(said)) continue
    transcript.say(script, said)
    scripts.set(script, [...(scripts.get(script) ?? []), transcript.lines.at(-1) ?? ''])
  }
  return scripts
}
