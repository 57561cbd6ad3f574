import { expect, test } from 'vitest'
import type { BrokerId, Uuid } from '../../../src/base/index.ts'
import type { AskController } from '../../../src/coordination/lifecycle/broker-lifecycle.ts'
import { ControllerLifecycle } from '../../../src/coordination/lifecycle/controller-lifecycle.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'
import type { NodeId, Voter } from '../../../src/raft/index.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'

const directoryId = 'AAAAAAAAAAAAAAAAAAAAAg' as Uuid
const lostDirectoryId = 'AAAAAAAAAAAAAAAAAAAAAw' as Uuid
const self = { id: 2 as NodeId, directoryId, endpoint: 'b:9093' }
const leader = { id: 1 as NodeId, directoryId: 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid, endpoint: 'a:9093' }

/** Controller 2, and a quorum that does what it is asked, unless it throws. */
function setUp(options: { voters: readonly Voter[]; joins?: boolean; failures?: number }) {
  const simulation = createSimulation({ seed: 1 })
  const { platform } = simulation.host('b')
  const asked: unknown[] = []
  let left = options.failures ?? 0
  let voters = options.voters
  const state = { leaderId: 1 as NodeId | null }
  const ask = async (kind: string, request: { id: number; directoryId: Uuid; endpoint: string }) => {
    asked.push(kind)
    if (left-- > 0) throw new Error('no leader')
    const others = voters.filter(({ id }) => id !== request.id)
    const { id, endpoint } = request
    const known = voters.find((each) => each.id === id)
    if (kind === 'removeVoter') voters = others
    else if (kind === 'addVoter' && known !== undefined) return { ok: false, reason: 'duplicate-voter', message: '' }
    else if (kind !== 'registerController')
      voters = [...others, { id: id as NodeId, directoryId: request.directoryId, endpoint }]
    return { ok: true }
  }
  const lifecycle = new ControllerLifecycle({
    ask: ask as unknown as AskController,
    platform,
    logger: silentLogger,
    registration: {
      controllerId: 2 as BrokerId,
      incarnationId: platform.random.uuid(),
      clusterId: 'c',
      endpoints: [],
      features: [],
    },
    directoryId,
    endpoint: 'b:9093',
    joins: options.joins ?? false,
    raft: () => ({
      leaderId: state.leaderId,
      membership: { voters },
      hasVote: voters.some((each) => each.directoryId === directoryId),
    }),
  })
  lifecycle.start()
  return { simulation, asked, state, lifecycle, voters: () => voters }
}

test('a controller registers once a leader is there, again and again until it is heard, and then not any more', async () => {
  const { simulation, asked, state, lifecycle } = setUp({ voters: [leader, self], failures: 2 })
  state.leaderId = null
  await simulation.runFor(5000)
  expect(asked).toEqual([])
  state.leaderId = 1 as NodeId
  await simulation.runFor(5000)
  expect(asked).toEqual(['registerController', 'registerController', 'registerController'])
  lifecycle.stop()
})

test('a voter that is elsewhere than the membership says tells it', async () => {
  const { simulation, asked, voters, lifecycle } = setUp({ voters: [leader, { ...self, endpoint: 'old:9093' }] })
  await simulation.runFor(5000)
  expect(asked).toEqual(['registerController', 'updateVoter'])
  expect(voters()).toContainEqual(self)
  lifecycle.stop()
})

test('one without a vote asks for none, unless it is to join', async () => {
  const { simulation, asked, lifecycle } = setUp({ voters: [leader] })
  await simulation.runFor(5000)
  expect(asked).toEqual(['registerController'])
  lifecycle.stop()
})

test('one that is to join takes the vote of the folder that it replaces first', async () => {
  const lost = { ...self, directoryId: lostDirectoryId }
  const { simulation, asked, voters, lifecycle } = setUp({ voters: [leader, lost], joins: true })
  await simulation.runFor(5000)
  expect(asked).toEqual(['registerController', 'removeVoter', 'addVoter'])
  expect(voters()).toEqual([leader, self])
  lifecycle.stop()
})
