import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AnyKey,
  boolean,
  brokerKeys,
  declareKeys,
  double,
  enumOf,
  int,
  list,
  long,
  password,
  string,
  topicKeys,
  type ValuesOf,
} from '../../../src/config/index.ts'
import { kafkaBrokerKeys } from '../../../src/config/kafka-keys.ts'
import { nearestOf } from '../../../src/config/nearest.ts'
import { brokerSynonymsOf } from '../../../src/config/topic-keys.ts'

interface KafkaKey {
  readonly name: string
  readonly type: string
  readonly default: string | null
  readonly brokerSynonyms?: readonly string[]
}

const facts = JSON.parse(readFileSync(join(import.meta.dirname, 'fixtures/kafka-4.3-keys.json'), 'utf8')) as {
  readonly topic: readonly KafkaKey[]
  readonly broker: readonly KafkaKey[]
}

/** Kafka's types that Rookery declares as the nearest one it has. */
const typeFor: Readonly<Record<string, string>> = { CLASS: 'STRING' }

function expectAsInKafka(key: AnyKey, fact: KafkaKey): void {
  expect(key.type, key.name).toBe(typeFor[fact.type] ?? fact.type)
  // Kafka has no default for these three: they must be set.
  if (fact.default !== '<required>') expect(key.kafkaDefaultText ?? key.defaultText, key.name).toBe(fact.default)
}

describe('the declared keys', () => {
  test('have the types and defaults of Kafka, or say that they differ', () => {
    const known = new Map(facts.broker.map((fact) => [fact.name, fact]))
    const own: string[] = []
    for (const key of Object.values<AnyKey>(brokerKeys)) {
      const fact = known.get(key.name)
      if (fact === undefined) own.push(key.name)
      else expectAsInKafka(key, fact)
    }
    // Kafka knows the rates as dynamic settings only, which aren't among the facts.
    const rates = [
      'follower.replication.throttled.rate',
      'leader.replication.throttled.rate',
      'replica.alter.log.dirs.io.max.bytes.per.second',
    ]
    expect(own.toSorted()).toEqual(['cluster.id', ...rates])
  })

  test('of topics are those of Kafka, with its synonyms', () => {
    const declared: readonly AnyKey[] = Object.values<AnyKey>(topicKeys)
    expect(declared.map((key) => key.name)).toEqual(facts.topic.map((fact) => fact.name))
    for (const [index, key] of declared.entries()) {
      const fact = facts.topic[index]!
      expectAsInKafka(key, fact)
      expect(brokerSynonymsOf(key).map((synonym) => synonym.name)).toEqual(fact.brokerSynonyms)
    }
  })

  test('are declared where a topic takes its value from them', () => {
    const declared = new Set(Object.values<AnyKey>(brokerKeys).map((key) => key.name))
    const names = Object.values<AnyKey>(topicKeys).flatMap((key) =>
      brokerSynonymsOf(key).map((synonym) => synonym.name),
    )
    expect(names.filter((name) => !declared.has(name))).toEqual([])
  })

  test('can read their own defaults, and have documentation', () => {
    for (const key of [...Object.values<AnyKey>(brokerKeys), ...Object.values<AnyKey>(topicKeys)]) {
      for (const text of [key.defaultText, key.singleNodeDefaultText]) {
        if (text !== null) expect(key.parse(text)?.text, key.name).toBe(text)
      }
      expect(key.documentation, key.name).toMatch(/^[A-Z].*[^.]$/)
    }
  })

  test('of Kafka are all known by name', () => {
    expect([...kafkaBrokerKeys]).toEqual(facts.broker.map((fact) => fact.name))
  })
})

describe('a key', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.bigInt().map(String), fc.double().map(String))

  test('reads a canonical text back as it is', () => {
    const keys: AnyKey[] = [
      int('a', { default: 0, doc: '' }),
      long('a', { default: 0, doc: '' }),
      double('a', { default: 0, doc: '' }),
      list('a', { default: [], doc: '' }),
    ]
    fc.assert(
      fc.property(text, fc.constantFrom(...keys), (given, key) => {
        const parsed = key.parse(given)
        if (parsed !== undefined) expect(key.parse(parsed.text)).toEqual(parsed)
      }),
    )
  })

  test('of 64 bits takes exactly those, whatever a number can hold', () => {
    const key = long('a', { default: 0, doc: '' })
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }), (whole) => {
        const fits = BigInt.asIntN(64, whole) === whole
        expect(key.parse(String(whole))?.text).toBe(fits ? String(whole) : undefined)
      }),
    )
    expect(key.parse('9007199254740991')?.value).toBe(9_007_199_254_740_991)
    expect(key.parse('9007199254740992')?.value).toBe(Number.POSITIVE_INFINITY)
    expect(key.parse('-9223372036854775808')?.value).toBe(Number.NEGATIVE_INFINITY)
  })

  test('has a value of its own type', () => {
    const keys = declareKeys({
      lagMs: int('lag.ms', { default: 5, doc: '' }),
      rack: string('rack', { default: null, doc: '' }),
      policy: enumOf('policy', { default: 'keep', oneOf: ['keep', 'drop'], doc: '' }),
      enabled: boolean('enabled', { default: true, doc: '' }),
    })
    const values: ValuesOf<typeof keys> = { lagMs: 5, rack: null, policy: 'keep', enabled: true }
    // @ts-expect-error: not one of the two
    const wrong: ValuesOf<typeof keys> = { ...values, policy: 'other' }
    expect(keys.policy.parse(wrong.policy)).toBeUndefined()
    expect(keys.policy.parse(' drop ')).toEqual({ value: 'drop', text: 'drop' })
    expect(keys.enabled.parse('FALSE')).toEqual({ value: false, text: 'false' })
    expect(Object.isFrozen(keys)).toBe(true)
  })

  test('for a password is sensitive', () => {
    expect(password('a', { default: null, doc: '' })).toMatchObject({ type: 'PASSWORD', sensitive: true })
  })
})

describe('nearestOf', () => {
  test('finds the name with the fewest edits', () => {
    const names = ['log.dirs', 'log.dir', 'num.partitions']
    expect(nearestOf('log.drs', names)).toBe('log.dirs')
    expect(nearestOf('LOG.DRIS', names)).toBe('log.dirs')
    expect(nearestOf('nim.partition', names)).toBe('num.partitions')
    expect(nearestOf('zzzzzzzzzzzz', names)).toBeUndefined()
    expect(nearestOf('x'.repeat(1_000_000), names)).toBeUndefined()
    expect(nearestOf('a', [])).toBeUndefined()
  })
})
