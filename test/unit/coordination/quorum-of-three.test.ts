import { describe, expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import {
  type Coordination,
  CoordinationError,
  createRaftCoordination,
  LocalQuorum,
  type PeerContact,
  type RemoteControllers,
} from '../../../src/coordination/index.ts'
import { createSimulation, type Simulation } from '../../../src/platform/simulated/index.ts'
import { type NodeId, openMemoryStorage, RaftNode } from '../../../src/raft/index.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { RaftTransportHub } from '../../support/memory-raft-transport.ts'
import { anyConfig, settings } from '../controller/support.ts'
import { describeImage } from '../metadata/support.ts'
import { newRun, newTopic } from './support.ts'

interface Member {
  readonly id: number
  readonly raft: RaftNode
  readonly quorum: LocalQuorum
  readonly coordination: Coordination
}

/** How nodes reach controllers on others. */
type Remote = (members: readonly Member[]) => RemoteControllers

/** Three nodes with one broker each. Without `remote` they reach the controller only where it is their own, so only its broker gets to register. */
async function threeNodes(
  simulation: Simulation,
  hub: RaftTransportHub,
  contacts: () => PeerContact[] = () => [],
  remote?: Remote,
): Promise<readonly Member[]> {
  const ids = [1, 2, 3] as NodeId[]
  const voters = ids.map((id) => ({ id, directoryId: simulation.host('ids').platform.random.uuid() }))
  const members: Member[] = []
  for (const { id, directoryId } of voters) {
    const { platform } = simulation.host(`node-${id}`)
    const storage = await simulation.run(openMemoryStorage({ timers: platform.timers, bootstrap: { voters } }))
    const transport = hub.transportOf(id)
    const raft = new RaftNode({ id, directoryId, storage, transport, platform, logger: silentLogger })
    const both = { platform, logger: silentLogger, brokerId: id as number as BrokerId, sessionTimeoutMs: 3000 }
    const quorum = new LocalQuorum({
      ...both,
      raft,
      contacts,
      ...(remote === undefined ? {} : { remote: remote(members) }),
      clusterId: 'test-cluster',
      controller: settings,
      configRules: anyConfig,
      maxBytesBetweenSnapshots: 20 << 20,
      maxSnapshotIntervalMs: 0,
    })
    const coordination = createRaftCoordination({ ...both, quorum, heartbeatIntervalMs: 500 })
    members.push({ id, raft, quorum, coordination })
    const registration = { ...newRun(platform), brokerId: id as number as BrokerId }
    void coordination.start(registration).catch(() => undefined)
  }
  return members
}

const leads = ({ id, coordination }: Member) => coordination.image.cluster.broker(id as BrokerId)?.fenced === false

async function leaderOf(simulation: Simulation, members: readonly Member[]): Promise<Member> {
  await simulation.runUntil(() => members.some((member) => leads(member) && member.raft.state.role === 'leader'))
  return members.find((member) => leads(member) && member.raft.state.role === 'leader') as Member
}

function cutOff(hub: RaftTransportHub, { id }: Member): void {
  for (const other of [1, 2, 3]) if (other !== id) hub.cut(id as NodeId, other as NodeId)
}

describe('three nodes', () => {
  test('what was asked of a controller that hangs is asked of the next, or ends as unknown, when there is one', async () => {
    const simulation = createSimulation({ seed: 14 })
    const hub = new RaftTransportHub()
    let hung: number | undefined
    const remote: Remote = (members) => ({
      ask: async (controller, kind, request) => {
        const found = members.find(({ id }) => id === controller)!
        const answer = await found.quorum.controller.ask(kind, request)
        return hung === controller ? await new Promise<never>(() => undefined) : answer
      },
    })
    const members = await threeNodes(simulation, hub, () => [], remote)
    await simulation.runUntil(() => members.every(leads))
    const old = await leaderOf(simulation, members)
    const others = members.filter((member) => member !== old)

    hung = old.id
    cutOff(hub, old)
    const { clock } = simulation.host('observer').platform
    const cutMs = clock.monotonic()
    const options = { timeoutMs: 60_000 }
    const ends: string[] = []
    for (const { id, coordination } of others) {
      const { admin } = coordination
      void admin.describeQuorum(options).then(
        () => ends.push(`described for ${id}`),
        (error: CoordinationError) => ends.push(`${id}: ${error.reason}`),
      )
      const topic = newTopic(`topic-${id}`)
      void admin.createTopics([topic], options).then(
        () => ends.push(`created for ${id}`),
        (error: CoordinationError) => ends.push(`${error.reason} for ${id}`),
      )
    }
    await simulation.runUntil(() => others.some(({ raft }) => raft.state.role === 'leader'))
    await simulation.runUntil(() => ends.length === 4 || clock.monotonic() - cutMs > 30_000)
    const expected = others.flatMap(({ id }) => [`described for ${id}`, `outcome-unknown for ${id}`])
    expect(ends.toSorted()).toEqual(expected.toSorted())
    expect(clock.monotonic() - cutMs).toBeLessThan(6000)
  })

  test('a controller that is cut off acknowledges nothing, shows nothing of its head, and its request ends as unknown', async () => {
    const simulation = createSimulation({ seed: 11 })
    const hub = new RaftTransportHub()
    const members = await threeNodes(simulation, hub)
    const old = await leaderOf(simulation, members)
    const options = { timeoutMs: 60_000 }
    const [kept] = await simulation.run(old.coordination.admin.createTopics([newTopic('kept')], options))
    expect(kept).toMatchObject({ ok: true })

    cutOff(hub, old)
    const lost = old.coordination.admin.createTopics([newTopic('lost')], options)
    let outcome: unknown
    lost.then(
      (results) => {
        outcome = results
      },
      (error: unknown) => {
        outcome = error
      },
    )
    const others = members.filter((member) => member !== old)
    const next = await leaderOf(simulation, others)
    await simulation.runUntil(() => outcome !== undefined)
    expect(outcome).toBeInstanceOf(CoordinationError)
    expect(outcome).toMatchObject({ reason: 'outcome-unknown' })
    expect(old.coordination.image.topics.byName('lost')).toBeUndefined()

    hub.heal()
    const [again] = await simulation.run(next.coordination.admin.createTopics([newTopic('lost')], options))
    expect(again).toMatchObject({ ok: true })
    await simulation.runUntil(() => old.coordination.image.topics.byName('lost') !== undefined)
    const topicId = next.coordination.image.topics.byName('lost')?.topicId
    expect(old.coordination.image.topics.byName('lost')?.topicId).toBe(topicId)
    await simulation.runUntil(() => old.coordination.image.index === next.coordination.image.index)
    expect(describeImage(old.coordination.image)).toEqual(describeImage(next.coordination.image))
  })

  test('the new controller fences the broker that went silent, and moves what it led', async () => {
    const simulation = createSimulation({ seed: 12 })
    const hub = new RaftTransportHub()
    const members = await threeNodes(simulation, hub)
    const old = await leaderOf(simulation, members)
    await simulation.run(old.coordination.admin.createTopics([newTopic('orders')], { timeoutMs: 60_000 }))
    cutOff(hub, old)
    const next = await leaderOf(
      simulation,
      members.filter((member) => member !== old),
    )
    await simulation.runUntil(() => next.coordination.image.cluster.broker(old.id as BrokerId)?.fenced === true)
    expect(next.coordination.image.topics.byName('orders')?.partitions).toMatchObject([
      { leader: -1, leaderEpoch: 1, isr: [old.id] },
    ])
  })

  test('the silence of a broker counts from when the new controller heard it last, not from the election', async () => {
    const simulation = createSimulation({ seed: 13 })
    const { clock } = simulation.host('node-1').platform
    const hub = new RaftTransportHub()
    let contacts: PeerContact[] = []
    const members = await threeNodes(simulation, hub, () => contacts)
    const old = await leaderOf(simulation, members)
    const cutMs = clock.monotonic()
    contacts = [{ brokerId: old.id as BrokerId, lastHeardMs: cutMs, isConnected: false }]
    cutOff(hub, old)
    const next = await leaderOf(
      simulation,
      members.filter((member) => member !== old),
    )
    await simulation.runUntil(() => next.coordination.image.cluster.broker(old.id as BrokerId)?.fenced === true)
    const silentMs = clock.monotonic() - cutMs
    expect(silentMs).toBeGreaterThanOrEqual(3000)
    expect(silentMs).toBeLessThan(3500) // sessions are looked at eight times in each
  })

  test('a broker that shuts down is let go when the others know of it, not at their next heartbeats', async () => {
    const simulation = createSimulation({ seed: 15 })
    const remote: Remote = (members) => ({
      ask: (controller, kind, request) =>
        members.find(({ id }) => id === controller)!.quorum.controller.ask(kind, request),
    })
    const members = await threeNodes(simulation, new RaftTransportHub(), () => [], remote)
    await simulation.runUntil(() => members.every(leads))
    const { clock } = simulation.host('observer').platform
    const leaving = members.find(({ raft }) => raft.state.role !== 'leader')!
    const beganMs = clock.monotonic()
    await simulation.run(leaving.coordination.handOver())
    expect(clock.monotonic() - beganMs).toBeLessThan(200)
    const stays = members.find((member) => member !== leaving)!
    await simulation.runUntil(
      () => !leads(leaving) && stays.coordination.image.cluster.broker(leaving.id as BrokerId)?.fenced === true,
    )
  })
})
