import { nextTurn, type Timers } from '../platform/index.ts'

/** Elements that are begun in one turn of the event loop. */
const perTurn = 500

/**
 * Answers to all of `asked`, in their order. Many are dealt with a part at a time, with the event loop running in between:
 * one request for a hundred thousand things would hold up everyone else, and take the memory of as many promises.
 */
export async function inTurns<T, R>(
  asked: readonly T[],
  timers: Pick<Timers, 'defer'>,
  answer: (each: T) => R | Promise<R>,
): Promise<R[]> {
  if (asked.length <= perTurn) return await Promise.all(asked.map(answer))
  const answers: R[] = []
  for (let first = 0; first < asked.length; first += perTurn) {
    if (first > 0) await nextTurn(timers)
    answers.push(...(await Promise.all(asked.slice(first, first + perTurn).map(answer))))
  }
  return answers
}
