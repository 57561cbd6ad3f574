import { createRequire } from 'node:module'

type Crc32c = (bytes: Uint8Array, previous?: number) => number

const polynomial = 0x82f63b78
const slices = 16
/** `tables[k * 256 + b]`: the CRC of byte `b` followed by `k` zero bytes. */
let tables: Int32Array | undefined
let implementation: Crc32c | undefined

/**
 * CRC-32C (Castagnoli) of `bytes`, 0 to 2^32 - 1. `previous`: the result for the bytes before, when they come in chunks.
 * Native code where its package has a build for this machine, about six times faster than the table code below.
 */
export function crc32c(bytes: Uint8Array, previous = 0): number {
  implementation ??= nativeCrc32c() ?? tableCrc32c
  return implementation(bytes, previous)
}

function nativeCrc32c(): Crc32c | undefined {
  try {
    const native = createRequire(import.meta.url)('@node-rs/crc32') as { readonly crc32c: Crc32c }
    return native.crc32c
  } catch {
    // No build for this machine: the result is the same, only slower.
    return undefined
  }
}

/** Slicing by 16: sixteen bytes for each round of table look-ups. */
export function tableCrc32c(bytes: Uint8Array, previous = 0): number {
  tables ??= makeTables()
  const t = tables
  const length = bytes.length
  let crc = ~previous
  let i = 0
  for (; i + slices <= length; i += slices) {
    const word = crc ^ (bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24))
    crc =
      t[3840 + (word & 0xff)]! ^
      t[3584 + ((word >>> 8) & 0xff)]! ^
      t[3328 + ((word >>> 16) & 0xff)]! ^
      t[3072 + (word >>> 24)]! ^
      t[2816 + bytes[i + 4]!]! ^
      t[2560 + bytes[i + 5]!]! ^
      t[2304 + bytes[i + 6]!]! ^
      t[2048 + bytes[i + 7]!]! ^
      t[1792 + bytes[i + 8]!]! ^
      t[1536 + bytes[i + 9]!]! ^
      t[1280 + bytes[i + 10]!]! ^
      t[1024 + bytes[i + 11]!]! ^
      t[768 + bytes[i + 12]!]! ^
      t[512 + bytes[i + 13]!]! ^
      t[256 + bytes[i + 14]!]! ^
      t[bytes[i + 15]!]!
  }
  for (; i < length; i++) crc = t[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

function makeTables(): Int32Array {
  const t = new Int32Array(slices * 256)
  for (let b = 0; b < 256; b++) {
    let crc = b
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    t[b] = crc
  }
  for (let i = 256; i < t.length; i++) {
    const shorter = t[i - 256]!
    t[i] = t[shorter & 0xff]! ^ (shorter >>> 8)
  }
  return t
}
