import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Deque } from '../../../src/base/index.ts'

test('Deque gives values back in the order they came, at any length', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.integer(), { nil: undefined }), { maxLength: 200 }), (steps) => {
      const deque = new Deque<number>()
      const model: number[] = []
      for (const step of steps) {
        if (step === undefined) {
          expect(deque.popFront()).toBe(model.shift())
        } else {
          deque.pushBack(step)
          model.push(step)
        }
        expect(deque.length).toBe(model.length)
        expect(deque.front()).toBe(model[0])
      }
    }),
  )
})

test('Deque.clear() empties it', () => {
  const deque = new Deque<number>()
  for (let i = 0; i < 20; i++) deque.pushBack(i)
  deque.clear()
  expect(deque.length).toBe(0)
  expect(deque.popFront()).toBeUndefined()
})
