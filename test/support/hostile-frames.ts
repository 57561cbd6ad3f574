import { gzipSync } from 'node:zlib'
import { servedApis } from '../../src/api/registry.ts'
import { zeroUuid } from '../../src/base/index.ts'
import { crc32c } from '../../src/protocol/crc32c.ts'
import { buildBatch, type Codec, encodeRequest, type MessageInput } from '../../src/protocol/index.ts'
import type { ApiMessage } from '../../src/protocol/message.ts'
import type { Field, Fields } from '../../src/protocol/schema.ts'
import { inRange } from '../../src/protocol/versions.ts'

/** A small generator of reproducible choices (mulberry32). */
export class Choices {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** In [0, 1). */
  float(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** Whole, in [0, end). */
  int(end: number): number {
    return Math.floor(this.float() * end)
  }

  chance(share: number): boolean {
    return this.float() < share
  }

  of<T>(pool: readonly T[]): T {
    return pool[this.int(pool.length)]!
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length)
    for (let i = 0; i < length; i++) bytes[i] = this.int(256)
    return bytes
  }
}

/** What a stranger could know of a broker, so that requests get past the first check. */
export interface Acquaintance {
  readonly topics: readonly string[]
  readonly topicIds: readonly string[]
  readonly groups: readonly string[]
  /** Grows while the test runs. */
  readonly memberIds: string[]
}

export interface HostileFrame {
  readonly bytes: Buffer
  /** What was sent, to be read in a failure. */
  readonly what: string
}

const codecs: readonly Codec[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
const int32s = [0, 1, 2, 3, -1, -2, 10, 500, 1024, 6000, 65_536, 2 ** 31 - 1, 2 ** 31 - 2, -(2 ** 31)]
const int16s = [0, 1, 2, -1, -2, 3, 100, 32_767, -32_768]
const int64s = [0, 1, 2, 5, -1, -2, -3, 1000, 2 ** 31, 2 ** 53 - 1]
const wideInt64s = [0n, 1n, -1n, -2n, -3n, -4n, -5n, -6n, -7n, 1n << 53n, (1n << 63n) - 1n, -(1n << 63n)]
const oddStrings = [
  '',
  '.',
  '..',
  '-',
  'a/b',
  '../../etc',
  'nul\0',
  'é',
  '\ud800',
  '😀',
  '__consumer_offsets',
  'x'.repeat(249),
]
const settings = [
  'cleanup.policy',
  'retention.ms',
  'segment.bytes',
  'max.message.bytes',
  'compression.type',
  'nonsense',
]
const settingValues = ['', 'compact', 'delete', '-1', '1', '1048588', '99999999999999999999', 'NaN', 'zstd', '\0', null]

/** What clients of other protocols begin with. */
const foreignBeginnings: readonly Buffer[] = [
  Buffer.from('16030100c8010000c40303', 'hex'), // TLS 1.2 ClientHello
  Buffer.from('160301', 'hex'),
  Buffer.from('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'),
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from('SSH-2.0-OpenSSH_9.6\r\n'),
  Buffer.from('*1\r\n$4\r\nPING\r\n'),
  Buffer.from('0000000c002c000000000000', 'hex'), // ZooKeeper's connect
  Buffer.from('0000001060820000', 'hex'), // a GSSAPI token, as SASL sent it before its handshake had frames
  Buffer.from('0000000d00616c69636500736563726574', 'hex'), // SASL PLAIN's token, without a request around it
  Buffer.alloc(64),
  Buffer.alloc(64, 0xff),
]

/** Sections of tagged fields: unknown ones, one twice, out of order, and lengths and counts that are not there. */
const taggedFields: readonly Buffer[] = [
  '0163020102',
  '02050005010203',
  '0205000500',
  '0a0000',
  'ffffffff0f',
  '01ffffffff0f00',
  '0100ffffffff0f',
  '0100ffffff7f',
  '0100808080800000',
].map((hex) => Buffer.from(hex, 'hex'))

/** Batches that unpack to a thousand times their size, with a right header and CRC. */
const bombs: readonly Buffer[] = [8, 80].map((mebibytes) => {
  const header = buildBatch({ records: [{ timestamp: 1_700_000_000_000, key: Buffer.from('k') }], codec: 'gzip' })
  const batch = Buffer.concat([header.subarray(0, 61), gzipSync(Buffer.alloc(mebibytes * 2 ** 20))])
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
  return batch
})

/** All but the one that, asked well, takes the only broker of these tests out of its cluster: it leads nothing then, as Kafka's. */
const sentApis = servedApis.filter(({ api }) => api.name !== 'UnregisterBroker')

/**
 * Frames that a broken or hostile client could send: messages made from the declarations of all served APIs with odd values,
 * most of them then damaged. The same seed makes the same frames.
 */
export class HostileFrames {
  readonly #choices: Choices
  readonly #known: Acquaintance
  #correlationId = 0
  /** An array of the frame being made was repeated: once more within it would make gigabytes. */
  #hasRepeated: boolean = false

  constructor(seed: number, known: Acquaintance) {
    this.#choices = new Choices(seed)
    this.#known = known
  }

  /** What one connection sends: sound requests, in most cases with a damaged one behind them. */
  batch(): HostileFrame[] {
    const choices = this.#choices
    if (choices.chance(0.01)) return [{ bytes: choices.of(foreignBeginnings), what: 'another protocol' }]
    const frames = Array.from({ length: choices.int(8) }, () => this.#sound())
    if (frames.length === 0 || choices.chance(0.7)) {
      const { bytes, what } = this.#sound()
      frames.push(choices.chance(0.05) ? this.#noise() : this.#damaged(bytes, what))
    }
    return frames
  }

  #noise(): HostileFrame {
    const body = this.#choices.bytes(this.#choices.int(200))
    return { bytes: framed(body), what: `random bytes ${body.toString('hex')}` }
  }

  #sound(): HostileFrame {
    const choices = this.#choices
    const served = choices.of(sentApis)
    const { min, max } = served.versions
    const version = min + choices.int(max - min + 1)
    const correlationId = this.#correlationId++
    const clientId = choices.chance(0.02) ? 'x'.repeat(30_000) : choices.of(['fuzz', null, '', '__admin_client'])
    this.#hasRepeated = false
    const body = this.#struct(served.api.request.fields, version, 0) as MessageInput<ApiMessage>
    const bytes = Buffer.concat(encodeRequest(served.api.request, version, { correlationId, clientId }, body))
    return { bytes, what: `${served.api.name} v${version} #${correlationId}` }
  }

  #damaged(whole: Buffer, what: string): HostileFrame {
    const choices = this.#choices
    let body: Buffer = Buffer.from(whole.subarray(4))
    const notes: string[] = []
    for (let times = 1 + choices.int(3); times > 0; times--) {
      const at = choices.int(body.length)
      const kind = choices.int(12)
      notes.push(`${kind}@${at}`)
      if (kind === 0) body = body.subarray(0, at)
      else if (kind === 1) for (let i = 0; i < 3; i++) body[choices.int(body.length)] = choices.int(256)
      else if (kind === 2 && at + 4 <= body.length) body.writeInt32BE(choices.of(int32s), at)
      else if (kind === 3 && at + 2 <= body.length) body.writeInt16BE(choices.of(int16s), at)
      else if (kind === 4)
        body = spliced(body, at, Buffer.from([0xff, 0xff, 0xff, 0xff, choices.of([0x07, 0x0f, 0xff])]))
      else if (kind === 5) body = spliced(body, at, body.subarray(at, at + choices.int(200)))
      else if (kind === 6) body = Buffer.concat([body, choices.bytes(choices.int(50))])
      else if (kind === 7)
        body.fill(choices.of([0xc0, 0xff, 0xed, 0x00]), at, Math.min(body.length, at + 1 + choices.int(8)))
      else if (kind === 8 && choices.chance(0.2))
        body.writeInt16BE(choices.of([...int16s, 4, 27, 75, 999]), choices.of([0, 2]))
      else if (kind === 9) body[at] = body[at]! ^ (1 << choices.int(8))
      // The last byte of a flexible version says that no tagged fields follow.
      else if (kind === 10) body = Buffer.concat([body.subarray(0, -1), choices.of(taggedFields)])
      // The right body for another version, served or not.
      else if (kind === 11 && body.length >= 4)
        body.writeUInt16BE((body.readUInt16BE(2) + choices.of([-1, 1, 2])) & 0xffff, 2)
      if (body.length < 8) break
    }
    const bytes = framed(body)
    if (choices.chance(0.02)) bytes.writeInt32BE(choices.of([...int32s, bytes.length - 5, bytes.length - 3]), 0)
    return { bytes, what: `${what} damaged ${notes.join(' ')}: ${bytes.subarray(0, 300).toString('hex')}` }
  }

  #struct(fields: Fields, version: number, depth: number): Record<string, unknown> {
    const value: Record<string, unknown> = {}
    for (const [name, field] of Object.entries(fields)) {
      if (inRange(field.versions, version)) value[name] = this.#value(name, field, version, depth)
    }
    return value
  }

  #value(name: string, field: Field, version: number, depth: number): unknown {
    const choices = this.#choices
    if (inRange(field.nullable, version) && choices.chance(0.15)) return null
    if (field.tag !== undefined && choices.chance(0.7)) return field.default
    switch (field.kind) {
      case 'boolean':
        return choices.chance(0.5)
      case 'int8':
        return choices.of([0, 1, 2, 4, -1, 127, -128])
      case 'int16':
      case 'uint16':
        return name === 'acks' ? choices.of([0, 1, -1, 2]) : choices.of(int16s) & (field.kind === 'int16' ? -1 : 0x7fff)
      case 'int32':
        return this.#int32(name)
      case 'int64':
        return choices.of(int64s)
      case 'int64Wide':
        return choices.of(wideInt64s)
      case 'float64':
        return choices.of([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e308])
      case 'uuid':
        return choices.of([zeroUuid, ...this.#known.topicIds, 'AAAAAAAAAAAAAAAAAAAAAQ'])
      case 'string':
        return this.#string(name)
      case 'bytes':
        return choices.bytes(choices.of([0, 1, 4, 30, 300, 3000]))
      case 'records':
        return this.#records()
      case 'struct':
        return this.#struct(field.fields, version, depth + 1)
      case 'array':
        return this.#many(depth, () => this.#struct(field.fields, version, depth + 1))
      case 'arrayOf':
        return this.#many(depth, () => this.#value(name, field.element!, version, depth + 1))
    }
  }

  #many(depth: number, make: () => unknown): unknown[] {
    const choices = this.#choices
    let count = choices.of([0, 1, 1, 1, 2, 3])
    if (depth === 0 && choices.chance(0.03)) count = choices.of([20, 100])
    const elements = Array.from({ length: count }, make)
    // The same thing asked for many times.
    if (count > 0 && choices.chance(0.02) && !this.#hasRepeated) {
      this.#hasRepeated = true
      for (let i = 0; i < 1000; i++) elements.push(elements[0])
    }
    return elements
  }

  #int32(name: string): number {
    const choices = this.#choices
    // Thousands of partitions are legal, and would be all that the test does.
    if (name === 'numPartitions') return choices.of([-1, 0, 1, 2, 3, -2, 10_001, 2 ** 31 - 1])
    if (/partition/i.test(name)) return choices.of([0, 0, 0, 1, 2, -1, 2 ** 31 - 1])
    if (/timeoutMs/i.test(name)) return choices.of([6000, 10_000, 0, -1, 2 ** 31 - 1])
    if (name === 'maxWaitMs') return choices.of([0, 0, 0, 0, 1, 2, -1, -1, -1, 2 ** 31 - 1])
    return choices.of(int32s)
  }

  #string(name: string): string | null {
    const choices = this.#choices
    const { topics, groups, memberIds } = this.#known
    if (choices.chance(0.1)) return choices.of(oddStrings)
    if (/group/i.test(name) || name === 'key' || name === 'coordinatorKeys') return choices.of(groups)
    if (/member/i.test(name)) {
      // The same draws whether any are known yet, so that a batch can be made again.
      const [isWanted, place] = [choices.chance(0.7), choices.float()]
      return (isWanted ? memberIds[Math.floor(place * memberIds.length)] : undefined) ?? ''
    }
    if (name === 'value') return choices.of(settingValues) ?? ''
    if (/protocol/i.test(name)) return choices.of(['consumer', 'range', 'connect', ''])
    if (name === 'name' && choices.chance(0.3)) return choices.of(['range', 'consumer', ...settings])
    if (/config/i.test(name)) return choices.of(settings)
    return choices.chance(0.1) ? `mass-${choices.int(100)}` : choices.of(topics)
  }

  #records(): Buffer {
    const choices = this.#choices
    if (choices.chance(0.003)) return choices.of(bombs)
    const records = Array.from({ length: 1 + choices.int(4) }, () => ({
      timestamp: choices.of([Date.now(), 0, -1, Date.now() + 1e10, 2 ** 53 - 1]),
      key: choices.chance(0.3) ? null : choices.bytes(choices.int(10)),
      value: choices.chance(0.2) ? null : choices.bytes(choices.of([0, 10, 100, 2000])),
      headers: choices.chance(0.2) ? [{ key: 'h', value: null }] : [],
    }))
    const isIdempotent = choices.chance(0.3)
    const batch = buildBatch({
      records,
      codec: choices.of(codecs),
      transactional: choices.chance(0.05),
      control: choices.chance(0.05),
      ...(isIdempotent
        ? {
            producerId: choices.of([0, 1, 1000, 2 ** 53 - 1]),
            producerEpoch: choices.of([0, 1, -1, 32_767]),
            baseSequence: choices.of([0, 1, 2, -1, 2 ** 31 - 1, 2 ** 31 - 2]),
          }
        : {}),
    })
    if (choices.chance(0.2)) batch[choices.int(batch.length)] = choices.int(256)
    if (choices.chance(0.1)) batch.writeInt32BE(choices.of(int32s), choices.of([8, 23, 53, 57]))
    return choices.chance(0.05) ? Buffer.concat([batch, batch]) : batch
  }
}

/** What a frame's header claims, mended or not; undefined when it is too short to have one. */
export function headerOf({ bytes }: HostileFrame) {
  if (bytes.length < 12) return undefined
  return { apiKey: bytes.readInt16BE(4), version: bytes.readInt16BE(6), correlationId: bytes.readInt32BE(8) }
}

function framed(body: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length)
  return Buffer.concat([length, body])
}

function spliced(bytes: Buffer, at: number, inserted: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)])
}
