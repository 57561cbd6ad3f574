import { afterEach, beforeEach, expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { connect } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { produceBatch } from '../support/producing.ts'
import { Members } from './java/members.ts'

const assignors = 'org.apache.kafka.clients.consumer'
const range = `${assignors}.RangeAssignor`
const cooperative = `${assignors}.CooperativeStickyAssignor`
const partitionCount = 4
const partitions = [0, 1, 2, 3]
/** Between two records of a partition. */
const pauseMs = 10

describeWithPeer('kafka-compiled', 'Java consumers in a group', (peer) => {
  let node: LoggedBroker
  let client: KafkaClient
  let members: Members
  let producing: Promise<void>
  let isProducing: boolean
  /** Records of each partition so far. */
  let produced: number

  beforeEach(async () => {
    members = new Members(peer)
    node = await startLoggedBroker({
      topics: [{ name: 'work', partitions: partitionCount }],
      config: { 'group.min.session.timeout.ms': 1000 },
    })
    client = await connect(node.bootstrapServers)
    produced = 0
    isProducing = true
    producing = produce()
  })
  afterEach(async () => {
    isProducing = false
    await producing
    await members[Symbol.asyncDispose]()
    client.close()
    await node[Symbol.asyncDispose]()
    expect(node.complaints()).toEqual([])
  })

  /** A record to each partition again and again, so that each always has something to read. */
  async function produce(): Promise<void> {
    const records = [{ timestamp: Date.now(), value: Buffer.from('work') }]
    while (isProducing) {
      await Promise.all(partitions.map((partition) => produceBatch(client, 'work', partition, { records })))
      produced++
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  const start = (name: string, assignor: string, settings: Readonly<Record<string, string | number>> = {}) =>
    members.start(name, 'work', {
      'bootstrap.servers': node.bootstrapServers,
      'group.id': 'group',
      'session.timeout.ms': 30_000,
      'heartbeat.interval.ms': 100,
      'partition.assignment.strategy': assignor,
      ...settings,
    })
  const untilOwned = (counts: Readonly<Record<string, number>>) =>
    members.until(
      () => Object.entries(counts).every(([name, count]) => members.owned(name).length === count),
      `partitions are shared as ${JSON.stringify(counts)}`,
    )
  /** Reading goes on in all partitions: waits for what is produced from now on. */
  const untilReadOn = async () => {
    const wanted = produced + 20
    const isRead = () => partitions.every((partition) => (members.received(partition).at(-1) ?? -1) >= wanted)
    await members.until(isRead, 'all partitions are read on')
  }
  const rebalances = () =>
    node.logLines.filter(({ message }) => message === 'group rebalance began').map(({ fields }) => fields)
  const describeGroup = async () => (await client.request(apis.DescribeGroups, 5, { groups: ['group'] })).groups[0]!

  const untilStable = () => until(async () => (await describeGroup()).groupState === 'Stable', 'the rebalance ends')

  /** No record was left out, none came twice, and none before an earlier one, whoever got it. */
  const expectEachRecordOnce = () => {
    for (const partition of partitions) {
      const received = members.received(partition)
      expect(received.length).toBeGreaterThan(0)
      expect(received, `partition ${partition}`).toEqual(received.map((_, i) => i))
    }
  }

  test('a cooperative rebalance takes only what moves, and the rest is read on all the while', async () => {
    start('one', cooperative, { 'heartbeat.interval.ms': 1000 })
    await untilOwned({ one: 4 })
    await untilReadOn()
    const before = members.events.length
    start('two', cooperative)
    await untilOwned({ one: 2, two: 2 })
    const joined = members.events.findIndex(({ member, kind }) => member === 'two' && kind === 'assigned')
    await untilReadOn()

    const taken = members.events.flatMap((event) =>
      event.member === 'one' && event.kind === 'revoked' ? [event.partitions] : [],
    )
    expect(taken).toEqual([members.owned('two')])
    expect(members.has('one', 'lost')).toBe(false)
    const meanwhile = members.events.slice(before, joined)
    for (const partition of members.owned('one')) {
      const read = meanwhile.filter((event) => event.kind === 'record' && event.partition === partition)
      // It hears of the rebalance with a heartbeat, up to a second after it began.
      expect(read.length, `partition ${partition}`).toBeGreaterThan(5)
      expect(new Set(read.map(({ member }) => member))).toEqual(new Set(['one']))
    }
    expectEachRecordOnce()
    const reasons = rebalances().map(({ reason, clientReason }) => `${reason}: ${clientReason}`)
    expect(reasons).toEqual([
      expect.stringMatching(/^member-joined: need to re-join with the given member-id: one-/),
      expect.stringMatching(/^member-joined: need to re-join with the given member-id: two-/),
      'member-changed: need to revoke partitions and re-join',
    ])

    members.rejoin('two', 'because I can')
    await members.until(() => rebalances().length > 3, 'two has asked for a rebalance')
    expect(rebalances().at(-1)).toMatchObject({ groupId: 'group', clientReason: expect.stringContaining('I can') })
    await untilStable() // a Java consumer that closes in a rebalance doesn't commit
    await untilReadOn()
    await members.stop('two')
    await untilOwned({ one: 4 })
    await untilReadOn()
    expect(rebalances().at(-1)).toMatchObject({ reason: 'member-left', clientReason: expect.stringMatching(/clos/) })
    expectEachRecordOnce()
  })

  test('a static member restarts without a rebalance, and the older of two with one id is fenced', async () => {
    // Nobody may fall out of the group before somebody is meant to, also where nothing runs for seconds.
    const session = { 'session.timeout.ms': 12_000 }
    start('one', range, { ...session, 'group.instance.id': 'a' })
    start('two', range, { ...session, 'group.instance.id': 'b' })
    await untilOwned({ one: 2, two: 2 })
    await untilReadOn()
    const before = { group: await describeGroup(), rebalances: rebalances().length, owned: members.owned('one') }

    await untilStable()
    await members.stop('one')
    start('again', range, { ...session, 'group.instance.id': 'a' })
    await members.until(() => members.owned('again').length === 2, 'it is back')
    await untilReadOn()
    expect(members.owned('again')).toEqual(before.owned)

    start('duplicate', range, { ...session, 'group.instance.id': 'a' })
    await members.until(() => members.has('again', 'failed'), 'the older one is fenced')
    expect(members.events).toContainEqual({
      member: 'again',
      kind: 'failed',
      exception: 'FencedInstanceIdException',
    })
    await members.until(() => members.owned('duplicate').length === 2, 'the newer one has its place')
    await untilReadOn()
    expect(members.owned('duplicate')).toEqual(before.owned)

    const generations = members.events.flatMap((event) =>
      event.kind === 'assigned' && ['again', 'duplicate'].includes(event.member) ? [event.generation] : [],
    )
    const lastOfTwo = members.events.findLast((event) => event.member === 'two' && event.kind === 'assigned')
    expect(lastOfTwo).toMatchObject({ kind: 'assigned', generation: generations[0] })
    expect(new Set(generations).size).toBe(1)
    expect(rebalances()).toHaveLength(before.rebalances)
    const after = await describeGroup()
    expect(after.groupState).toBe('Stable')
    const assignments = ({ members: all }: typeof after) =>
      Object.fromEntries(all.map((each) => [each.groupInstanceId, each.memberAssignment.toString('hex')]))
    expect(assignments(after)).toEqual(assignments(before.group))

    await members.stop('duplicate')
    await members.until(() => rebalances().length > before.rebalances, 'its session ends')
    expect(rebalances().at(-1)).toMatchObject({ reason: 'session-expired' })
    await untilOwned({ two: 4 })
    await untilReadOn()
    // What the fenced one had read and could not commit any more came again, and nothing was left out.
    for (const partition of partitions) {
      const received = new Set(members.received(partition))
      expect([...received].toSorted((a, b) => a - b)).toEqual(Array.from(received, (_, i) => i))
    }
  })

  test('a group goes from eager to cooperative by two rolling restarts, and not back', async () => {
    const restart = async (old: string, name: string, assignor: string) => {
      await untilStable()
      await members.stop(old)
      await untilReadOn()
      start(name, assignor)
      await untilReadOn()
      await members.until(() => members.owned(name).length === 2, `${name} has its share`)
    }
    start('one', range)
    start('two', range)
    await untilOwned({ one: 2, two: 2 })
    await untilReadOn()
    expect((await describeGroup()).protocolData).toBe('range')
    await restart('one', 'one.both', `${cooperative},${range}`)
    expect((await describeGroup()).protocolData).toBe('range')
    await restart('two', 'two.both', `${cooperative},${range}`)
    expect((await describeGroup()).protocolData).toBe('cooperative-sticky')
    await restart('one.both', 'one.new', cooperative)
    await restart('two.both', 'two.new', cooperative)
    await untilOwned({ 'one.new': 2, 'two.new': 2 })
    await untilReadOn()
    expect((await describeGroup()).protocolData).toBe('cooperative-sticky')

    const rebalancesBefore = rebalances().length
    start('back', range)
    await members.until(() => members.has('back', 'failed'), 'the way back is refused')
    expect(members.events).toContainEqual({
      member: 'back',
      kind: 'failed',
      exception: 'InconsistentGroupProtocolException',
    })
    expect(rebalances()).toHaveLength(rebalancesBefore)
    await untilReadOn()
    expectEachRecordOnce()

    const settings = { 'bootstrap.servers': node.bootstrapServers, 'group.id': 'other', 'group.protocol': 'consumer' }
    members.start('newer', 'work', settings)
    await members.until(() => members.has('newer', 'failed'), 'the newer protocol is refused')
    expect(members.events).toContainEqual({ member: 'newer', kind: 'failed', exception: 'UnsupportedVersionException' })
  })
})
