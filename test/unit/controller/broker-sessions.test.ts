import { expect, test } from 'vitest'
import { BrokerSessions } from '../../../src/controller/index.ts'
import { brokerEpoch, brokerId } from '../metadata/support.ts'

const one = { brokerId: brokerId(1), brokerEpoch: brokerEpoch(5) }
const two = { brokerId: brokerId(2), brokerEpoch: brokerEpoch(6) }

test('a broker that was heard is alive for the session timeout, exclusive', () => {
  const sessions = new BrokerSessions(1000)
  expect(sessions.isAlive(one, 0)).toBe(false)
  sessions.heard(one, 500)
  expect(sessions.isAlive(one, 1499)).toBe(true)
  expect(sessions.isAlive(one, 1500)).toBe(false)
  expect(sessions.isAlive({ ...one, brokerEpoch: brokerEpoch(9) }, 600)).toBe(false)
})

test('a broker that nobody heard yet, or of a new run, gets a whole session from when it is asked about', () => {
  const sessions = new BrokerSessions(1000)
  expect(sessions.expired([one, two], 0)).toEqual([])
  sessions.heard(two, 900)
  expect(sessions.expired([one, two], 1000)).toEqual([one])
  expect(sessions.expired([{ ...one, brokerEpoch: brokerEpoch(9) }, two], 1100)).toEqual([])
})
