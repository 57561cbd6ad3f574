/**
 * A copy with memory of its own, for what stays as long as a group does. `Buffer.from` would cut it from a slab of 64 KiB, all of
 * which stays then: a thousand members of a few bytes each would keep 64 MiB.
 */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}
