import { describe, expect, test } from 'vitest'
import { type AlterConfigResult, CoordinationError } from '../../../src/coordination/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { harness } from './harness.ts'

const [topic, broker] = [2, 4]
type Config = [name: string, value: string | null, operation?: number]

const resource = (resourceType: number, resourceName: string, ...configs: Config[]) => ({
  resourceType,
  resourceName,
  configs: configs.map(([name, value, configOperation = 0]) => ({ name, value, configOperation })),
})

/** Both APIs under one face: what they refuse is the same. */
const both = [
  ['AlterConfigs', 2, apis.AlterConfigs],
  ['IncrementalAlterConfigs', 1, apis.IncrementalAlterConfigs],
] as const

describe.each(both)('%s', (_name, version, api) => {
  const alter = async (resources: ReturnType<typeof resource>[], set = harness()) =>
    (await set.ask(api as typeof apis.AlterConfigs, version, { resources, validateOnly: false })).responses

  test('answers each resource by itself, in their order', async () => {
    const set = harness()
    set.coordination.refuseAlteration = ({ resourceName }) =>
      resourceName === 'b' ? { ok: false, reason: 'invalid-config', message: 'Why' } : undefined
    const asked = [
      resource(topic, 'a', ['retention.ms', '1']),
      resource(broker, '9', ['log.retention.ms', '1']),
      resource(topic, 'b', ['retention.ms', '2']),
      resource(broker, '', ['log.retention.ms', '3']),
      resource(topic, 'c'),
    ]
    expect(await alter(asked, set)).toMatchObject([
      { errorCode: 0, errorMessage: null, resourceType: 2, resourceName: 'a' },
      { errorCode: 42, resourceType: 4, resourceName: '9' },
      { errorCode: 40, errorMessage: 'Why', resourceType: 2, resourceName: 'b' },
      { errorCode: 0, resourceType: 4, resourceName: '' },
      { errorCode: 0, resourceType: 2, resourceName: 'c' },
    ])
    expect(set.coordination.alterations.map(({ resourceName }) => resourceName)).toEqual(['a', 'b', '', 'c'])
  })

  test.each<[string, ReturnType<typeof resource>]>([
    ['a null value', resource(topic, 'a', ['retention.ms', null])],
    ['a key that stands twice', resource(topic, 'a', ['retention.ms', '1'], ['retention.ms', '2'])],
    ['another broker', resource(broker, '2', ['log.retention.ms', '1'])],
    ['a broker whose name is no number', resource(broker, 'one', ['log.retention.ms', '1'])],
    ['client metrics', resource(16, 'any', ['interval.ms', '1000'])],
    ['a group without a name', resource(32, '', ['x', '1'])],
    ['the log levels of another broker', resource(8, '2', ['root', 'INFO'])],
    ['a kind of resource that there is not', resource(99, 'a', ['x', '1'])],
  ])('%s is an invalid request', async (_what, bad) => {
    const set = harness()
    expect(await alter([bad, resource(topic, 'b')], set)).toMatchObject([{ errorCode: 42 }, { errorCode: 0 }])
    expect(set.coordination.alterations.map(({ resourceName }) => resourceName)).toEqual(['b'])
  })

  test('a group has no config that could be set', async () => {
    expect(await alter([resource(32, 'any', ['x', '1'])])).toMatchObject([{ errorCode: 40 }])
  })

  test('a resource that stands twice is refused both times', async () => {
    const asked = [resource(topic, 'a', ['x', '1']), resource(topic, 'b'), resource(topic, 'a', ['x', '2'])]
    expect((await alter(asked)).map(({ errorCode }) => errorCode)).toEqual([42, 0, 42])
  })

  test('this broker is named by its id, however that is written', async () => {
    const set = harness()
    expect(await alter([resource(broker, '01', ['log.retention.ms', '1'])], set)).toMatchObject([
      { errorCode: 0, resourceName: '01' },
    ])
    expect(set.coordination.alterations).toMatchObject([{ resourceType: 'broker', resourceName: '1' }])
  })

  const reasons: [Extract<AlterConfigResult, { ok: false }>['reason'], number][] = [
    ['unknown-topic', 3],
    ['invalid-topic', 17],
    ['invalid-config', 40],
    ['invalid-request', 42],
  ]
  test.each(reasons)('%s is error %i', async (reason, errorCode) => {
    const set = harness()
    set.coordination.refuseAlteration = () => ({ ok: false, reason, message: 'Why' })
    expect(await alter([resource(topic, 'a')], set)).toMatchObject([{ errorCode, errorMessage: 'Why' }])
  })

  test('without a controller in time every resource gets error 7', async () => {
    const set = harness()
    set.coordination.fault = new CoordinationError('timed-out', 'No controller')
    const asked = [resource(topic, 'a'), resource(broker, '')]
    expect(await alter(asked, set)).toMatchObject([
      { errorCode: 7, resourceName: 'a' },
      { errorCode: 7, resourceType: 4 },
    ])
  })
})

test.each([0, 1, 2])('AlterConfigs %i replaces all that a resource has set', async (version) => {
  const { ask, coordination } = harness()
  const resources = [resource(topic, 'a', ['retention.ms', '1'], ['cleanup.policy', 'compact'])]
  await ask(apis.AlterConfigs, version, { resources, validateOnly: true })
  expect(coordination.alterations).toEqual([
    {
      resourceType: 'topic',
      resourceName: 'a',
      changes: new Map([
        ['retention.ms', '1'],
        ['cleanup.policy', 'compact'],
      ]),
      replaces: true,
    },
  ])
  expect(coordination.validateOnly).toBe(true)
})

test.each([0, 1])('IncrementalAlterConfigs %i sets, deletes, appends and subtracts', async (version) => {
  const { ask, coordination } = harness()
  const configs: Config[] = [
    ['retention.ms', '1', 0],
    ['segment.ms', null, 1],
    ['flush.ms', 'ignored', 1],
    ['cleanup.policy', 'compact', 2],
    ['leader.replication.throttled.replicas', '0:1', 3],
  ]
  await ask(apis.IncrementalAlterConfigs, version, {
    resources: [resource(topic, 'a', ...configs)],
    validateOnly: false,
  })
  expect(coordination.alterations).toEqual([
    {
      resourceType: 'topic',
      resourceName: 'a',
      changes: new Map<string, unknown>([
        ['retention.ms', '1'],
        ['segment.ms', null],
        ['flush.ms', null],
        ['cleanup.policy', { append: 'compact' }],
        ['leader.replication.throttled.replicas', { subtract: '0:1' }],
      ]),
      replaces: false,
    },
  ])
})

test('IncrementalAlterConfigs refuses another operation, and a null that is to be appended', async () => {
  const { ask, coordination } = harness()
  const resources = [
    resource(topic, 'a', ['x', '1', 7]),
    resource(topic, 'b', ['x', '1', -1]),
    resource(topic, 'c', ['x', null, 2]),
  ]
  const { responses } = await ask(apis.IncrementalAlterConfigs, 1, { resources, validateOnly: false })
  expect(responses.map(({ errorCode }) => errorCode)).toEqual([42, 42, 42])
  expect(coordination.alterations).toEqual([])
})
