import { posix } from 'node:path'
import { DirectoryLockedError, FileError } from '../errors.ts'
import { FileContent } from '../file-content.ts'
import type { DirectoryEntry, DirectoryLock, FileHandle, FileStat, Files, OpenMode } from '../ports.ts'

/** What `space` tells: a memory disk has no size of its own. */
const claimedBytes = 2 ** 40

interface MemoryFile {
  readonly kind: 'file'
  readonly content: FileContent
  modifiedMs: number
}

interface MemoryDirectory {
  readonly kind: 'directory'
  readonly entries: Map<string, MemoryNode>
}

type MemoryNode = MemoryFile | MemoryDirectory

/** Files that live as long as the process: a broker for tests keeps its partitions here. Syncs do nothing. */
export function createMemoryFiles(): Files {
  return new MemoryFiles()
}

class MemoryFiles implements Files {
  readonly #root = newDirectory()
  readonly #locked = new Set<string>()
  #temporaryCount = 0

  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    return this.openSync(path, mode)
  }

  openSync(path: string, mode: OpenMode): FileHandle {
    const found = this.#find(path)
    if (found?.kind === 'directory') throw new FileError('open', path, 'EISDIR')
    if (found !== undefined) return new MemoryHandle(path, mode, found)
    const { entries } = this.#parent('open', path)
    if (mode !== 'create') throw new FileError('open', path, 'ENOENT')
    const file: MemoryFile = { kind: 'file', content: new FileContent(), modifiedMs: Date.now() }
    entries.set(posix.basename(path), file)
    return new MemoryHandle(path, mode, file)
  }

  async readFile(path: string, maxBytes: number): Promise<Buffer | undefined> {
    const found = this.#find(path)
    if (found === undefined) return undefined
    if (found.kind === 'directory') throw new FileError('read', path, 'EISDIR')
    if (found.content.sizeBytes > maxBytes) throw new FileError('read', path, 'EFBIG')
    return found.content.copy(0, found.content.sizeBytes)
  }

  async list(path: string): Promise<readonly DirectoryEntry[] | undefined> {
    const found = this.#find(path)
    if (found?.kind !== 'directory') return undefined
    return [...found.entries].map(([name, { kind }]) => ({ name, kind })).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async stat(path: string): Promise<FileStat | undefined> {
    const found = this.#find(path)
    if (found === undefined) return undefined
    if (found.kind === 'directory') return { sizeBytes: 0, modifiedMs: 0, kind: 'directory' }
    return { sizeBytes: found.content.sizeBytes, modifiedMs: found.modifiedMs, kind: 'file' }
  }

  async makeDirectory(path: string): Promise<void> {
    let directory = this.#root
    const names = namesOf(path)
    for (const [i, name] of names.entries()) {
      let next = directory.entries.get(name)
      if (next === undefined) {
        next = newDirectory()
        directory.entries.set(name, next)
      }
      if (next.kind === 'file') throw new FileError('make folder', path, i < names.length - 1 ? 'ENOTDIR' : 'EEXIST')
      directory = next
    }
  }

  makeDirectorySync(path: string): void {
    const { entries } = this.#parent('make folder', path)
    const found = entries.get(posix.basename(path))
    if (found?.kind === 'file') throw new FileError('make folder', path, 'EEXIST')
    if (found === undefined) entries.set(posix.basename(path), newDirectory())
  }

  async rename(from: string, to: string): Promise<void> {
    this.renameSync(from, to)
  }

  renameSync(from: string, to: string): void {
    const node = this.#find(from)
    if (node === undefined) throw new FileError('rename', from, 'ENOENT')
    const target = this.#parent('rename', to).entries
    const replaced = this.#find(to)
    if (replaced === node) return
    if (to.startsWith(`${from}/`)) throw new FileError('rename', from, 'EINVAL')
    if (replaced?.kind === 'directory' && node.kind === 'file') throw new FileError('rename', from, 'EISDIR')
    if (replaced?.kind === 'file' && node.kind === 'directory') throw new FileError('rename', from, 'ENOTDIR')
    if (replaced?.kind === 'directory' && replaced.entries.size > 0) throw new FileError('rename', from, 'ENOTEMPTY')
    this.#parent('rename', from).entries.delete(posix.basename(from))
    target.set(posix.basename(to), node)
  }

  async remove(path: string): Promise<void> {
    const found = this.#find(path)
    if (found?.kind === 'directory') throw new FileError('remove', path, 'EISDIR')
    if (found !== undefined) this.#parent('remove', path).entries.delete(posix.basename(path))
  }

  async removeTree(path: string): Promise<void> {
    if (this.#find(path) !== undefined) this.#parent('remove', path).entries.delete(posix.basename(path))
  }

  async syncDirectory(path: string): Promise<void> {
    this.#directory('sync', path)
  }

  async lockDirectory(path: string): Promise<DirectoryLock> {
    this.#directory('lock', path)
    if (this.#locked.has(path)) throw new DirectoryLockedError(path, process.pid, true)
    this.#locked.add(path)
    return { release: async () => void this.#locked.delete(path) }
  }

  async space(): Promise<{ freeBytes: number; totalBytes: number }> {
    return { freeBytes: claimedBytes, totalBytes: claimedBytes }
  }

  async maxOpen(): Promise<number> {
    return Number.POSITIVE_INFINITY
  }

  async makeTemporaryDirectory(prefix: string): Promise<string> {
    const path = `/tmp/${prefix}${this.#temporaryCount++}`
    await this.makeDirectory(path)
    return path
  }

  #find(path: string): MemoryNode | undefined {
    let node: MemoryNode | undefined = this.#root
    for (const name of namesOf(path)) {
      if (node?.kind !== 'directory') return undefined
      node = node.entries.get(name)
    }
    return node
  }

  #parent(operation: string, path: string): MemoryDirectory {
    return this.#directory(operation, posix.dirname(path), path)
  }

  /** The folder `path`; `shownPath` is what an error names. */
  #directory(operation: string, path: string, shownPath = path): MemoryDirectory {
    let node: MemoryNode = this.#root
    for (const name of namesOf(path)) {
      const next: MemoryNode | undefined = node.entries.get(name)
      if (next === undefined) throw new FileError(operation, shownPath, 'ENOENT')
      if (next.kind === 'file') throw new FileError(operation, shownPath, 'ENOTDIR')
      node = next
    }
    return node
  }
}

class MemoryHandle implements FileHandle {
  readonly path: string
  readonly #mode: OpenMode
  readonly #file: MemoryFile
  #isOpen: boolean = true

  constructor(path: string, mode: OpenMode, file: MemoryFile) {
    this.path = path
    this.#mode = mode
    this.#file = file
  }

  sizeSync(): number {
    return this.#use('stat').content.sizeBytes
  }

  writeSync(chunks: readonly Uint8Array[], position: number): void {
    const { content } = this.#change('write')
    let at = position
    for (const chunk of chunks) {
      content.write(chunk, at)
      at += chunk.length
    }
  }

  async write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    this.writeSync(chunks, position)
  }

  readSync(target: Uint8Array, position: number): number {
    return this.#use('read').content.read(target, position)
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    return this.readSync(target, position)
  }

  async truncate(sizeBytes: number): Promise<void> {
    this.truncateSync(sizeBytes)
  }

  truncateSync(sizeBytes: number): void {
    this.#change('truncate').content.truncate(sizeBytes)
  }

  async sync(): Promise<void> {
    this.#use('sync')
  }

  async close(): Promise<void> {
    this.#use('close')
    this.#isOpen = false
  }

  closeSync(): void {
    this.#use('close')
    this.#isOpen = false
  }

  #use(operation: string): MemoryFile {
    if (!this.#isOpen) throw new FileError(operation, this.path, 'EBADF')
    return this.#file
  }

  #change(operation: string): MemoryFile {
    if (this.#mode === 'read') throw new FileError(operation, this.path, operation === 'write' ? 'EBADF' : 'EINVAL')
    const file = this.#use(operation)
    file.modifiedMs = Date.now()
    return file
  }
}

function newDirectory(): MemoryDirectory {
  return { kind: 'directory', entries: new Map() }
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '')
}
