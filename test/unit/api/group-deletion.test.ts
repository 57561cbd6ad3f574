import { describe, expect, test } from 'vitest'
import type { DeleteGroupResponse, OffsetDeleteResponse } from '../../../src/group/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { harness, partitionImage } from './harness.ts'

describe('DeleteGroups', () => {
  const reasons: [DeleteGroupResponse['reason'], number][] = [
    [null, 0],
    ['coordinator-load-in-progress', 14],
    ['coordinator-not-available', 15],
    ['not-coordinator', 16],
    ['non-empty-group', 68],
    ['group-id-not-found', 69],
    ['unknown-server-error', -1],
  ]

  test.each([0, 1, 2])('%i answers for each group on its own', async (version) => {
    const { ask, groups } = harness()
    groups.answers.deleteGroups = reasons.map(([reason]) => ({ groupId: `of ${reason}`, reason }))
    const { results } = await ask(apis.DeleteGroups, version, { groupsNames: ['a', 'b'] })
    expect(groups.asked).toEqual([{ method: 'deleteGroups', request: ['a', 'b'] }])
    expect(results).toMatchObject(reasons.map(([reason, errorCode]) => ({ groupId: `of ${reason}`, errorCode })))
  })

  test('a group that is named twice is deleted once', async () => {
    const { ask, groups } = harness()
    const { results } = await ask(apis.DeleteGroups, 2, { groupsNames: ['a', 'b', 'a'] })
    expect(groups.asked).toEqual([{ method: 'deleteGroups', request: ['a', 'b'] }])
    expect(results).toHaveLength(2)
  })
})

describe('OffsetDelete', () => {
  const topics = (...names: string[]) =>
    names.map((name) => ({ name, partitions: [{ partitionIndex: 0 }, { partitionIndex: 7 }] }))

  test('answers for each partition, in the order asked; those that are not there are not asked for', async () => {
    const { ask, groups, coordination } = harness()
    coordination.addTopic('read', [partitionImage(0)])
    coordination.addTopic('free', [partitionImage(0)])
    groups.answers.offsetDelete = {
      ok: true,
      topics: [
        { topic: 'read', partitions: [{ partition: 0, reason: 'group-subscribed-to-topic' }] },
        { topic: 'free', partitions: [{ partition: 0, reason: null }] },
      ],
    }
    const answer = await ask(apis.OffsetDelete, 0, { groupId: 'group', topics: topics('read', 'never', 'free') })
    expect(groups.asked).toMatchObject([
      {
        request: {
          groupId: 'group',
          topics: [
            { topic: 'read', partitions: [0] },
            { topic: 'free', partitions: [0] },
          ],
        },
      },
    ])
    expect(answer.errorCode).toBe(0)
    expect(answer.topics.map(({ name, partitions }) => [name, partitions.map((each) => each.errorCode)])).toEqual([
      ['read', [86, 3]],
      ['never', [3, 3]],
      ['free', [0, 3]],
    ])
  })

  test('a group is not asked when none of the partitions is there', async () => {
    const { ask, groups } = harness()
    const answer = await ask(apis.OffsetDelete, 0, { groupId: '', topics: topics('never') })
    expect(answer).toMatchObject({ errorCode: 0, topics: [{ partitions: [{ errorCode: 3 }, { errorCode: 3 }] }] })
    expect(groups.asked).toEqual([])
  })

  const refusals: [Extract<OffsetDeleteResponse, { ok: false }>['reason'], number][] = [
    ['coordinator-load-in-progress', 14],
    ['coordinator-not-available', 15],
    ['not-coordinator', 16],
    ['non-empty-group', 68],
    ['group-id-not-found', 69],
    ['unknown-server-error', -1],
  ]

  test.each(refusals)('%s is error %i at the top', async (reason, errorCode) => {
    const { ask, groups, coordination } = harness()
    coordination.addTopic('orders')
    groups.answers.offsetDelete = { ok: false, reason }
    const answer = await ask(apis.OffsetDelete, 0, { groupId: 'group', topics: topics('orders', 'never') })
    expect(answer).toMatchObject({ errorCode, topics: [] })
  })

  test('an empty group id is INVALID_GROUP_ID', async () => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    expect(await ask(apis.OffsetDelete, 0, { groupId: '', topics: topics('orders') })).toMatchObject({
      errorCode: 24,
      topics: [],
    })
  })
})
