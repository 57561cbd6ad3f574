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

test('an earlier run neither lives nor takes the place of the one that is registered', () => {
  const sessions = new BrokerSessions(1000)
  sessions.heard(one, 0)
  sessions.heard({ ...one, brokerEpoch: brokerEpoch(4) }, 500)
  expect(sessions.isAlive({ ...one, brokerEpoch: brokerEpoch(4) }, 500)).toBe(false)
  expect(sessions.isAlive(one, 500)).toBe(true)
  sessions.gone({ ...one, brokerEpoch: brokerEpoch(4) }, 500)
  expect(sessions.isAlive(one, 500)).toBe(true)
})

test('a broker is suspected when its stream closed or it is silent for half a session, and alive when heard again', () => {
  const sessions = new BrokerSessions(1000)
  sessions.heard(one, 0)
  expect([0, 499, 500, 999, 1000].map((nowMs) => sessions.evidence(one, nowMs))).toEqual([
    'alive',
    'alive',
    'suspected',
    'suspected',
    'dead',
  ])
  sessions.heard(one, 1000)
  sessions.disconnected(one, 1100)
  expect(sessions.evidence(one, 1100)).toBe('suspected')
  sessions.disconnected(one, 1900)
  expect(sessions.evidence(one, 2099)).toBe('suspected')
  expect(sessions.evidence(one, 2100)).toBe('dead')
  sessions.heard(one, 2100)
  expect(sessions.evidence(one, 2100)).toBe('alive')
})

test('a process that is gone is dead at once; one that was said to be and lives is left to its silence for a minute', () => {
  const sessions = new BrokerSessions(1000)
  sessions.heard(one, 0)
  expect(sessions.gone(one, 10)).toBe(true)
  expect(sessions.expired([one, two], 10)).toEqual([one])
  sessions.heard(one, 20)
  expect(sessions.isAlive(one, 20)).toBe(true)
  expect(sessions.gone(one, 60_019)).toBe(false)
  sessions.heard(one, 60_019)
  expect(sessions.isAlive(one, 60_019)).toBe(true)
  expect(sessions.gone(one, 60_020)).toBe(true)
  expect(sessions.isAlive(one, 60_020)).toBe(false)
  const next = { ...one, brokerEpoch: brokerEpoch(9) }
  sessions.heard(next, 60_021)
  expect(sessions.gone(next, 60_022)).toBe(true)
})

test('a new controller counts silence from what its node knows, not from its start', () => {
  const sessions = new BrokerSessions(1000)
  sessions.seed(one, 5000, true)
  sessions.seed(two, 4500, false)
  expect(sessions.evidence(one, 5100)).toBe('alive')
  expect(sessions.evidence(two, 5100)).toBe('suspected')
  expect(sessions.expired([one, two], 5500)).toEqual([two])
  expect(sessions.expired([one, two], 6000)).toEqual([one, two])
})

test('others know of a shutdown when their images hold what was the head when that was first asked', () => {
  const sessions = new BrokerSessions(1000)
  const going = { brokerId: brokerId(3), brokerEpoch: brokerEpoch(7) }
  sessions.heard({ ...one, appliedIndex: 99 }, 0)
  expect(sessions.othersHave(going, [], 100, 0)).toBe(true)
  expect(sessions.othersHave(going, [one, two], 120, 0)).toBe(false)
  sessions.heard({ ...one, appliedIndex: 100 }, 1)
  expect(sessions.othersHave(going, [one, two], 150, 1)).toBe(false)
  sessions.heard({ ...two, appliedIndex: 101 }, 2)
  expect(sessions.othersHave(going, [one, two], 150, 2)).toBe(true)
})
