import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { servedApis } from '../../src/api/registry.ts'
import type { Uuid } from '../../src/base/index.ts'
import { type Broker, startBroker } from '../../src/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { type KafkaBroker, startKafkaBroker } from '../support/kafka-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { acceptedDifferences } from './accepted-differences.ts'
import { AnsweredErrors } from './answered-errors.ts'
import { type Difference, describeDifferences, differencesOf } from './differences.ts'
import { documentedErrors } from './documented-errors.ts'
import { normalised } from './normalise.ts'
import { type Exchange, Recorder } from './recorder.ts'
import type { Scenario, Scenarios } from './scenario.ts'
import { adminScenarios } from './scenarios/admin.ts'
import { apiVersionsScenarios } from './scenarios/api-versions.ts'
import { configScenarios } from './scenarios/configs.ts'
import { describingScenarios } from './scenarios/describing.ts'
import { fetchScenarios, listOffsetsScenarios } from './scenarios/fetch.ts'
import { groupScenarios } from './scenarios/groups.ts'
import { metadataScenarios } from './scenarios/metadata.ts'
import { offsetScenarios } from './scenarios/offsets.ts'
import { produceScenarios } from './scenarios/produce.ts'
import { refusalScenarios } from './scenarios/refusals.ts'
import { afterRestart, beforeRestart, restartSettings } from './scenarios/restart.ts'
import { topicScenarios } from './scenarios/topics.ts'
import { twiceScenarios } from './scenarios/twice.ts'

/**
 * The same requests to Rookery and to a real Apache Kafka node; the answers must be the same but for what each broker
 * chooses for itself (normalise.ts) and what accepted-differences.ts lists.
 */
const areas: Readonly<Record<string, Scenarios>> = {
  'ApiVersions and framing': apiVersionsScenarios,
  Metadata: metadataScenarios,
  'CreateTopics and DeleteTopics': topicScenarios,
  'Produce and InitProducerId': produceScenarios,
  Fetch: fetchScenarios,
  'Describing and deleting': describingScenarios,
  ListOffsets: listOffsetsScenarios,
  Groups: groupScenarios,
  Offsets: offsetScenarios,
  DescribeConfigs: configScenarios,
  'CreatePartitions, DeleteRecords and settings': adminScenarios,
  'All APIs': twiceScenarios,
  Refusals: refusalScenarios,
}

/** What both brokers are told, so that they differ in nothing that is a choice. */
const sharedConfig = {
  'offsets.topic.num.partitions': 5,
  'group.initial.rebalance.delay.ms': 0,
  'group.max.size': 3,
  'node.id': 1,
  'log.roll.hours': 100,
  // Scenarios send records of 2023.
  'log.retention.ms': -1,
  // Rookery flushes what it acknowledges by default, Kafka leaves that to the operating system.
  'log.flush.interval.messages': '9223372036854775807',
}

const kafkaConfig = {
  ...sharedConfig,
  // Only what Rookery has.
  'group.coordinator.rebalance.protocols': 'classic',
}

/** What Rookery doesn't have is off. */
const kafkaFeatures = {
  'eligible.leader.replicas.version': 0,
  'group.version': 0,
  'share.version': 0,
  'streams.version': 0,
  'transaction.version': 0,
}

describeWithPeer('kafka', 'Rookery answers as Apache Kafka does', (peer) => {
  let kafka: KafkaBroker
  let rookery: Broker
  let folder: string | undefined
  let compared = 0
  const accepted = new Map(acceptedDifferences.map((each) => [each, 0]))
  const answered = new AnsweredErrors()
  let ran = 0

  beforeAll(async () => {
    ;[kafka, rookery] = await Promise.all([
      startKafkaBroker(peer, { config: kafkaConfig, features: kafkaFeatures }),
      mkdtemp(join(tmpdir(), 'rookery-oracle-')).then(async (path) => {
        folder = path
        return await startBroker({ storage: path, config: sharedConfig })
      }),
    ])
    await Promise.all([kafka.port, rookery.port].map(untilGroupsAreServed))
  }, 120_000)

  afterAll(async () => {
    await kafka?.[Symbol.asyncDispose]()
    await rookery?.stop()
    if (folder !== undefined) await rm(folder, { recursive: true })
    const listed = [...accepted].map(([{ title }, count]) => `  ${count} x ${title}`)
    process.stdout.write(`${compared} requests compared; differences that are accepted:\n${listed.join('\n')}\n`)
  })

  const scenarios = Object.entries(areas)
    .flatMap(([area, all]) =>
      Object.entries(all).map(([title, scenario]) => ({ title: `${area}: ${title}`, scenario })),
    )
    .map((each, i) => ({ ...each, prefix: `o${i}-` }))

  test.each(scenarios)('$title', { timeout: 120_000 }, async ({ title, scenario, prefix }) => {
    ran++
    const runs = await Promise.all([run(scenario, kafka.port, prefix), run(scenario, rookery.port, prefix)])
    compare(title, ...runs)
  })

  test('both are stopped and started again', { timeout: 120_000 }, async () => {
    const both = (scenario: Scenario, topicIds: readonly TopicIds[] = []) =>
      Promise.all([kafka.port, rookery.port].map((port, i) => run(scenario, port, 'kept-', topicIds[i]))) as Promise<
        [Run, Run]
      >
    const before = await both(beforeRestart)
    compare('before the restart', ...before)
    const restartRookery = async () => {
      const { port } = rookery
      await rookery.stop()
      rookery = await startBroker({ storage: folder as string, port, config: { ...sharedConfig, ...restartSettings } })
    }
    await Promise.all([kafka.restart(restartSettings), restartRookery()])
    await Promise.all([kafka.port, rookery.port].map(untilGroupsAreServed))
    const after = await both(
      afterRestart,
      before.map(({ topicIds }) => topicIds),
    )
    compare('after the restart', ...after)
  })

  test('each API that is served answered its success and each error that it is documented with', () => {
    if (ran < scenarios.length) return // some scenarios were left out by name
    const names = servedApis.map(({ api }) => api.name)
    expect(Object.keys(documentedErrors).sort()).toEqual([...names].sort())
    const seen = Object.fromEntries(names.map((name) => [name, answered.of(name)]))
    const documented = names.map((name) => [name, ['NONE', ...documentedErrors[name]!.reached].sort()])
    expect(seen).toEqual(Object.fromEntries(documented))
  })

  test('every accepted difference occurs', () => {
    if (ran < scenarios.length) return // some scenarios were left out by name
    const idle = [...accepted].filter(([, count]) => count === 0).map(([{ title }]) => title)
    expect(idle).toEqual([])
  })

  function compare(title: string, theirs: Run, ours: Run): void {
    compared += ours.exchanges.length
    answered.add(theirs.exchanges, ours.exchanges)
    const differences = differencesOf(title, theirs.exchanges, ours.exchanges).filter((each) => !isAccepted(each))
    if (differences.length > 0) throw new Error(describeDifferences(differences))
    expect([theirs.failure, ours.failure]).toEqual([undefined, undefined])
  }

  function isAccepted(difference: Difference): boolean {
    const entry = acceptedDifferences.find(({ covers }) => covers(difference))
    if (entry === undefined) return false
    accepted.set(entry, (accepted.get(entry) ?? 0) + 1)
    return true
  }
})

interface Run {
  readonly exchanges: Exchange[]
  /** What the scenario threw. */
  readonly failure: string | undefined
  readonly topicIds: TopicIds
}

type TopicIds = ReadonlyMap<string, Uuid>

async function run(scenario: Scenario, port: number, prefix: string, topicIds: TopicIds = new Map()): Promise<Run> {
  const startedMs = Date.now()
  await using recorder = new Recorder(port, prefix)
  for (const [name, id] of topicIds) recorder.topicIds.set(name, id)
  let failure: string | undefined
  try {
    await scenario(recorder)
  } catch (error) {
    failure = String(error)
  }
  const servedKeys = new Set(servedApis.map(({ api }) => api.key))
  const exchanges = normalised(recorder.exchanges, { prefix, startedMs, servedKeys })
  return { exchanges, failure, topicIds: recorder.topicIds }
}

/** Kafka makes its internal topic when a group is first looked for, and gets producer ids when one is first asked for. */
async function untilGroupsAreServed(port: number): Promise<void> {
  await using recorder = new Recorder(port, 'warm-up')
  const areServed = async () => {
    const coordinator = await recorder.unrecorded(apis.FindCoordinator, 0, { key: 'warm-up' })
    if (coordinator.errorCode !== 0) return false
    const groups = Array.from({ length: 30 }, (_, i) => `warm-up-${i}`)
    const { groups: described } = await recorder.unrecorded(apis.DescribeGroups, 0, { groups })
    const producer = await recorder.unrecorded(apis.InitProducerId, 0, {
      transactionalId: null,
      transactionTimeoutMs: 1000,
    })
    return producer.errorCode === 0 && described.every(({ errorCode }) => errorCode === 0)
  }
  await until(areServed, 'groups are served', 60_000)
}
