import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import { connect } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { type RunningProgram, runPeer, startProgram } from '../support/programs.ts'

// A consumer is a Java machine of its own, of which a busy machine makes a few a minute.
vi.setConfig({ testTimeout: 180_000 })

const tools = 'org.apache.kafka.tools'
const cooperative = 'org.apache.kafka.clients.consumer.CooperativeStickyAssignor'

/** A line of output; what the fields are depends on the name. */
interface Event {
  readonly name: string
  readonly partitions?: readonly { readonly partition: number }[]
  readonly [field: string]: unknown
}

describeWithPeer('kafka', "Kafka's verifiable clients", (peer) => {
  let node: LoggedBroker
  const consumers: RunningProgram[] = []
  beforeAll(async () => {
    node = await startLoggedBroker({ topics: [{ name: 'verified', partitions: 4 }] })
  })
  afterAll(async () => {
    for (const each of consumers) {
      each.kill('SIGKILL') // those that a test which failed has left
      await each.ended()
    }
    await node[Symbol.asyncDispose]()
    expect(node.complaints()).toEqual([])
  })

  const connecting = () => ['--bootstrap-server', node.bootstrapServers, '--topic', 'verified']
  const produce = async (count: number): Promise<void> => {
    const options = ['--max-messages', `${count}`, '--acks', '-1', '--repeating-keys', '50']
    const args = [`${tools}.VerifiableProducer`, ...connecting(), ...options]
    const { exitCode, stdout, output } = await runPeer(peer, args)
    expect(exitCode, output).toBe(0)
    const said = eventsIn(stdout)
    expect(said.filter(({ name }) => name === 'producer_send_success')).toHaveLength(count)
    expect(said.find(({ name }) => name === 'tool_data')).toMatchObject({ sent: count, acked: count })
  }
  const consumer = (id: string): RunningProgram => {
    const group = ['--group-id', 'verifying', '--group-instance-id', id, '--session-timeout', '30000']
    const options = [...connecting(), ...group, '--assignment-strategy', cooperative, '--verbose']
    const started = startProgram(peer.command, [...peer.args, `${tools}.VerifiableConsumer`, ...options])
    consumers.push(started)
    return started
  }
  const named = (of: RunningProgram, wanted: string) => eventsIn(of.stdout).filter(({ name }) => name === wanted)
  const told = (of: RunningProgram, name: string) =>
    named(of, name)
      .flatMap(({ partitions = [] }) => partitions.map(({ partition }) => partition))
      .toSorted()
  const recordsOf = (...all: RunningProgram[]) =>
    all.flatMap((of) => named(of, 'record_data')).map(({ partition, offset }) => `${partition} ${offset}`)
  const untilRead = async (count: number, ...all: RunningProgram[]) => {
    for (const each of all) await each.until(() => recordsOf(...all).length >= count, `${count} records are read`)
    const records = recordsOf(...all)
    expect([records.length, new Set(records).size]).toEqual([count, count])
  }
  const rebalances = () => node.logLines.filter(({ message }) => message === 'group rebalance began').length

  test('static members share, and one that is killed and restarted, or replaced, moves nothing', async () => {
    const [one, other] = [consumer('a'), consumer('b')]
    const share = (of: RunningProgram) => {
      const taken = told(of, 'partitions_revoked')
      return told(of, 'partitions_assigned').filter((partition) => !taken.includes(partition))
    }
    for (const each of [one, other]) {
      await each.until(() => share(one).length === 2 && share(other).length === 2, 'each has two partitions', 90_000)
    }
    expect([...share(one), ...share(other)].toSorted()).toEqual([0, 1, 2, 3])
    await produce(400)
    await untilRead(400, one, other)
    const before = { share: share(other), rebalances: rebalances(), others: told(one, 'partitions_assigned').length }

    other.kill('SIGKILL')
    await other.ended()
    const restarted = consumer('b')
    await restarted.until(() => share(restarted).length === 2, 'it has its partitions again', 90_000)
    await produce(100)
    await untilRead(500, one, other, restarted)

    const duplicate = consumer('b')
    await duplicate.until(() => share(duplicate).length === 2, 'the newer one has its place', 90_000)
    const fenced = await restarted.ended()
    expect(fenced.output).toContain('FencedInstanceIdException')
    await produce(100)
    await untilRead(600, one, other, restarted, duplicate)

    expect(
      [restarted, duplicate].map((each) => told(each, 'partitions_assigned')).map((each) => each.toSorted()),
    ).toEqual([before.share, before.share])
    expect(told(one, 'partitions_assigned')).toHaveLength(before.others)
    expect(rebalances()).toBe(before.rebalances)

    for (const each of [one, duplicate]) {
      each.kill('SIGTERM')
      await each.ended()
      expect(named(each, 'shutdown_complete')).toHaveLength(1)
      expect(named(each, 'offsets_committed').every(({ success }) => success === true)).toBe(true)
    }
    const client = await connect(node.bootstrapServers)
    const { groups } = await client.request(apis.OffsetFetch, 8, { groups: [{ groupId: 'verifying', topics: null }] })
    client.close()
    const committed = groups[0]!.topics[0]!.partitions.map(({ committedOffset }) => committedOffset)
    expect(committed.reduce((sum, offset) => sum + offset)).toBe(600)
  })
})

function eventsIn(output: string): Event[] {
  return output
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Event)
}
