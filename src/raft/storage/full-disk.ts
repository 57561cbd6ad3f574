import { deferred } from '../../base/index.ts'
import { FileError, isDiskFull, pause, type Timers } from '../../platform/index.ts'
import { RaftStorageError } from './errors.ts'
import type { KeyValueStore } from './key-value-store.ts'

/** How a storage comes back to its disk after that was full. */
export interface FullDiskRecovery {
  /** Whether there is room again, for what is written and for what opening the store takes. */
  hasRoom(): Promise<boolean>
  /**
   * Opens the store anew, after the one before was closed, with all that was written to it, synced or not. What it shows is on its way to
   * the disk in files of its own: nothing rests on a file that a write or sync failed on. Throws when there is no room after all.
   */
  reopenStore(): Promise<KeyValueStore>
}

/** What the member of the quorum makes of a full disk. */
export interface FullDiskPolicy {
  /** Whether what can't be written waits for room, which stops the member; otherwise the write fails, and it ends. */
  mayWait(): boolean
  /** It waits from now on. */
  onFull(error: unknown): void
  /** It goes on. */
  onRoom(): void
}

/** Between two looks whether there is room. */
const retryMs = 1000

/** Waits until a full disk has room again, where that may be waited for. */
export class FullDisk {
  readonly #recovery: FullDiskRecovery | undefined
  readonly #timers: Timers
  #policy: FullDiskPolicy | undefined
  readonly #stopped = deferred<void>()
  #isStopped: boolean = false
  #isWaiting: boolean = false

  /** Without `recovery` nothing is waited for. */
  constructor(recovery: FullDiskRecovery | undefined, timers: Timers) {
    this.#recovery = recovery
    this.#timers = timers
  }

  get isWaiting(): boolean {
    return this.#isWaiting
  }

  setPolicy(policy: FullDiskPolicy): void {
    this.#policy = policy
  }

  /** Nothing waits from now on, and what waits fails. */
  stop(): void {
    this.#isStopped = true
    this.#stopped.resolve()
  }

  /**
   * Whether `untilRoom` is to be called, after which the same may be written again. Never for a file's failed sync, whatever its reason:
   * the system may show from then on what the disk doesn't have.
   */
  mayWaitAfter(error: unknown): boolean {
    if (!isDiskFull(error) || (error instanceof FileError && error.operation === 'sync')) return false
    return this.#recovery !== undefined && !this.#isStopped && this.#policy?.mayWait() === true
  }

  /**
   * Closes `store`, which may hold half of what was written and must take no more, and opens it anew when there is room. Throws
   * `error` when that is not waited for any longer.
   */
  async untilRoom(store: KeyValueStore, error: unknown): Promise<KeyValueStore> {
    this.#isWaiting = true
    this.#policy?.onFull(error)
    try {
      await store.close()
      for (;;) {
        await Promise.race([pause(this.#timers, retryMs), this.#stopped.promise])
        if (this.#isStopped) throw error
        const reopened = await this.#reopen()
        if (reopened === undefined) continue
        this.#policy?.onRoom()
        return reopened
      }
    } finally {
      this.#isWaiting = false
    }
  }

  async #reopen(): Promise<KeyValueStore | undefined> {
    if (this.#recovery === undefined || !(await this.#recovery.hasRoom())) return undefined
    try {
      return await this.#recovery.reopenStore()
    } catch (error) {
      if (isDiskFull(error) || (error instanceof RaftStorageError && error.isDiskFull)) return undefined
      throw error
    }
  }
}
