import { expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/index.ts'
import type { Admin, CreateTopicResult } from '../../../src/coordination/index.ts'
import {
  createDeclaredTopics,
  parseTopicList,
  parseTopicsFile,
  topicRequests,
} from '../../../src/node/topic-declarations.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'

test('parseTopicList() reads names, partitions and configs', () => {
  expect(
    parseTopicList('orders:3, payments,audit:1:cleanup.policy=compact;retention.ms=-1,', 'ROOKERY_TOPICS'),
  ).toEqual([
    { name: 'orders', partitionCount: 3, replicationFactor: -1, configs: new Map() },
    { name: 'payments', partitionCount: -1, replicationFactor: -1, configs: new Map() },
    {
      name: 'audit',
      partitionCount: 1,
      replicationFactor: -1,
      configs: new Map([
        ['cleanup.policy', 'compact'],
        ['retention.ms', '-1'],
      ]),
    },
  ])
})

test.each([
  ['orders:three', 'ROOKERY_TOPICS: orders:three: partitions are a number'],
  ['orders:0', 'ROOKERY_TOPICS: topic orders: 0 partitions: allowed is 1 or more'],
  ['orders:1:retention', 'configs are key=value'],
  ['orders:1:retention.mss=5', 'did you mean retention.ms?'],
])('parseTopicList() refuses %s by name', (text, message) => {
  expect(() => parseTopicList(text, 'ROOKERY_TOPICS')).toThrow(message)
})

test('parseTopicsFile() takes names and objects, and refuses anything else', () => {
  expect(parseTopicsFile('["a", {"name": "b", "partitions": 2, "configs": {"retention.ms": 1000}}]', 't.json')).toEqual(
    [
      { name: 'a', partitionCount: -1, replicationFactor: -1, configs: new Map() },
      { name: 'b', partitionCount: 2, replicationFactor: -1, configs: new Map([['retention.ms', '1000']]) },
    ],
  )
  for (const text of ['{', '{}', '[1]', '[{"partitions": 1}]', '[{"name": "a", "configs": []}]']) {
    expect(() => parseTopicsFile(text, 't.json')).toThrow(ConfigError)
  }
})

test('topicRequests() names every fault at once', () => {
  expect(() =>
    topicRequests(
      [
        { name: 'a', partitions: 0.5 },
        { name: 'b', configs: { x: 1 } },
      ],
      'topics',
    ),
  ).toThrow(/topic a: 0.5 partitions[\s\S]*topic b: Unknown topic config x/)
})

test('createDeclaredTopics() leaves existing topics alone and reports what cannot be created', async () => {
  const answer = (results: CreateTopicResult[]) => ({ createTopics: async () => results }) as unknown as Admin
  const requests = topicRequests(['a'], 'topics')
  const exists: CreateTopicResult = { ok: false, name: 'a', reason: 'topic-exists', message: 'it is there' }
  await createDeclaredTopics(answer([exists]), requests, silentLogger)
  const invalid: CreateTopicResult = { ok: false, name: 'a', reason: 'invalid-topic', message: 'no such name' }
  await expect(createDeclaredTopics(answer([invalid]), requests, silentLogger)).rejects.toThrow('no such name')
})

test.each([
  ['[{"name":"a","partitons":3}]', 't.json: topic a: partitons is no field of a topic: did you mean partitions?'],
  ['[{"name":"a","config":{}}]', 't.json: topic a: config is no field of a topic: did you mean configs?'],
  ['[{"name":"a","owner":"b"}]', 't.json: topic a: owner is no field of a topic: allowed are name, partitions'],
  ['[{"name":"a","partitions":null}]', 't.json: topic a: null partitions: allowed is 1 or more'],
  ['[{"name":"a","partitions":"3"}]', 't.json: topic a: "3" partitions: allowed is 1 or more'],
  ['[{"partitions":3}]', 't.json: {"partitions":3}: name: allowed is a text'],
  ['[{"name":"a","configs":[]}]', 't.json: topic a: configs: allowed is an object'],
  ['[null]', 't.json: null: allowed is a name, or an object with name, partitions'],
  ['[["a"]]', 't.json: ["a"]: allowed is a name'],
])('a declaration such as %s is refused', (text, message) => {
  expect(() => parseTopicsFile(text, 't.json')).toThrow(message)
})

test('a topic that is declared twice in one place is told once', () => {
  const fault = () => topicRequests(['a', { name: 'a', partitions: 3 }, 'a'], 'topics')
  expect(fault).toThrow(ConfigError)
  expect(fault).toThrow(/^topics: topic a is declared twice$/)
})
