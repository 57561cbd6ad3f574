/**
 * The partition of `__consumer_offsets` that holds a group, as Kafka picks it: Java's `String.hashCode` without its sign (and
 * 0 for the one value whose sign cannot be taken), modulo the partitions.
 */
export function partitionFor(groupId: string, partitionCount: number): number {
  let hash = 0
  for (let i = 0; i < groupId.length; i++) hash = (Math.imul(31, hash) + groupId.charCodeAt(i)) | 0
  return hash === -(2 ** 31) ? 0 : Math.abs(hash) % partitionCount
}
