import { assert } from '../base/index.ts'
import { MalformedRequestError } from './faults.ts'
import { decodeMessage, encodeMessage, type Message, type RecordKey } from './message.ts'
import { Reader } from './reader.ts'
import type { Fields, InputOf, ValueOf } from './schema.ts'
import { Writer } from './writer.ts'

/**
 * Messages outside of requests. Values in internal topics, and what consumers tell each other through a group, are an
 * int16 version and the message. Keys in internal topics are an int16 record type and the message.
 */
export function encodeVersioned<F extends Fields>(message: Message<F>, version: number, value: InputOf<F>): Buffer {
  return encodeBehind(version, message, version, value)
}

/**
 * Throws `MalformedRequestError`, also for a version that isn't known, unless `newerAsNewest`: then a newer one is read as
 * the newest known, whose fields it begins with. That is how Kafka treats the metadata of consumers.
 */
export function decodeVersioned<F extends Fields>(
  message: Message<F>,
  bytes: Buffer,
  options: { readonly newerAsNewest?: boolean } = {},
): ValueOf<F> {
  const reader = new Reader(bytes)
  const claimed = reader.int16()
  const { min, max } = message.versions
  const version = options.newerAsNewest === true ? Math.min(claimed, max) : claimed
  if (version < min || version > max) throw new MalformedRequestError(`${message.name} has no version ${claimed}`)
  return decodeMessage(message, version, reader)
}

export function encodeRecordKey<F extends Fields>(key: RecordKey<F>, value: InputOf<F>): Buffer {
  return encodeBehind(key.recordType, key, 0, value)
}

/** The type of an internal topic's record, which says what the rest of its key and its value are. */
export function readRecordType(key: Buffer): number {
  return new Reader(key).int16()
}

/** Reads `key` as what the caller knows it to be by its record type. Throws `MalformedRequestError`. */
export function decodeRecordKey<F extends Fields>(message: RecordKey<F>, key: Buffer): ValueOf<F> {
  return decodeMessage(message, 0, new Reader(key, Math.min(2, key.length)))
}

function encodeBehind<F extends Fields>(
  prefix: number,
  message: Message<F>,
  version: number,
  value: InputOf<F>,
): Buffer {
  const writer = new Writer(128)
  writer.int16(prefix)
  encodeMessage(message, version, value, writer)
  const [bytes, ...others] = writer.finish()
  assert(bytes !== undefined && others.length === 0, 'a stored message holds no record data')
  return bytes
}
