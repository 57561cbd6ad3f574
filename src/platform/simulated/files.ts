import { posix } from 'node:path'
import { assert } from '../../base/index.ts'
import { DirectoryLockedError, FileError } from '../errors.ts'
import type { DirectoryEntry, DirectoryLock, FileHandle, FileStat, Files, OpenMode } from '../ports.ts'
import type { SimulatedDisk } from './disk.ts'
import type { DiskFile } from './disk-file.ts'
import type { Prng } from './prng.ts'
import type { Process } from './process.ts'
import type { Scheduler } from './scheduler.ts'

/** What the files of one process stand on. */
interface FilesContext {
  readonly process: Process
  readonly scheduler: Scheduler
  readonly disk: SimulatedDisk
  /** Latencies, and names of temporary folders. */
  readonly random: Prng
  /** The wall clock, for times of files. */
  readonly now: () => number
}

const lockName = '.lock'

/**
 * The files of one process over the disk of its host. An asynchronous call takes effect when it completes: two that are under
 * way at once complete in either order, and a buffer that changes before its write completes shows in the file.
 */
export class SimulatedFiles implements Files {
  readonly #context: FilesContext
  readonly #locked = new Set<string>()

  constructor(context: FilesContext) {
    this.#context = context
  }

  open(path: string, mode: OpenMode): Promise<FileHandle> {
    return this.#call('open', path, () => this.#open(path, mode))
  }

  openSync(path: string, mode: OpenMode): FileHandle {
    const { process } = this.#context
    process.checkAlive()
    this.#record('open', path)
    return this.#open(path, mode)
  }

  readFile(path: string, maxBytes: number): Promise<Buffer | undefined> {
    return this.#call('read', path, () => {
      const { disk, scheduler, process } = this.#context
      disk.checkFault('read', path)
      const node = disk.find(path)
      if (node === undefined) return undefined
      if (node.kind === 'directory') throw new FileError('read', path, 'EISDIR')
      if (node.sizeBytes > maxBytes) throw new FileError('read', path, 'EFBIG')
      const content = Buffer.allocUnsafeSlow(node.sizeBytes)
      node.read(content, 0)
      scheduler.trace.record(scheduler.nowUs, process.host, 'content', path, 0, content.length, [content])
      return content
    })
  }

  list(path: string): Promise<readonly DirectoryEntry[] | undefined> {
    return this.#call('list', path, () => {
      this.#context.disk.checkFault('list', path)
      return this.#context.disk.list(path)
    })
  }

  stat(path: string): Promise<FileStat | undefined> {
    return this.#call('stat', path, () => {
      this.#context.disk.checkFault('stat', path)
      const node = this.#context.disk.find(path)
      if (node === undefined) return undefined
      const isFile = node.kind === 'file'
      return {
        sizeBytes: isFile ? node.sizeBytes : 0,
        modifiedMs: isFile ? node.modifiedMs : 0,
        kind: node.kind,
      }
    })
  }

  makeDirectory(path: string): Promise<void> {
    return this.#call('make folder', path, () => {
      this.#context.disk.checkFault('make folder', path)
      this.#context.disk.makeDirectory(path)
    })
  }

  makeDirectorySync(path: string): void {
    const { disk, process } = this.#context
    process.checkAlive()
    this.#record('make folder', path)
    disk.checkFault('make folder', path)
    if (disk.find(posix.dirname(path))?.kind !== 'directory') throw new FileError('make folder', path, 'ENOENT')
    disk.makeDirectory(path)
  }

  rename(from: string, to: string): Promise<void> {
    return this.#call('rename', from, () => {
      this.#record('rename to', to)
      this.#context.disk.checkFault('rename', from)
      this.#context.disk.rename(from, to)
    })
  }

  renameSync(from: string, to: string): void {
    const { disk, process } = this.#context
    process.checkAlive()
    this.#record('rename', from)
    this.#record('rename to', to)
    disk.checkFault('rename', from)
    disk.rename(from, to)
  }

  remove(path: string): Promise<void> {
    return this.#call('remove', path, () => {
      this.#context.disk.checkFault('remove', path)
      this.#context.disk.remove(path)
    })
  }

  removeTree(path: string): Promise<void> {
    return this.#call('remove tree', path, () => {
      this.#context.disk.checkFault('remove', path)
      this.#context.disk.removeTree(path)
    })
  }

  syncDirectory(path: string): Promise<void> {
    return this.#call(
      'sync folder',
      path,
      () => {
        this.#context.disk.checkFault('sync', path)
        this.#context.disk.syncDirectory(path)
      },
      this.#context.disk.syncUs,
    )
  }

  lockDirectory(path: string): Promise<DirectoryLock> {
    return this.#call('lock', path, () => {
      const { disk, process } = this.#context
      if (this.#locked.has(path)) throw new DirectoryLockedError(path, process.pid, true)
      if (disk.find(path)?.kind !== 'directory') throw new FileError('lock', path, 'ENOENT')
      // One left by an earlier process is stale: a host runs one at a time.
      const lockPath = `${path}/${lockName}`
      disk.remove(lockPath)
      const file = disk.file('lock', lockPath, true)
      disk.write(file, lockPath, [Buffer.from(String(process.pid))], 0)
      this.#locked.add(path)
      return {
        release: async () => {
          if (!this.#locked.delete(path)) return
          await this.#call('unlock', path, () => disk.remove(lockPath))
        },
      }
    })
  }

  space(path: string): Promise<{ freeBytes: number; totalBytes: number }> {
    return this.#call('measure', path, () => {
      const { disk } = this.#context
      if (disk.find(path) === undefined) throw new FileError('measure', path, 'ENOENT')
      const freeBytes = Math.max(0, disk.capacityBytes - disk.usedBytes)
      return { freeBytes, totalBytes: disk.capacityBytes }
    })
  }

  async maxOpen(): Promise<number> {
    return Number.POSITIVE_INFINITY
  }

  makeTemporaryDirectory(prefix: string): Promise<string> {
    return this.#call('make folder', prefix, () => {
      const path = `/tmp/${prefix}${this.#context.random.next().toString(36)}`
      this.#context.disk.makeDirectory(path)
      return path
    })
  }

  #open(path: string, mode: OpenMode): FileHandle {
    const { disk } = this.#context
    disk.checkFault('open', path)
    return new SimulatedFileHandle(path, mode, disk.file('open', path, mode === 'create'), this.#context)
  }

  #record(operation: string, path: string): void {
    const { scheduler, process } = this.#context
    scheduler.trace.record(scheduler.nowUs, process.host, operation, path, 0, 0)
  }

  #call<T>(operation: string, path: string, body: () => T, latencyUs = this.#context.disk.callUs): Promise<T> {
    const { process, random } = this.#context
    return process.perform(random.between(...latencyUs), () => {
      this.#record(operation, path)
      return body()
    })
  }
}

class SimulatedFileHandle implements FileHandle {
  readonly path: string
  readonly #mode: OpenMode
  readonly #file: DiskFile
  readonly #context: FilesContext
  #inFlight = 0
  #isOpen: boolean = true
  #syncFailure: FileError | undefined

  constructor(path: string, mode: OpenMode, file: DiskFile, context: FilesContext) {
    this.path = path
    this.#mode = mode
    this.#file = file
    this.#context = context
  }

  sizeSync(): number {
    this.#begin('size', 0, 0)
    return this.#file.sizeBytes
  }

  writeSync(chunks: readonly Uint8Array[], position: number): void {
    this.#begin('write', position, 0, chunks)
    this.#write(chunks, position)
  }

  write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    return this.#call(() => {
      this.#begin('write', position, 0, chunks)
      this.#write(chunks, position)
    })
  }

  readSync(target: Uint8Array, position: number): number {
    this.#begin('read', position, target.length)
    return this.#read(target, position)
  }

  read(target: Uint8Array, position: number): Promise<number> {
    return this.#call(() => {
      this.#begin('read', position, target.length)
      return this.#read(target, position)
    })
  }

  truncate(sizeBytes: number): Promise<void> {
    return this.#call(() => this.truncateSync(sizeBytes))
  }

  truncateSync(sizeBytes: number): void {
    this.#begin('truncate', sizeBytes, 0)
    if (this.#mode === 'read') throw new FileError('truncate', this.path, 'EINVAL')
    this.#context.disk.truncate(this.#file, this.path, sizeBytes)
    this.#file.modifiedMs = this.#context.now()
  }

  async sync(): Promise<void> {
    if (this.#syncFailure !== undefined) throw this.#syncFailure
    const mark = this.#file.syncMark()
    try {
      await this.#call(() => {
        this.#begin('sync', mark, 0)
        this.#context.disk.completeSync(this.#file, this.path, mark)
      }, this.#context.disk.syncUs)
    } catch (error) {
      if (error instanceof FileError) this.#syncFailure = error
      throw error
    }
  }

  close(): Promise<void> {
    assert(
      this.#context.process.isDead || this.#inFlight === 0,
      'a file is closed only when no call on it is in flight',
    )
    return this.#call(() => {
      this.#begin('close', 0, 0)
      this.#isOpen = false
    })
  }

  closeSync(): void {
    assert(this.#inFlight === 0, 'a file is closed only when no call on it is in flight')
    this.#begin('close', 0, 0)
    this.#isOpen = false
  }

  #write(chunks: readonly Uint8Array[], position: number): void {
    if (this.#mode === 'read') throw new FileError('write', this.path, 'EBADF')
    this.#context.disk.write(this.#file, this.path, chunks, position)
    this.#file.modifiedMs = this.#context.now()
  }

  #read(target: Uint8Array, position: number): number {
    this.#context.disk.checkFault('read', this.path)
    return this.#file.read(target, position)
  }

  /** Traces a call, and throws when the process is dead or the handle closed. */
  #begin(operation: string, a: number, b: number, chunks?: readonly Uint8Array[]): void {
    const { process, scheduler } = this.#context
    process.checkAlive()
    scheduler.trace.record(scheduler.nowUs, process.host, operation, this.path, a, b, chunks)
    if (!this.#isOpen) throw new FileError(operation, this.path, 'EBADF')
  }

  #call<T>(body: () => T, latencyUs = this.#context.disk.callUs): Promise<T> {
    const { process, random } = this.#context
    this.#inFlight++
    return process.perform(random.between(...latencyUs), () => {
      this.#inFlight--
      return body()
    })
  }
}
