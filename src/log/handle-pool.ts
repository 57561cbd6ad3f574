import { assert } from '../base/index.ts'
import type { FileHandle, Files } from '../platform/index.ts'

/**
 * The open files of all partitions, at most `maxOpen` of them idle and open.
 *
 * A file that has I/O in flight, or bytes that are not synced, is never closed: its error would be lost with the handle,
 * and a later sync by another handle could not be believed. So the bound may be passed while that many files are busy.
 */
export class HandlePool {
  readonly files: Files
  readonly #maxOpen: number
  /** Open files that may be closed, the longest unused first. */
  readonly #idle = new Set<PooledFile>()
  readonly #closing = new Set<Promise<void>>()
  #openCount = 0

  constructor(files: Files, options: { readonly maxOpen: number }) {
    assert(options.maxOpen >= 1, 'at least one file may be open')
    this.files = files
    this.#maxOpen = options.maxOpen
  }

  /** A file at `path`, opened when it is first used. */
  file(path: string): PooledFile {
    return new PooledFile(this, path)
  }

  get openCount(): number {
    return this.#openCount
  }

  /** Whether nobody would miss the handle of `file`. */
  protected mayClose(file: PooledFile): boolean {
    return file.leases === 0 && !file.hasUnsyncedBytes
  }

  /** @internal A handle was opened. */
  onOpened(): void {
    this.#openCount++
  }

  /** @internal The file is used: not to be closed. */
  onUsed(file: PooledFile): void {
    this.#idle.delete(file)
  }

  /** @internal A use has ended. */
  onReleased(file: PooledFile): void {
    if (!file.isOpen || !this.mayClose(file)) return
    this.#idle.add(file)
    if (this.#openCount <= this.#maxOpen) return
    for (const oldest of this.#idle) {
      this.#idle.delete(oldest)
      this.closeHandle(oldest)
      if (this.#openCount <= this.#maxOpen) return
    }
  }

  /** @internal Closes in the background: the handle has nothing left to lose. */
  closeHandle(file: PooledFile): void {
    this.#idle.delete(file)
    const handle = file.takeHandle()
    if (handle === undefined) return
    this.#openCount--
    // An error here tells of nothing that was promised: what had to be durable was synced before.
    const closing = handle
      .close()
      .catch(() => {})
      .then(() => {
        this.#closing.delete(closing)
      })
    this.#closing.add(closing)
  }

  /** Resolves when no handle is being closed any more. */
  async drained(): Promise<void> {
    while (this.#closing.size > 0) await Promise.all(this.#closing)
  }
}

/** One file of a `HandlePool`. Positions and sizes are in bytes. Not opened before its first use. */
export class PooledFile {
  readonly path: string
  readonly #pool: HandlePool
  #handle: FileHandle | undefined
  #leases = 0
  #writes = 0
  #syncedWrites = 0
  #discarded = false

  constructor(pool: HandlePool, path: string) {
    this.#pool = pool
    this.path = path
  }

  get isOpen(): boolean {
    return this.#handle !== undefined
  }

  /** Calls in flight. */
  get leases(): number {
    return this.#leases
  }

  /** Something was written that no sync has covered. */
  get hasUnsyncedBytes(): boolean {
    return this.#syncedWrites < this.#writes
  }

  /** Makes the file when it is missing. */
  createSync(): void {
    this.#open('create')
    this.#pool.onReleased(this)
  }

  sizeSync(): number {
    const handle = this.#open('write')
    try {
      return handle.sizeSync()
    } finally {
      this.#pool.onReleased(this)
    }
  }

  writeSync(chunks: readonly Uint8Array[], position: number): void {
    const handle = this.#open('create')
    this.#writes++
    handle.writeSync(chunks, position)
    this.#pool.onReleased(this)
  }

  write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    this.#writes++
    return this.#lease('create', (handle) => handle.write(chunks, position))
  }

  readSync(target: Uint8Array, position: number): number {
    const handle = this.#open('write')
    try {
      return handle.readSync(target, position)
    } finally {
      this.#pool.onReleased(this)
    }
  }

  read(target: Uint8Array, position: number): Promise<number> {
    return this.#lease('write', (handle) => handle.read(target, position))
  }

  truncate(sizeBytes: number): Promise<void> {
    this.#writes++
    return this.#lease('create', (handle) => handle.truncate(sizeBytes))
  }

  /** Covers every write that was made before the call. `always`: also those of an earlier process. */
  async sync(options?: { readonly always: boolean }): Promise<void> {
    if (options?.always === true) this.#open('write')
    else if (!this.hasUnsyncedBytes) return
    const handle = this.#handle
    if (handle === undefined) return
    const writes = this.#writes
    this.#leases++
    this.#pool.onUsed(this)
    try {
      await handle.sync()
      this.#syncedWrites = writes
    } finally {
      this.#leases--
      this.#settle()
    }
  }

  /** The file is renamed away or removed: its bytes are nobody's, and its handle is closed after the last call on it. */
  discard(): void {
    this.#discarded = true
    this.#syncedWrites = this.#writes
    this.#settle()
  }

  /** @internal For the pool, which closes it. */
  takeHandle(): FileHandle | undefined {
    const handle = this.#handle
    this.#handle = undefined
    return handle
  }

  #open(mode: 'write' | 'create'): FileHandle {
    assert(!this.#discarded, 'a discarded file is not used again')
    if (this.#handle === undefined) {
      this.#handle = this.#pool.files.openSync(this.path, mode)
      this.#pool.onOpened()
    } else {
      this.#pool.onUsed(this)
    }
    return this.#handle
  }

  async #lease<T>(mode: 'write' | 'create', use: (handle: FileHandle) => Promise<T>): Promise<T> {
    const handle = this.#open(mode)
    this.#leases++
    try {
      return await use(handle)
    } finally {
      this.#leases--
      this.#settle()
    }
  }

  #settle(): void {
    if (this.#discarded) {
      if (this.#leases === 0) this.#pool.closeHandle(this)
    } else {
      this.#pool.onReleased(this)
    }
  }
}
