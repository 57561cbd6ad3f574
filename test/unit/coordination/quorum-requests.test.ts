import { expect, test } from 'vitest'
import type { Uuid } from '../../../src/base/index.ts'
import type { ActiveController } from '../../../src/coordination/raft/active-controller.ts'
import { LeaderChannel } from '../../../src/coordination/raft/quorum-requests.ts'
import type { MemberState, MembershipResult, QuorumDescription } from '../../../src/raft/index.ts'
import { brokerId, uuid } from '../metadata/support.ts'

function member(id: number, lastContactMs: number | null, changes: Partial<MemberState> = {}): MemberState {
  const state = { id, directoryId: uuid(id), matchIndex: 6, lastContactMs, lastCaughtUpMs: lastContactMs, ...changes }
  return state as MemberState
}

function channel(options: { readonly quorum?: Partial<QuorumDescription>; readonly result?: MembershipResult } = {}) {
  const { quorum, result = { ok: true, index: 12 } as MembershipResult } = options
  const asked: unknown[] = []
  const change = (request: object, limits: object = {}) => {
    asked.push({ ...request, ...limits })
    return Promise.resolve(result)
  }
  const described = { leaderId: 1, term: 3, commitIndex: 6, lastIndex: 7, observers: [], voters: [], ...quorum }
  const raft = {
    describe: () => (quorum === undefined ? undefined : (described as unknown as QuorumDescription)),
    addVoter: change,
    updateVoter: change,
    removeVoter: change,
  }
  const controller = { ask: async (kind: string) => ({ ok: true, index: 1, response: kind }) }
  return { asked, leader: new LeaderChannel(raft, controller as unknown as ActiveController) }
}

const voter = { id: brokerId(2), directoryId: uuid(2) as Uuid, timeoutMs: 1000 }

test('what is about metadata is decided by the controller', async () => {
  const { leader } = channel()
  expect(await leader.ask('unregisterBroker', { brokerId: brokerId(1) })).toMatchObject({
    response: 'unregisterBroker',
  })
})

test('the quorum is described by its leader only, ends of logs as next offsets', async () => {
  expect(await channel().leader.ask('describeQuorum', {})).toEqual({
    ok: false,
    reason: 'not-controller',
    mayBeStored: false,
  })
  const voters = [member(1, 0), member(2, 40, { endpoint: 'b:9093' })]
  const { leader } = channel({ quorum: { voters, observers: [member(3, null)] } })
  const facts = (id: number, logEndOffset: number, contactMs: number | null, endpoint: string | null = null) => {
    return { id, directoryId: uuid(id), endpoint, logEndOffset, lastContactMs: contactMs, lastCaughtUpMs: contactMs }
  }
  expect(await leader.ask('describeQuorum', {})).toEqual({
    ok: true,
    index: 0,
    response: {
      leaderId: 1,
      term: 3,
      highWatermark: 7,
      voters: [facts(1, 8, 0), facts(2, 7, 40, 'b:9093')],
      observers: [facts(3, 7, null)],
    },
  })
})

test.each([
  ['committed', { ok: true, index: 12 }, { ok: true, index: 12, response: { ok: true } }],
  [
    'refused',
    { ok: false, reason: 'duplicate-voter' },
    { ok: true, response: { ok: false, reason: 'duplicate-voter' } },
  ],
  ['not begun', { ok: false, reason: 'not-leader' }, { ok: false, reason: 'not-controller', mayBeStored: false }],
  [
    'perhaps done',
    { ok: false, reason: 'leadership-lost' },
    { ok: false, reason: 'not-controller', mayBeStored: true },
  ],
  ['perhaps begun', { ok: false, reason: 'stopped' }, { ok: false, reason: 'not-controller', mayBeStored: true }],
] as const)('a voter that is added is answered when that is known: %s', async (_what, result, answer) => {
  const { leader, asked } = channel({ quorum: {}, result: result as MembershipResult })
  expect(await leader.ask('addVoter', { ...voter, endpoint: 'b:9093' })).toMatchObject(answer)
  expect(asked).toEqual([{ ...voter, endpoint: 'b:9093' }])
})

test.each([
  ['all are heard', [member(1, 0), member(2, 40), member(3, 40)], true],
  ['the one that goes is away', [member(1, 0), member(2, 9000), member(3, 40)], true],
  ['half of those that stay are away', [member(1, 0), member(2, 40), member(3, 9000)], false],
  ['one that stays was never heard', [member(1, 0), member(2, 40), member(3, null)], false],
  ['it is the last', [member(2, 0)], true],
])('a voter is removed where most of those that stay are heard: %s', async (_why, voters, isAsked) => {
  const { leader, asked } = channel({ quorum: { voters } })
  const answer = await leader.ask('removeVoter', voter)
  expect(answer).toMatchObject({ response: isAsked ? { ok: true } : { ok: false, reason: 'too-few-heard' } })
  expect(asked).toEqual(isAsked ? [voter] : [])
})
