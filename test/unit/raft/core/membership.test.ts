import { describe, expect, test } from 'vitest'
import type { Uuid } from '../../../../src/base/index.ts'
import { decodeMembership, encodeMembership, votersChanged } from '../../../../src/raft/core/membership.ts'
import type { Membership, NodeId, Voter } from '../../../../src/raft/index.ts'

const voter = (id: number, disk = 'a'): Voter => ({ id: id as NodeId, directoryId: `${id}${disk}` as Uuid })
const of = (...voters: Voter[]): Membership => ({ voters })

describe('the bytes of a membership', () => {
  test('are what version 1 wrote', () => {
    const bytes = Buffer.from(encodeMembership(of(voter(1), { ...voter(2), endpoint: 'b:9093' })))
    expect(bytes.toString('hex')).toBe('9201929301a23161c09302a23261a6623a39303933')
    expect(decodeMembership(bytes)).toEqual(of(voter(1), { ...voter(2), endpoint: 'b:9093' }))
  })

  test.each(['9202929301a23161c0', '920101', '92019101', '9201919201c0', '92019192c0a23161', '01', 'c1', ''])(
    'that are not one (%s) stop who reads them',
    (hex) => {
      expect(() => decodeMembership(Buffer.from(hex, 'hex'))).toThrow()
    },
  )

  test('that name a voter twice stop who reads them', () => {
    expect(() => decodeMembership(encodeMembership(of(voter(1), voter(1, 'b'))))).toThrow('each voter once')
  })
})

test('votersChanged() counts who comes and who goes; another disk is both, another endpoint neither', () => {
  const three = of(voter(1), voter(2), voter(3))
  expect(votersChanged(three, of(voter(3), voter(1), voter(2)))).toBe(0)
  expect(votersChanged(three, of(voter(1), voter(2)))).toBe(1)
  expect(votersChanged(three, of(voter(1), voter(2), voter(3), voter(4)))).toBe(1)
  expect(votersChanged(three, of(voter(1), voter(2), voter(4)))).toBe(2)
  expect(votersChanged(three, of(voter(1), voter(2), voter(3, 'b')))).toBe(2)
  expect(votersChanged(three, of(voter(1), voter(2), { ...voter(3), endpoint: 'c:1' }))).toBe(0)
})
