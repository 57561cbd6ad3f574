/**
 * Kafka's variant of MurmurHash2, 32 bits, as a signed number. Every client must agree on it: it decides in which partition
 * the records of a key are.
 */
export function murmur2(bytes: Uint8Array): number {
  const { length } = bytes
  const multiplier = 0x5bd1e995
  let hash = 0x9747b28c ^ length
  let position = 0
  for (; position + 4 <= length; position += 4) {
    let word =
      bytes[position]! | (bytes[position + 1]! << 8) | (bytes[position + 2]! << 16) | (bytes[position + 3]! << 24)
    word = Math.imul(word, multiplier)
    word ^= word >>> 24
    hash = Math.imul(hash, multiplier) ^ Math.imul(word, multiplier)
  }
  const left = length - position
  if (left === 3) hash ^= bytes[position + 2]! << 16
  if (left >= 2) hash ^= bytes[position + 1]! << 8
  if (left >= 1) hash = Math.imul(hash ^ bytes[position]!, multiplier)
  hash ^= hash >>> 13
  hash = Math.imul(hash, multiplier)
  return hash ^ (hash >>> 15)
}

/** The partition of a key, 0 to `partitionCount` - 1, as Kafka's own producers choose it. */
export function partitionOfKey(key: Uint8Array, partitionCount: number): number {
  return (murmur2(key) & 0x7fffffff) % partitionCount
}
