import { assert } from '../../base/index.ts'
import { FileError } from '../errors.ts'
import type { DirectoryEntry } from '../ports.ts'
import { DiskFile } from './disk-file.ts'
import type { Prng } from './prng.ts'

/** One change of names: all of its steps become durable together. */
interface NameChange {
  readonly steps: readonly {
    readonly directory: DiskDirectory
    readonly name: string
    readonly node: DiskNode | undefined
  }[]
}

interface DiskDirectory {
  readonly kind: 'directory'
  /** What is there now. */
  readonly entries: Map<string, DiskNode>
  /** What a crash leaves in any case, and what `pending` may change. */
  readonly durable: Map<string, DiskNode>
  /** Changes of names here that no `syncDirectory` covered, oldest first. */
  pending: NameChange[]
}

type DiskNode = DiskFile | DiskDirectory

/** A call that is to fail. */
export interface DiskFault {
  /** The port's call: 'open', 'read', 'write', 'sync', 'truncate', 'rename', 'remove', 'list', 'make folder' ... */
  readonly operation: string
  /** The whole path, or a pattern in it; any when left out. */
  readonly path?: string | RegExp
  /** What the `FileError` carries. */
  readonly code: 'EIO' | 'ENOSPC' | 'EACCES' | 'EMFILE' | 'EROFS'
  /** Calls that match and are let through first; 0 when left out. */
  readonly skip?: number
  /** Calls that fail; 1 when left out. */
  readonly times?: number
}

/**
 * The disk of one host. It outlives crashes: `crash` takes away what was not synced.
 *
 * - Of a file's unsynced changes each is kept, lost or torn by itself (`DiskFile.crash`).
 * - Of a folder's unsynced names a prefix is kept, by the order of the changes, as journaling file systems do; different
 *   folders are independent. A rename happens whole or not at all, and in both folders or in neither.
 * - A file whose name is lost is gone, synced or not.
 *
 * `/data` and `/tmp` are there, durably, from the start.
 */
export class SimulatedDisk {
  /** ENOSPC past this many bytes of file content. */
  capacityBytes = 2 ** 40
  /** How long a sync takes, drawn uniformly. */
  syncUs: readonly [least: number, most: number] = [200, 1000]
  /** How long any other asynchronous call takes. */
  callUs: readonly [least: number, most: number] = [10, 100]
  readonly #random: Prng
  readonly #root: DiskDirectory = newDirectory()
  readonly #dirtyFiles = new Set<DiskFile>()
  readonly #dirtyDirectories = new Set<DiskDirectory>()
  #faults: { readonly fault: DiskFault; skip: number; times: number }[] = []
  #usedBytes = 0

  constructor(random: Prng) {
    this.#random = random
    this.#format()
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Makes calls fail that come from now on; the returned function takes it back. A failed write leaves some part of it in the file. */
  failNext(fault: DiskFault): () => void {
    const armed = { fault, skip: fault.skip ?? 0, times: fault.times ?? 1 }
    this.#faults.push(armed)
    return () => {
      this.#faults = this.#faults.filter((other) => other !== armed)
    }
  }

  /** Power is lost. */
  crash(): void {
    // Names first, by the prefix that each folder keeps; then content.
    const kept = new Map<DiskDirectory, number>()
    for (const directory of this.#dirtyDirectories) kept.set(directory, this.#keptNames(directory.pending.length))
    cutRenamesTogether(kept)
    for (const [directory, count] of kept) {
      for (let i = 0; i < count; i++) {
        for (const step of directory.pending[i]!.steps) {
          if (step.directory === directory) setName(directory.durable, step.name, step.node)
        }
      }
      directory.pending = []
      directory.entries.clear()
      for (const [name, node] of directory.durable) directory.entries.set(name, node)
    }
    this.#dirtyDirectories.clear()
    for (const file of this.#dirtyFiles) file.crash(this.#random)
    this.#dirtyFiles.clear()
    this.#faults = []
    this.#usedBytes = sizeOf(this.#root)
  }

  /** Another disk is in its place, which is empty. The host is down. */
  wipe(): void {
    this.#dirtyDirectories.clear()
    this.#dirtyFiles.clear()
    this.#faults = []
    this.#usedBytes = 0
    this.#format()
  }

  #format(): void {
    for (const name of ['data', 'tmp']) {
      const directory = newDirectory()
      this.#root.entries.set(name, directory)
      this.#root.durable.set(name, directory)
    }
  }

  /** The file at `path`; made when it is missing and `mayCreate`. */
  file(operation: string, path: string, mayCreate: boolean): DiskFile {
    const { directory, name } = this.#parent(operation, path)
    const node = directory.entries.get(name)
    if (node?.kind === 'directory') throw new FileError(operation, path, 'EISDIR')
    if (node !== undefined) return node
    if (!mayCreate) throw new FileError(operation, path, 'ENOENT')
    const file = new DiskFile()
    this.#change([{ directory, name, node: file }])
    return file
  }

  /** Undefined when there is nothing at `path`. */
  find(path: string): DiskNode | undefined {
    let node: DiskNode | undefined = this.#root
    for (const name of namesOf(path)) {
      if (node?.kind !== 'directory') return undefined
      node = node.entries.get(name)
    }
    return node
  }

  write(file: DiskFile, path: string, chunks: readonly Uint8Array[], position: number): void {
    let length = 0
    for (const chunk of chunks) length += chunk.length
    const fault = this.#takeFault('write', path)
    const growth = Math.max(0, position + length - file.sizeBytes)
    const free = Math.max(0, this.capacityBytes - this.#usedBytes)
    const code = fault ?? (growth > free ? 'ENOSPC' : undefined)
    if (code !== undefined) {
      const fits = Math.max(0, length - Math.max(0, growth - free))
      const written = Math.min(fits, code === 'ENOSPC' ? fits : this.#random.between(0, length))
      const joined = Buffer.concat(chunks).subarray(0, written)
      this.#resize(file, () => file.write([joined], written, position))
      throw new FileError('write', path, code)
    }
    this.#resize(file, () => file.write(chunks, length, position))
  }

  truncate(file: DiskFile, path: string, sizeBytes: number): void {
    this.checkFault('truncate', path)
    if (sizeBytes - file.sizeBytes > this.capacityBytes - this.#usedBytes) {
      throw new FileError('truncate', path, 'ENOSPC')
    }
    this.#resize(file, () => file.truncate(sizeBytes))
  }

  completeSync(file: DiskFile, path: string, mark: number): void {
    const code = this.#takeFault('sync', path)
    if (code !== undefined) {
      file.failSync()
      throw new FileError('sync', path, code)
    }
    file.completeSync(mark)
    if (!file.isDirty) this.#dirtyFiles.delete(file)
  }

  list(path: string): DirectoryEntry[] | undefined {
    const node = this.find(path)
    if (node?.kind !== 'directory') return undefined
    const entries: DirectoryEntry[] = [...node.entries].map(([name, { kind }]) => ({ name, kind }))
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  makeDirectory(path: string): void {
    let directory = this.#root
    const names = namesOf(path)
    for (const [i, name] of names.entries()) {
      let next = directory.entries.get(name)
      if (next === undefined) {
        next = newDirectory()
        this.#change([{ directory, name, node: next }])
      }
      if (next.kind === 'file') throw new FileError('make folder', path, i < names.length - 1 ? 'ENOTDIR' : 'EEXIST')
      directory = next
    }
  }

  rename(from: string, to: string): void {
    const source = this.#parent('rename', from)
    const target = this.#parent('rename', to)
    const node = source.directory.entries.get(source.name)
    if (node === undefined) throw new FileError('rename', from, 'ENOENT')
    const replaced = target.directory.entries.get(target.name)
    if (replaced === node) return
    if (to.startsWith(`${from}/`)) throw new FileError('rename', from, 'EINVAL')
    if (replaced?.kind === 'directory') {
      if (node.kind !== 'directory') throw new FileError('rename', from, 'EISDIR')
      if (replaced.entries.size > 0) throw new FileError('rename', from, 'ENOTEMPTY')
    } else if (replaced !== undefined) {
      if (node.kind === 'directory') throw new FileError('rename', from, 'ENOTDIR')
      this.#usedBytes -= replaced.sizeBytes
    }
    this.#change([
      { ...source, node: undefined },
      { ...target, node },
    ])
  }

  remove(path: string): void {
    const { directory, name } = this.#parent('remove', path, true)
    const node = directory?.entries.get(name)
    if (directory === undefined || node === undefined) return
    if (node.kind === 'directory') throw new FileError('remove', path, 'EISDIR')
    this.#usedBytes -= node.sizeBytes
    this.#change([{ directory, name, node: undefined }])
  }

  removeTree(path: string): void {
    const node = this.find(path)
    if (node?.kind === 'directory') {
      for (const name of [...node.entries.keys()]) this.removeTree(`${path}/${name}`)
      const { directory, name } = this.#parent('remove', path)
      this.#change([{ directory, name, node: undefined }])
    } else if (node !== undefined) {
      this.remove(path)
    }
  }

  syncDirectory(path: string): void {
    const node = this.find(path)
    if (node === undefined) throw new FileError('sync', path, 'ENOENT')
    if (node.kind !== 'directory') throw new FileError('sync', path, 'ENOTDIR')
    this.#commit(node, node.pending.length)
  }

  /** Throws when a fault was armed for this call. */
  checkFault(operation: string, path: string): void {
    const code = this.#takeFault(operation, path)
    if (code !== undefined) throw new FileError(operation, path, code)
  }

  #takeFault(operation: string, path: string): string | undefined {
    for (const armed of this.#faults) {
      const { fault } = armed
      if (fault.operation !== operation) continue
      if (typeof fault.path === 'string' ? fault.path !== path : fault.path?.test(path) === false) continue
      if (armed.skip-- > 0) continue
      if (--armed.times <= 0) this.#faults = this.#faults.filter((other) => other !== armed)
      return fault.code
    }
    return undefined
  }

  #resize(file: DiskFile, body: () => void): void {
    const before = file.sizeBytes
    body()
    this.#usedBytes += file.sizeBytes - before
    if (file.isDirty) this.#dirtyFiles.add(file)
  }

  /** Changes names now, and durably once their folders are synced. */
  #change(steps: NameChange['steps']): void {
    const change: NameChange = { steps }
    for (const { directory, name, node } of steps) {
      setName(directory.entries, name, node)
      if (directory.pending.at(-1) !== change) directory.pending.push(change)
      this.#dirtyDirectories.add(directory)
    }
  }

  /** Makes the first `count` pending changes of `directory` durable, and what other folders need for their halves of renames. */
  #commit(directory: DiskDirectory, count: number): void {
    const changes = directory.pending.slice(0, count)
    directory.pending = directory.pending.slice(count)
    if (directory.pending.length === 0) this.#dirtyDirectories.delete(directory)
    for (const change of changes) {
      for (const step of change.steps) {
        if (step.directory === directory) {
          setName(directory.durable, step.name, step.node)
        } else {
          const at = step.directory.pending.indexOf(change)
          if (at >= 0) this.#commit(step.directory, at + 1)
        }
      }
    }
  }

  #keptNames(count: number): number {
    const style = this.#random.between(0, 9)
    return style < 3 ? 0 : style < 6 ? count : this.#random.between(0, count)
  }

  #parent(operation: string, path: string): { directory: DiskDirectory; name: string }
  #parent(operation: string, path: string, mayMiss: true): { directory: DiskDirectory | undefined; name: string }
  #parent(operation: string, path: string, mayMiss = false): { directory: DiskDirectory | undefined; name: string } {
    const names = namesOf(path)
    const name = names.pop()
    assert(name !== undefined, 'the root of a disk is not changed')
    let directory: DiskNode | undefined = this.#root
    for (const parent of names) {
      directory = directory?.kind === 'directory' ? directory.entries.get(parent) : undefined
    }
    if (directory?.kind === 'directory') return { directory, name }
    if (mayMiss) return { directory: undefined, name }
    throw new FileError(operation, path, directory === undefined ? 'ENOENT' : 'ENOTDIR')
  }
}

function newDirectory(): DiskDirectory {
  return { kind: 'directory', entries: new Map(), durable: new Map(), pending: [] }
}

function setName(names: Map<string, DiskNode>, name: string, node: DiskNode | undefined): void {
  if (node === undefined) names.delete(name)
  else names.set(name, node)
}

/** Lowers the prefixes until each rename between two folders is in both or in neither. */
function cutRenamesTogether(kept: Map<DiskDirectory, number>): void {
  for (let isStable = false; !isStable; ) {
    isStable = true
    for (const [directory, count] of kept) {
      const cut = directory.pending
        .slice(0, count)
        .findIndex((change) =>
          change.steps.some(
            (step) =>
              step.directory !== directory && step.directory.pending.indexOf(change) >= (kept.get(step.directory) ?? 0),
          ),
        )
      if (cut < 0) continue
      kept.set(directory, cut)
      isStable = false
    }
  }
}

function sizeOf(node: DiskNode): number {
  if (node.kind === 'file') return node.sizeBytes
  let total = 0
  for (const child of node.entries.values()) total += sizeOf(child)
  return total
}

function namesOf(path: string): string[] {
  assert(path.startsWith('/'), 'a path is absolute')
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  assert(!names.includes('..'), 'a path is plain')
  return names
}
