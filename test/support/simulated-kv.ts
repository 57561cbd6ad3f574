import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { Packr } from 'msgpackr'
import { FileError, type FileHandle, type Files } from '../../src/platform/index.ts'
import { type KeyValueOperation, type KeyValueStore, MemoryStore, RaftStorageError } from '../../src/raft/index.ts'

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
  const whole = content?.subarray(0, replay(content, values)) ?? Buffer.alloc(0)
  const file = await writeAnew(files, path, whole)
  return new SimulatedStore(file, values, whole.length)
}

/**
 * As Level writes what it finds to new files at each open: what is behind the last whole record is left behind, and so is a file whose
 * sync failed once, of which nothing written to it later has to be durable.
 */
async function writeAnew(files: Files, path: string, content: Buffer): Promise<FileHandle> {
  const next = `${path}.next`
  await files.remove(next)
  const file = await files.open(next, 'create')
  try {
    if (content.length > 0) await file.write([content], 0)
    await file.sync()
    await files.rename(next, path)
    await files.syncDirectory(dirname(path))
    return file
  } catch (error) {
    await file.close()
    if (!(error instanceof FileError) || error.systemCode !== 'ENOSPC') throw error
    throw new RaftStorageError(`The disk is full: no room to open ${path}: ${error.message}`, { cause: error })
  }
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
