import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { Packr } from 'msgpackr'
import type { FileHandle, Files } from '../../src/platform/index.ts'
import { type KeyValueOperation, type KeyValueStore, MemoryStore } from '../../src/raft/index.ts'

const packr = new Packr({ useRecords: false, variableMapSize: true })
const headerBytes = 8
const maxFileBytes = 1 << 30

/**
 * Stands in for Level where a whole node is simulated: an ordered store over the platform's files, so that crashes, torn writes and
 * failed syncs of the simulated disk reach it. As Level does, it writes each batch to a log as one record (length,
 * CRC-32, msgpack of `[key, value | null] ...`), syncs when asked to, and at open takes what comes before the first record that
 * is not whole, silently dropping the rest.
 */
export async function openSimulatedStore(files: Files, directory: string): Promise<KeyValueStore> {
  await files.makeDirectory(directory)
  await files.syncDirectory(dirname(directory))
  const path = `${directory}/store.log`
  const content = await files.readFile(path, maxFileBytes)
  const values = new MemoryStore()
  const wholeBytes = content === undefined ? 0 : replay(content, values)
  const file = await files.open(path, 'create')
  // What is left behind the last whole record must not come after new ones.
  if (content !== undefined && wholeBytes < content.length) await file.truncate(wholeBytes)
  await file.sync()
  await files.syncDirectory(directory)
  return new SimulatedStore(file, values, wholeBytes)
}

/** Applies the whole records; returns where they end. */
function replay(content: Buffer, values: MemoryStore): number {
  let position = 0
  while (content.length - position >= headerBytes) {
    const end = position + headerBytes + content.readUInt32BE(position)
    if (end > content.length) break
    const body = content.subarray(position + headerBytes, end)
    if (body.length === 0 || crc32(body) !== content.readUInt32BE(position + 4)) break
    const rows = packr.unpack(body) as [Buffer, Buffer | null][]
    values.apply(
      rows.map(([key, value]): KeyValueOperation => {
        return value === null ? { type: 'delete', key } : { type: 'put', key, value }
      }),
    )
    position = end
  }
  return position
}

class SimulatedStore implements KeyValueStore {
  readonly #file: FileHandle
  readonly #values: MemoryStore
  #position: number
  #queue: Promise<void> = Promise.resolve()

  constructor(file: FileHandle, values: MemoryStore, position: number) {
    this.#file = file
    this.#values = values
    this.#position = position
  }

  get(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#values.get(key)
  }

  iterate(from: Uint8Array, end: Uint8Array): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    return this.#values.iterate(from, end)
  }

  batch(operations: readonly KeyValueOperation[], { sync }: { readonly sync: boolean }): Promise<void> {
    const body = packr.pack(operations.map((each) => [each.key, each.type === 'put' ? each.value : null]))
    const record = Buffer.alloc(headerBytes + body.length)
    record.writeUInt32BE(body.length, 0)
    record.writeUInt32BE(crc32(body), 4)
    record.set(body, headerBytes)
    // A failed write leaves the queue rejected: what follows it in the log would be lost at the next open.
    this.#queue = this.#queue.then(async () => {
      await this.#file.write([record], this.#position)
      this.#position += record.length
      if (sync) await this.#file.sync()
      this.#values.apply(operations)
    })
    return this.#queue
  }

  async close(): Promise<void> {
    await this.#queue.catch(() => undefined) // whose call failed was told
    await this.#file.close()
  }
}
