import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  apis,
  ConsumerProtocolAssignment,
  ConsumerProtocolSubscription,
  decodeMessage,
  encodeMessage,
  GroupMetadataKey,
  GroupMetadataValue,
  type Message,
  OffsetCommitKey,
  OffsetCommitValue,
  Reader,
  Writer,
} from '../../src/protocol/index.ts'
import { describeWithPeer, kafkaJars } from '../support/peers.ts'
import { arbitraryValue } from '../unit/protocol/arbitrary-message.ts'
import {
  type Definition,
  declaredShape,
  definedShape,
  isFlexible,
  readDefinitions,
  sharedVersions,
} from './codec/definitions.ts'
import { type JudgeCase, judgeAll, type Verdict } from './codec/judge.ts'
import { arbitraryJson } from './codec/random-json.ts'

/** Messages of one run, half of them from here and half from there; more by hand: ROOKERY_CODEC_MESSAGES=1000000. */
const messageCount = Number(process.env.ROOKERY_CODEC_MESSAGES ?? 10_000)
/** Another seed each run; a failure prints it, and ROOKERY_CODEC_SEED runs it again. */
const seed = Number(process.env.ROOKERY_CODEC_SEED ?? Math.floor(Math.random() * 2 ** 31))
/** As many are made, judged and forgotten at a time. */
const batchSize = 20_000

const clientMessages: readonly Message[] = [
  ...Object.values(apis).flatMap((api): Message[] => [api.request, api.response]),
  ConsumerProtocolAssignment,
  ConsumerProtocolSubscription,
]
/** Their definitions are in no jar, their classes are. */
const storedMessages: readonly Message[] = [GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue]

function className(message: Message): string {
  if (storedMessages.includes(message)) return `org.apache.kafka.coordinator.group.generated.${message.name}`
  const isApi = /(Request|Response)$/.test(message.name)
  return `org.apache.kafka.common.message.${message.name}${isApi ? 'Data' : ''}`
}

describeWithPeer('kafka-compiled', "the codec, judged by Kafka's own classes", (peer) => {
  let definitions: ReadonlyMap<string, Definition>

  beforeAll(() => {
    definitions = readDefinitions(kafkaJars)
  })

  describe.each(clientMessages)('$name', (message) => {
    test('is declared as Kafka defines it, in every version', () => {
      const definition = definitions.get(message.name)!
      const versions = sharedVersions(definition, message)
      expect(versions.length).toBeGreaterThan(0)
      for (const version of versions) {
        expect(message.isFlexible(version), `version ${version} is flexible`).toBe(isFlexible(definition, version))
        const [declared, defined] = [
          declaredShape(message, version, versions),
          definedShape(definition, version, versions),
        ]
        expect(declared, `version ${version}`).toEqual(defined)
      }
      if ('apiKey' in message) expect(message.apiKey).toBe(definition.apiKey)
    })
  })

  test('random messages from here are decoded and encoded by Kafka to the same bytes', {
    timeout: 600_000,
  }, async () => {
    const all = [...clientMessages, ...storedMessages].flatMap((message) => {
      const definition = definitions.get(message.name)
      const { min, max } = message.versions
      const own = Array.from({ length: max - min + 1 }, (_, i) => min + i)
      const versions = definition === undefined ? own : sharedVersions(definition, message)
      return versions.map((version) => ({ message, version, values: arbitraryValue(message.fields, version) }))
    })
    await inBatches(all, ({ message, version, values }, count, runSeed) =>
      fc.sample(values, { numRuns: count, seed: runSeed }).map((value): Judged => {
        const content = encode(message, version, value)
        return { message, version, content, check: (verdict) => compare(message, version, verdict, content) }
      }),
    )
  })

  test('random messages that Kafka encodes are decoded and encoded here to the same bytes', {
    timeout: 600_000,
  }, async () => {
    const all = clientMessages.flatMap((message) => {
      const definition = definitions.get(message.name)!
      return sharedVersions(definition, message).map((version) => {
        const shape = definedShape(definition, version, [version])
        return { message, version, values: arbitraryJson(shape) }
      })
    })
    await inBatches(all, ({ message, version, values }, count, runSeed) =>
      fc.sample(values, { numRuns: count, seed: runSeed }).map((value): Judged => {
        const check = (verdict: Verdict) => {
          if ('fault' in verdict) fail(message, version, verdict.fault, JSON.stringify(value))
          const reader = new Reader(verdict.bytes)
          const decoded = decodeMessage(message, version, reader)
          if (reader.remaining > 0)
            return fail(message, version, `${reader.remaining} bytes are left`, JSON.stringify(value))
          expect(onlyAsked(asJson(decoded), value), `${message.name} v${version}, seed ${seed}`).toEqual(value)
          compare(message, version, verdict, encode(message, version, decoded as Record<string, unknown>))
        }
        return { message, version, content: JSON.stringify(value), check }
      }),
    )
  })

  interface Judged {
    readonly message: Message
    readonly version: number
    readonly content: JudgeCase['content']
    readonly check: (verdict: Verdict) => void
  }

  /** Half of all messages, spread over `sources` evenly. */
  async function inBatches<Source>(
    sources: readonly Source[],
    make: (source: Source, count: number, runSeed: number) => Judged[],
  ): Promise<void> {
    const total = Math.ceil(messageCount / 2)
    for (let made = 0, round = 0; made < total; round++) {
      const wanted = Math.min(batchSize, total - made)
      const each = Math.ceil(wanted / sources.length)
      const judged = sources.flatMap((source, i) => make(source, each, seed + round * sources.length + i))
      const cases = judged.map(({ message, version, content }) => ({ className: className(message), version, content }))
      const verdicts = await judgeAll(peer, cases)
      for (const [i, { check }] of judged.entries()) check(verdicts[i]!)
      made += judged.length
    }
  }
})

function encode(message: Message, version: number, value: Record<string, unknown>): Buffer {
  const writer = new Writer()
  encodeMessage(message, version, value, writer)
  return Buffer.concat(writer.finish())
}

function compare(message: Message, version: number, verdict: Verdict, ours: Buffer): void {
  if ('fault' in verdict) fail(message, version, verdict.fault, ours.toString('hex'))
  if (!verdict.bytes.equals(ours))
    fail(message, version, `Kafka encodes ${verdict.bytes.toString('hex')}`, ours.toString('hex'))
}

function fail(message: Message, version: number, what: string, input: string): never {
  throw new Error(`${message.name} v${version}, seed ${seed}: ${what}\n  ${input}`)
}

/** As Kafka's converters write it. */
function asJson(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64')
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(asJson)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, asJson(inner)]))
}

/** `decoded` without the fields that the version doesn't have. */
function onlyAsked(decoded: unknown, asked: unknown): unknown {
  if (Array.isArray(decoded) && Array.isArray(asked)) return decoded.map((each, i) => onlyAsked(each, asked[i]))
  if (!isStruct(decoded) || !isStruct(asked)) return decoded
  return Object.fromEntries(Object.keys(asked).map((name) => [name, onlyAsked(decoded[name], asked[name])]))
}

function isStruct(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
