/**
 * The elements of a request whose answers may be many times as large as they are, each thing asked about once: the first of
 * those with the same key. Otherwise a small request that names a large topic a million times asks for more memory than
 * there is. Clients keep answers by name, so they miss nothing.
 */
export function distinct<T>(asked: readonly T[], keyOf: (each: T) => string): readonly T[] {
  const byKey = new Map<string, T>()
  for (const each of asked) {
    const key = keyOf(each)
    if (!byKey.has(key)) byKey.set(key, each)
  }
  return byKey.size === asked.length ? asked : [...byKey.values()]
}
