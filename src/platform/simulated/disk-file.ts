import { FileContent } from '../file-content.ts'
import type { Prng } from './prng.ts'

/**
 * A change that no sync has covered. It can be undone: what the file was before it is what the file is now, with the changes
 * undone from the newest back. So a sync only forgets changes, and a crash costs work for the unsynced bytes alone.
 */
type Change =
  | {
      readonly kind: 'write'
      readonly position: number
      readonly length: number
      readonly oldSizeBytes: number
      /** What was at `position`; shorter than `length` where the file ended. */
      readonly overwritten: Buffer | undefined
    }
  | {
      readonly kind: 'truncate'
      readonly sizeBytes: number
      readonly oldSizeBytes: number
      /** What was cut off. */
      readonly removed: Buffer | undefined
    }

/** A file on the simulated disk: its content as the page cache has it, and what of that a crash may take away. */
export class DiskFile {
  readonly kind = 'file'
  modifiedMs = 0
  readonly #content = new FileContent()
  readonly #unsynced: Change[] = []
  /** Changes that were synced, which left `#unsynced` at its front. */
  #syncedCount = 0
  /** A sync failed: the system drops the dirty pages and calls them clean. */
  #isDoomed: boolean = false

  get sizeBytes(): number {
    return this.#content.sizeBytes
  }

  /** True while a crash could change the file. */
  get isDirty(): boolean {
    return this.#unsynced.length > 0
  }

  read(target: Uint8Array, position: number): number {
    return this.#content.read(target, position)
  }

  write(chunks: readonly Uint8Array[], length: number, position: number): void {
    if (length === 0) return
    const content = this.#content
    const oldSizeBytes = content.sizeBytes
    const overwritten = position < oldSizeBytes ? content.copy(position, length) : undefined
    this.#unsynced.push({ kind: 'write', position, length, oldSizeBytes, overwritten })
    for (const chunk of chunks) {
      content.write(chunk, position)
      position += chunk.length
    }
  }

  truncate(sizeBytes: number): void {
    const content = this.#content
    const oldSizeBytes = content.sizeBytes
    if (sizeBytes === oldSizeBytes) return
    const removed = sizeBytes < oldSizeBytes ? content.copy(sizeBytes, oldSizeBytes - sizeBytes) : undefined
    this.#unsynced.push({ kind: 'truncate', sizeBytes, oldSizeBytes, removed })
    content.truncate(sizeBytes)
  }

  /** Marks what a sync that starts now will cover. */
  syncMark(): number {
    return this.#syncedCount + this.#unsynced.length
  }

  /** All changes before `mark` are durable. After a failed sync nothing of this file is, ever: a later sync is not to be believed. */
  completeSync(mark: number): void {
    const count = mark - this.#syncedCount
    if (this.#isDoomed || count <= 0) return
    this.#unsynced.splice(0, count)
    this.#syncedCount = mark
  }

  failSync(): void {
    this.#isDoomed = true
  }

  /**
   * Power is lost: each unsynced change is kept, lost or, for a write, torn at some byte. A lost write below a kept one leaves
   * what was there before, or zeros.
   */
  crash(random: Prng): void {
    const changes = this.#unsynced
    const content = this.#content
    const keptBytes = fates(changes, random)
    const writes: (Buffer | undefined)[] = []
    for (let i = changes.length - 1; i >= 0; i--) {
      const change = changes[i]!
      if (change.kind === 'write') {
        if (keptBytes[i]! > 0) writes[i] = content.copy(change.position, keptBytes[i]!)
        content.truncate(change.oldSizeBytes)
        if (change.overwritten !== undefined) content.write(change.overwritten, change.position)
      } else {
        content.truncate(change.oldSizeBytes)
        if (change.removed !== undefined) content.write(change.removed, change.sizeBytes)
      }
    }
    for (let i = 0; i < changes.length; i++) {
      const change = changes[i]!
      if (change.kind === 'truncate') {
        if (keptBytes[i]! > 0) content.truncate(change.sizeBytes)
      } else if (writes[i] !== undefined) {
        content.write(writes[i]!, change.position)
      }
    }
    this.#syncedCount += changes.length
    changes.length = 0
    this.#isDoomed = false
  }
}

/**
 * How many bytes of each change survive: all of a write, none, or some; 0 or 1 for a truncation. Clean cuts have a share of
 * their own, since with many changes independent draws would never make one.
 */
function fates(changes: readonly Change[], random: Prng): number[] {
  const whole = (change: Change): number => (change.kind === 'write' ? change.length : 1)
  const torn = (change: Change): number => (change.kind === 'write' ? random.between(0, change.length) : 0)
  const style = random.between(0, 9)
  if (style < 2) return changes.map(() => 0)
  if (style < 4) return changes.map(whole)
  if (style < 7) {
    const cut = random.between(0, changes.length - 1)
    return changes.map((change, i) => (i < cut ? whole(change) : i === cut ? torn(change) : 0))
  }
  return changes.map((change) => {
    const fate = random.between(0, 99)
    return fate < 45 ? whole(change) : fate < 80 ? 0 : torn(change)
  })
}
