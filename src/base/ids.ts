/**
 * Numbers and names that must not be swapped are different types. A brand costs nothing at run time: make one with
 * `as`, at the place where the number is known to be what the brand says.
 */
export type Brand<T, Name extends string> = T & { readonly __brand: Name }

/** A record's place in a partition, 0 or more. Safe integers: 2^53 records are out of reach of one partition. */
export type Offset = number

/** Numbers a partition's leaders: one more for each leader change, 0 or more; -1 is "none known". */
export type LeaderEpoch = Brand<number, 'LeaderEpoch'>
/** Counts every change of a partition's metadata (leader, ISR, replicas), 0 or more. */
export type PartitionEpoch = Brand<number, 'PartitionEpoch'>
/** Identifies one run of a broker: the index of its registration's entry in the metadata log. */
export type BrokerEpoch = Brand<number, 'BrokerEpoch'>
/** Numbers the controllers: the Raft term in which the controller leads the metadata quorum. */
export type ControllerEpoch = Brand<number, 'ControllerEpoch'>
/** `node.id` of a broker, 0 to 2^31-1. */
export type BrokerId = Brand<number, 'BrokerId'>
/** Identifies an idempotent producer; never repeats in a cluster; -1 is "none". */
export type ProducerId = Brand<number, 'ProducerId'>
/** Fences an older run of the same producer, 0 to 32767; -1 is "none". */
export type ProducerEpoch = Brand<number, 'ProducerEpoch'>

/** 16 bytes in Kafka's text form: 22 characters of unpadded base64url. A string, so that it can be a map's key. */
export type Uuid = Brand<string, 'Uuid'>

/** "No id": sixteen zero bytes. */
export const zeroUuid = 'AAAAAAAAAAAAAAAAAAAAAA' as Uuid

/** The text form of 16 bytes. */
export function uuidFromBytes(bytes: Uint8Array): Uuid {
  return Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('base64url') as Uuid
}

/** The last character has 2 bits that count. */
const uuidPattern = /^[A-Za-z0-9_-]{21}[AQgw]$/

/** The 16 bytes of a text form; undefined when `text` is not the one text form of some UUID. */
export function uuidToBytes(text: string): Buffer | undefined {
  // Node's decoder would take '+' and '/' too, skip what it doesn't know, and ignore the last character's spare bits.
  return isUuid(text) ? Buffer.from(text, 'base64url') : undefined
}

/** Whether `text` is the text form of some UUID. */
export function isUuid(text: string): text is Uuid {
  return uuidPattern.test(text)
}

/** One partition of one topic, by name. */
export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** A map key for a topic's partition, and its name in logs and on disk: `orders-0`. */
export function partitionName(topic: string, partition: number): string {
  return `${topic}-${partition}`
}
