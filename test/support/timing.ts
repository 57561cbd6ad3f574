/** How often a time is taken at most. */
const maxAttempts = 5

/**
 * The shortest of the times that `attempt` resolves with, in milliseconds, each of which it takes anew; of five at most, and none
 * after one below `enoughMs`. What else a machine does only ever adds to a time: the shortest is nearest to what the program itself
 * needs, and a program that waits where it is not to does so each time.
 */
export async function shortestMs(enoughMs: number, attempt: () => Promise<number>): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY
  for (let count = 0; count < maxAttempts && shortest >= enoughMs; count++) {
    shortest = Math.min(shortest, await attempt())
  }
  return shortest
}

/** How long `work` takes until it resolves, in milliseconds. */
export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}
