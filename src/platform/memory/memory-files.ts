import { posix } from 'node:path'
import { DirectoryLockedError, FileError } from '../errors.ts'
import { FileContent } from '../file-content.ts'
import type { DirectoryEntry, DirectoryLock, FileHandle, FileStat, Files, OpenMode } from '../ports.ts'

/** What `space` tells: a memory disk has no size of its own. */
const claimedBytes = 2 ** 40

interface MemoryFile {
  readonly kind: 'file'
  readonly content: FileContent
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
    if (found !== undefined) return new MemoryHandle(path, found.content)
    if (mode !== 'create') throw new FileError('open', path, 'ENOENT')
    const file: MemoryFile = { kind: 'file', content: new FileContent() }
    this.#parent('open', path).entries.set(posix.basename(path), file)
    return new MemoryHandle(path, file.content)
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
    if (found === undefined) return undefined
    if (found.kind === 'file') throw new FileError('list', path, 'ENOTDIR')
    return [...found.entries].map(([name, { kind }]) => ({ name, kind })).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async stat(path: string): Promise<FileStat | undefined> {
    const found = this.#find(path)
    if (found === undefined) return undefined
    return { sizeBytes: found.kind === 'file' ? found.content.sizeBytes : 0, modifiedMs: 0, kind: found.kind }
  }

  async makeDirectory(path: string): Promise<void> {
    let directory = this.#root
    for (const name of namesOf(path)) {
      let next = directory.entries.get(name)
      if (next === undefined) {
        next = newDirectory()
        directory.entries.set(name, next)
      }
      if (next.kind === 'file') throw new FileError('make folder', path, 'EEXIST')
      directory = next
    }
  }

  async rename(from: string, to: string): Promise<void> {
    const node = this.#find(from)
    if (node === undefined) throw new FileError('rename', from, 'ENOENT')
    this.#parent('rename', to).entries.set(posix.basename(to), node)
    if (posix.normalize(from) !== posix.normalize(to)) {
      this.#parent('rename', from).entries.delete(posix.basename(from))
    }
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
    if (this.#find(path)?.kind !== 'directory') throw new FileError('sync folder', path, 'ENOENT')
  }

  async lockDirectory(path: string): Promise<DirectoryLock> {
    if (this.#locked.has(path)) throw new DirectoryLockedError(path, process.pid, true)
    this.#locked.add(path)
    return { release: async () => void this.#locked.delete(path) }
  }

  async space(): Promise<{ freeBytes: number; totalBytes: number }> {
    return { freeBytes: claimedBytes, totalBytes: claimedBytes }
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
    const parent = this.#find(posix.dirname(path))
    if (parent?.kind !== 'directory') throw new FileError(operation, path, 'ENOENT')
    return parent
  }
}

class MemoryHandle implements FileHandle {
  readonly path: string
  readonly #content: FileContent

  constructor(path: string, content: FileContent) {
    this.path = path
    this.#content = content
  }

  sizeSync(): number {
    return this.#content.sizeBytes
  }

  writeSync(chunks: readonly Uint8Array[], position: number): void {
    let at = position
    for (const chunk of chunks) {
      this.#content.write(chunk, at)
      at += chunk.length
    }
  }

  async write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    this.writeSync(chunks, position)
  }

  readSync(target: Uint8Array, position: number): number {
    return this.#content.read(target, position)
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    return this.#content.read(target, position)
  }

  async truncate(sizeBytes: number): Promise<void> {
    this.#content.truncate(sizeBytes)
  }

  truncateSync(sizeBytes: number): void {
    this.#content.truncate(sizeBytes)
  }

  async sync(): Promise<void> {}

  async close(): Promise<void> {}
}

function newDirectory(): MemoryDirectory {
  return { kind: 'directory', entries: new Map() }
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '')
}
