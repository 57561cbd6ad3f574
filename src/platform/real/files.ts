import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { assert } from '../../base/index.ts'
import { FileError, isOutOfFiles, systemCodeOf } from '../errors.ts'
import type { DirectoryEntry, DirectoryLock, FileHandle, FileStat, Files, OpenMode } from '../ports.ts'
import { lockDirectory } from './directory-lock.ts'
import { maxOpenFiles } from './open-file-limit.ts'

const { O_CREAT, O_RDONLY, O_RDWR } = fs.constants
const openFlags = { read: O_RDONLY, write: O_RDWR, create: O_RDWR | O_CREAT } as const

/** Files over node:fs. File descriptors and callbacks: node:fs/promises costs twice as much for each call. */
export class RealFiles implements Files {
  async open(path: string, mode: OpenMode): Promise<RealFileHandle> {
    return new RealFileHandle(path, await openSoon('open', checked(path), openFlags[mode]))
  }

  openSync(path: string, mode: OpenMode): FileHandle {
    try {
      return new RealFileHandle(path, fs.openSync(checked(path), openFlags[mode]))
    } catch (error) {
      throw failure('open', path, error)
    }
  }

  async readFile(path: string, maxBytes: number): Promise<Buffer | undefined> {
    let file: RealFileHandle
    try {
      file = await this.open(path, 'read')
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
    try {
      const sizeBytes = file.sizeSync()
      if (sizeBytes > maxBytes) throw new FileError('read', path, 'EFBIG')
      const content = Buffer.allocUnsafeSlow(sizeBytes)
      const readBytes = await file.read(content, 0)
      return content.subarray(0, readBytes)
    } finally {
      file.closeSync()
    }
  }

  async list(path: string): Promise<readonly DirectoryEntry[] | undefined> {
    let entries: fs.Dirent[]
    try {
      entries = await call<fs.Dirent[]>('list', path, (done) =>
        fs.readdir(checked(path), { withFileTypes: true, encoding: 'utf8' }, done),
      )
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
    const listed: DirectoryEntry[] = []
    for (const entry of entries) {
      // A link counts as what it points to; one that points nowhere is not listed.
      const target = entry.isSymbolicLink() ? await this.stat(join(path, entry.name)) : undefined
      if (entry.isSymbolicLink() && target === undefined) continue
      listed.push({ name: entry.name, kind: target?.kind ?? (entry.isDirectory() ? 'directory' : 'file') })
    }
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async stat(path: string): Promise<FileStat | undefined> {
    try {
      const stat = await call<fs.Stats>('stat', path, (done) => fs.stat(checked(path), done))
      return { sizeBytes: stat.size, modifiedMs: stat.mtimeMs, kind: stat.isDirectory() ? 'directory' : 'file' }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** Part by part: Node's own recursive mkdir never returns where a file system takes no folders (/proc). */
  async makeDirectory(path: string): Promise<void> {
    const missing: string[] = []
    let present = resolve(checked(path))
    while ((await this.stat(present)) === undefined && dirname(present) !== present) {
      missing.push(present)
      present = dirname(present)
    }
    const found = await this.stat(present)
    if (found?.kind === 'file') throw new FileError('make folder', path, missing.length === 0 ? 'EEXIST' : 'ENOTDIR')
    for (const folder of missing.reverse()) await this.#makeOne(folder, path)
  }

  makeDirectorySync(path: string): void {
    try {
      fs.mkdirSync(checked(path))
    } catch (error) {
      const isThere = systemCodeOf(error) === 'EEXIST' && fs.statSync(path, { throwIfNoEntry: false })?.isDirectory()
      if (isThere !== true) throw failure('make folder', path, error)
    }
  }

  async #makeOne(folder: string, path: string): Promise<void> {
    try {
      await call('make folder', path, (done) => fs.mkdir(folder, done))
    } catch (error) {
      const isThere = error instanceof FileError && error.systemCode === 'EEXIST'
      if (!isThere || (await this.stat(folder))?.kind !== 'directory') throw error
    }
  }

  rename(from: string, to: string): Promise<void> {
    return call('rename', from, (done) => fs.rename(checked(from), checked(to), done))
  }

  renameSync(from: string, to: string): void {
    try {
      fs.renameSync(checked(from), checked(to))
    } catch (error) {
      throw failure('rename', from, error)
    }
  }

  async remove(path: string): Promise<void> {
    try {
      await call('remove', path, (done) => fs.unlink(checked(path), done))
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }

  removeTree(path: string): Promise<void> {
    return call('remove', path, (done) => fs.rm(checked(path), { recursive: true, force: true }, done))
  }

  async syncDirectory(path: string): Promise<void> {
    if (process.platform === 'win32') return // a folder can't be opened there, and its names are durable by themselves
    const fd = await openSoon('sync', checked(path), O_RDONLY)
    try {
      await call('sync', path, (done) => fs.fsync(fd, done))
    } finally {
      await call('close', path, (done) => fs.close(fd, done))
    }
  }

  lockDirectory(path: string): Promise<DirectoryLock> {
    return lockDirectory(checked(path))
  }

  async space(path: string): Promise<{ freeBytes: number; totalBytes: number }> {
    const stat = await call<fs.StatsFs>('measure', path, (done) => fs.statfs(checked(path), done))
    return { freeBytes: stat.bavail * stat.bsize, totalBytes: stat.blocks * stat.bsize }
  }

  maxOpen(): Promise<number> {
    return maxOpenFiles()
  }

  makeTemporaryDirectory(prefix: string): Promise<string> {
    const start = join(tmpdir(), prefix)
    return call<string>('make folder', start, (done) => fs.mkdtemp(start, done))
  }
}

/** How long an open waits for others to close what they have open, and how often it looks. */
const openPatienceMs = 5000
const openAgainMs = 20

/** While the process, or the system, has as many files open as it may, another one is opened a little later. */
async function openSoon(operation: string, path: string, flags: number): Promise<number> {
  const deadlineMs = performance.now() + openPatienceMs
  for (;;) {
    try {
      return await call<number>(operation, path, (done) => fs.open(path, flags, done))
    } catch (error) {
      if (!isOutOfFiles(error) || performance.now() >= deadlineMs) throw error
      await new Promise((resolve) => setTimeout(resolve, openAgainMs))
    }
  }
}

class RealFileHandle implements FileHandle {
  readonly path: string
  readonly #fd: number
  /** The first failed sync. The system drops the dirty pages with the error, so that a second sync would lie. */
  #syncFailure: FileError | undefined

  constructor(path: string, fd: number) {
    this.path = path
    this.#fd = fd
  }

  sizeSync(): number {
    return this.#run('stat', () => fs.fstatSync(this.#fd).size)
  }

  writeSync(chunks: readonly Uint8Array[], position: number): void {
    this.#run('write', () => {
      const only = chunks.length === 1 ? chunks[0] : undefined
      let rest = chunks
      let restBytes = only?.length ?? totalLength(chunks)
      while (restBytes > 0) {
        const written =
          only !== undefined && restBytes === only.length
            ? fs.writeSync(this.#fd, only, 0, only.length, position)
            : fs.writevSync(this.#fd, rest, position)
        if (written === restBytes) return
        if (written === 0) throw new FileError('write', this.path, 'EIO')
        rest = afterBytes(rest, written)
        restBytes -= written
        position += written
      }
    })
  }

  async write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    let rest = chunks
    let restBytes = totalLength(chunks)
    while (restBytes > 0) {
      const from = position
      const buffers = rest
      const written = await call<number>('write', this.path, (done) => fs.writev(this.#fd, buffers, from, done))
      if (written === restBytes) return
      if (written === 0) throw new FileError('write', this.path, 'EIO')
      rest = afterBytes(rest, written)
      restBytes -= written
      position += written
    }
  }

  readSync(target: Uint8Array, position: number): number {
    return this.#run('read', () => {
      let filled = 0
      while (filled < target.length) {
        const count = fs.readSync(this.#fd, target, filled, target.length - filled, position + filled)
        if (count === 0) break
        filled += count
      }
      return filled
    })
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    let filled = 0
    while (filled < target.length) {
      const at = filled
      const count = await call<number>('read', this.path, (done) =>
        fs.read(this.#fd, target, at, target.length - at, position + at, done),
      )
      if (count === 0) break
      filled += count
    }
    return filled
  }

  truncate(sizeBytes: number): Promise<void> {
    return call('truncate', this.path, (done) => fs.ftruncate(this.#fd, sizeBytes, done))
  }

  truncateSync(sizeBytes: number): void {
    this.#run('truncate', () => fs.ftruncateSync(this.#fd, sizeBytes))
  }

  async sync(): Promise<void> {
    if (this.#syncFailure !== undefined) throw this.#syncFailure
    try {
      await call('sync', this.path, (done) => fs.fdatasync(this.#fd, done))
    } catch (error) {
      this.#syncFailure = failure('sync', this.path, error)
      throw this.#syncFailure
    }
  }

  closeSync(): void {
    this.#run('close', () => fs.closeSync(this.#fd))
  }

  close(): Promise<void> {
    return call('close', this.path, (done) => fs.close(this.#fd, done))
  }

  #run<T>(operation: string, body: () => T): T {
    try {
      return body()
    } catch (error) {
      throw failure(operation, this.path, error)
    }
  }
}

/** A call of node:fs as a promise that rejects with a `FileError`. */
function call<T = void>(
  operation: string,
  path: string,
  start: (done: (error: NodeJS.ErrnoException | null, result?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, result) => {
      if (error === null) resolve(result as T)
      else reject(failure(operation, path, error))
    })
  })
}

function failure(operation: string, path: string, error: unknown): FileError {
  return error instanceof FileError ? error : new FileError(operation, path, systemCodeOf(error), { cause: error })
}

/** True also when a part of the path is a file. */
function isMissing(error: unknown): boolean {
  return error instanceof FileError && (error.systemCode === 'ENOENT' || error.systemCode === 'ENOTDIR')
}

function checked(path: string): string {
  assert(isAbsolute(path), 'a path is absolute')
  return path
}

function totalLength(chunks: readonly Uint8Array[]): number {
  let total = 0
  for (const chunk of chunks) total += chunk.length
  return total
}

/** `chunks` without their first `count` bytes. */
function afterBytes(chunks: readonly Uint8Array[], count: number): Uint8Array[] {
  const rest: Uint8Array[] = []
  for (const chunk of chunks) {
    if (count >= chunk.length) {
      count -= chunk.length
    } else {
      rest.push(count === 0 ? chunk : chunk.subarray(count))
      count = 0
    }
  }
  return rest
}
