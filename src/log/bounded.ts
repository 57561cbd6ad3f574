/** Does `work` for every item, at most `maxConcurrent` at a time. Rejects with the first error, once all that ran are done. */
export async function forEachBounded<T>(
  items: Iterable<T>,
  maxConcurrent: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  const lane = async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await work(next.value)
  }
  const lanes = await Promise.allSettled(Array.from({ length: maxConcurrent }, lane))
  for (const result of lanes) if (result.status === 'rejected') throw result.reason
}
