import { assert, Deque } from '../base/index.ts'
import { FileError, type FileHandle, type Files, isOutOfFiles } from '../platform/index.ts'

/** What the first append to a partition opens at once, and most that any append does. */
const filesOfAppend = 2

/**
 * The open files of all partitions, at most `maxOpen` of them idle and open.
 *
 * A file that has I/O in flight, or bytes that are not synced, is never closed: its error would be lost with the handle,
 * and a later sync by another handle could not be believed. So the bound may be passed while that many files are busy; above
 * it the logs of unsynced files are asked for a sync. `hardLimit` is never passed: who would open one more is told EMFILE,
 * as by the system; appends wait for room first.
 */
export class HandlePool {
  readonly files: Files
  readonly #maxOpen: number
  readonly #hardLimit: number
  /** Open files that may be closed, the longest unused first. */
  readonly #idle = new Set<PooledFile>()
  /** Written to, and not yet asked to be synced, the longest so first. */
  readonly #unsynced = new Set<PooledFile>()
  readonly #closing = new Set<Promise<void>>()
  readonly #waiting = new Deque<() => void>()
  #openCount = 0
  #isUsingRoom: boolean = false

  /** `hardLimit`: infinity when left out. */
  constructor(files: Files, options: { readonly maxOpen: number; readonly hardLimit?: number }) {
    const { maxOpen, hardLimit = Number.POSITIVE_INFINITY } = options
    assert(maxOpen >= 1 && hardLimit >= filesOfAppend, 'an append can open its files')
    this.files = files
    this.#maxOpen = maxOpen
    this.#hardLimit = hardLimit
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

  /** False while an append that has to open its files should wait. */
  get hasRoom(): boolean {
    return this.#openCount - this.#idle.size + filesOfAppend <= this.#hardLimit
  }

  /** Does `work`, which opens the files of an append at once, when there is room; in the order of the calls. */
  whenRoom<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.pushBack(() => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      })
      this.#askForSyncs()
      this.#useRoom()
    })
  }

  /** @internal A handle for `path`. Throws `FileError`, with EMFILE also at the pool's own limit. */
  openHandle(path: string, mode: 'write' | 'create'): FileHandle {
    if (this.#openCount >= this.#hardLimit && !this.#closeIdle(this.#hardLimit - 1)) {
      throw new FileError('open', path, 'EMFILE')
    }
    const handle = this.#openSync(path, mode)
    this.#openCount++
    return handle
  }

  /** Others may have taken what the system allows: then the idle ones are closed to open this one. */
  #openSync(path: string, mode: 'write' | 'create'): FileHandle {
    try {
      return this.files.openSync(path, mode)
    } catch (error) {
      if (!isOutOfFiles(error) || !this.#closeIdle(Math.floor(this.#openCount / 2))) throw error
      return this.files.openSync(path, mode)
    }
  }

  /** @internal The file is used: not to be closed. */
  onUsed(file: PooledFile): void {
    this.#idle.delete(file)
  }

  /** @internal Something was written to the file. */
  onWritten(file: PooledFile): void {
    this.#unsynced.add(file)
  }

  /** @internal A use has ended. */
  onReleased(file: PooledFile): void {
    if (!file.isOpen) return
    const isIdle = this.mayClose(file)
    if (isIdle) {
      this.#idle.add(file)
      this.#unsynced.delete(file)
      this.#useRoom()
    }
    if (this.#openCount > this.#maxOpen && !this.#closeIdle(this.#maxOpen)) this.#askForSyncs()
  }

  #useRoom(): void {
    if (this.#isUsingRoom) return // what it does releases files
    this.#isUsingRoom = true
    while (this.#waiting.length > 0 && this.hasRoom) this.#waiting.popFront()?.()
    this.#isUsingRoom = false
  }

  /** Closes the longest unused until no more than `count` are open; false when too few are idle. */
  #closeIdle(count: number): boolean {
    for (const oldest of this.#idle) {
      if (this.#openCount <= count) break
      this.#idle.delete(oldest)
      this.#openCount--
      try {
        oldest.takeHandle()?.closeSync()
      } catch {
        // It tells of nothing that was promised: what had to be durable was synced before.
      }
    }
    return this.#openCount <= count
  }

  /** Of as many files as are open above the bound. Each is asked once for what was written to it. */
  #askForSyncs(): void {
    let missing = this.#openCount - this.#idle.size - this.#maxOpen
    for (const file of this.#unsynced) {
      if (missing-- <= 0) return
      this.#unsynced.delete(file)
      file.onSyncWanted?.()
    }
  }

  /** @internal Closes in the background: the handle has nothing left to lose. */
  closeHandle(file: PooledFile): void {
    this.#idle.delete(file)
    this.#unsynced.delete(file)
    const handle = file.takeHandle()
    if (handle === undefined) return
    this.#openCount--
    this.#useRoom()
    // An error here tells of nothing that was promised, as in `#closeIdle`.
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
  /** Changes when its folder is renamed. */
  path: string
  /** Asks whoever writes to it for a sync, after which it can be closed. */
  onSyncWanted: (() => void) | undefined
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
    this.#noteWrite()
    handle.writeSync(chunks, position)
    this.#pool.onReleased(this)
  }

  write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    return this.#lease('create', (handle) => {
      this.#noteWrite()
      return handle.write(chunks, position)
    })
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
    return this.#lease('create', (handle) => {
      this.#noteWrite()
      return handle.truncate(sizeBytes)
    })
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

  #noteWrite(): void {
    this.#writes++
    this.#pool.onWritten(this)
  }

  #open(mode: 'write' | 'create'): FileHandle {
    assert(!this.#discarded, 'a discarded file is not used again')
    if (this.#handle === undefined) this.#handle = this.#pool.openHandle(this.path, mode)
    else this.#pool.onUsed(this)
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
