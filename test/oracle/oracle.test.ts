import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { servedApis } from '../../src/api/registry.ts'
import type { Uuid } from '../../src/base/index.ts'
import { describeWithPeer } from '../support/peers.ts'
import { acceptedDifferences } from './accepted-differences.ts'
import { AnsweredErrors } from './answered-errors.ts'
import { compareClients } from './clients/compare-clients.ts'
import { type Difference, describeDifferences, differencesOf } from './differences.ts'
import { type DocumentedErrors, documentedErrors, type ErrorName } from './documented-errors.ts'
import { normalised } from './normalise.ts'
import { BrokerPair } from './pair.ts'
import { type Exchange, Recorder } from './recorder.ts'
import type { Scenario, Scenarios } from './scenario.ts'
import { adminScenarios } from './scenarios/admin.ts'
import { apiVersionsScenarios } from './scenarios/api-versions.ts'
import { clusterScenarios } from './scenarios/cluster.ts'
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
  'Elections, reassignments, features and voters': clusterScenarios,
  'All APIs': twiceScenarios,
  Refusals: refusalScenarios,
}

describeWithPeer('kafka', 'Rookery answers as Apache Kafka does', (peer) => {
  let pair: BrokerPair
  let compared = 0
  const accepted = new Map(acceptedDifferences.map((each) => [each, 0]))
  const answered = new AnsweredErrors()
  let ran = 0

  beforeAll(async () => {
    pair = await BrokerPair.start(peer)
  })

  afterAll(async () => {
    await pair?.[Symbol.asyncDispose]()
    const listed = [...accepted].map(([{ title }, count]) => `  ${count} x ${title}`)
    process.stdout.write(`${compared} requests compared; differences that are accepted:\n${listed.join('\n')}\n`)
  })

  const scenarios = Object.entries(areas)
    .flatMap(([area, all]) =>
      Object.entries(all).map(([title, scenario]) => ({ title: `${area}: ${title}`, scenario })),
    )
    .map((each, i) => ({ ...each, prefix: `o${i}-` }))

  test.each(scenarios)('$title', async ({ title, scenario, prefix }) => {
    ran++
    const [theirs, ours] = await Promise.all(pair.ports.map((port) => run(scenario, port, prefix)))
    compare(title, theirs!, ours!)
  })

  describe('to clients', () => compareClients(() => pair))

  test('both are stopped and started again', async () => {
    const before = await Promise.all(pair.ports.map((port) => run(beforeRestart, port, 'kept-')))
    compare('before the restart', before[0]!, before[1]!)
    await pair.restart(restartSettings)
    const after = await Promise.all(pair.ports.map((port, i) => run(afterRestart, port, 'kept-', before[i]?.topicIds)))
    compare('after the restart', after[0]!, after[1]!)
  })

  // Tests run in the order in which they stand here.
  test('each API that is served answered its success and each error that it is documented with', () => {
    if (ran < scenarios.length) return // some scenarios were left out by name
    const names = servedApis.map(({ api }) => api.name)
    expect(Object.keys(documentedErrors).sort()).toEqual([...names].sort())
    const seen = Object.fromEntries(names.map((name) => [name, answered.of(name)]))
    const documented = names.map((name) => [name, expectedOf(documentedErrors[name]!)])
    expect(seen).toEqual(Object.fromEntries(documented))
    for (const [name, { reached, unreachable }] of Object.entries(documentedErrors)) {
      const both = reached.filter((each) => unreachable[each] !== undefined)
      expect(both, `${name} can't be answered and is`).toEqual([])
    }
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

/** Success is answered unless the table says why it can't be. */
function expectedOf({ reached, unreachable }: DocumentedErrors): ErrorName[] {
  return (unreachable.NONE === undefined ? ['NONE' as const, ...reached] : [...reached]).sort()
}

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
  // GetTelemetrySubscriptions and PushTelemetry: neither lists them, since neither has where telemetry goes.
  const servedKeys = new Set([...servedApis.map(({ api }) => api.key), 71, 72])
  const exchanges = normalised(recorder.exchanges, { prefix, startedMs, servedKeys })
  return { exchanges, failure, topicIds: recorder.topicIds }
}
