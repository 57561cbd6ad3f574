import { constants, readFileSync } from 'node:fs'
import { copyFile, link, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DirectoryLockedError, FileError, systemCodeOf } from '../errors.ts'
import type { DirectoryLock } from '../ports.ts'
import { fillWithRandomBytes } from './random-bytes.ts'

/**
 * A folder's lock is the file `.lock` inside it, which names its holder. Node has no flock, so a lock outlives a killed
 * process; it is then stale, and the next to come takes it over.
 *
 * Two that take over at once: whoever replaces a stale lock must first hold the lock `.lock.<token of the stale one>`, taken by
 * these same rules. Only its holder may replace a lock with that token, so that what it has read there still holds when it
 * replaces it; a late-comer finds another token and starts again.
 *
 * It sees processes of this machine and this PID namespace: two containers that share a folder do not see each other.
 */
interface Holder {
  readonly pid: number
  /** Clock ticks from boot to the start of the process; empty where the system doesn't tell. Tells a PID used again. */
  readonly startTime: string
  /** Changes with each boot; empty where the system doesn't tell. */
  readonly bootId: string
  /** Different for each lock ever taken. */
  readonly token: string
}

const lockName = '.lock'
/** A lock file without a readable holder, left by a loss of power or just being written, is stale at this age. */
const unreadableStaleMs = 1000

/** Folders locked by this process, by real path. In the process, not in the platform: two platforms share the disk. */
const lockedHere = new Set<string>()

export async function lockDirectory(path: string): Promise<DirectoryLock> {
  const folder = await attempt(path, () => realpath(path))
  if (lockedHere.has(folder)) throw new DirectoryLockedError(path, process.pid, true)
  lockedHere.add(folder)
  const lockPath = join(folder, lockName)
  try {
    const holder = await attempt(path, () => acquire(path, lockPath))
    await attempt(path, () => removeLeftovers(folder))
    return {
      release: async () => {
        if (!lockedHere.delete(folder)) return
        await attempt(path, async () => {
          const current = await readHolder(lockPath)
          if (current !== 'missing' && current !== 'unreadable' && current.token === holder.token) await rm(lockPath)
        })
      },
    }
  } catch (error) {
    lockedHere.delete(folder)
    throw error
  }
}

/** The process that holds the lock of a folder at the moment; undefined when none does. Changes nothing. */
export async function directoryLockHolder(path: string): Promise<number | undefined> {
  const holder = await attempt(path, () => readHolder(join(path, lockName)))
  return typeof holder === 'object' && isAlive(holder) ? holder.pid : undefined
}

/** Makes `lockPath` name this process. Throws `DirectoryLockedError` when it names another one that is alive. */
async function acquire(folder: string, lockPath: string): Promise<Holder> {
  const token = Buffer.alloc(9)
  fillWithRandomBytes(token)
  const mine: Holder = {
    pid: process.pid,
    startTime: startTimeOf(process.pid),
    bootId: bootId(),
    token: token.toString('hex'),
  }
  // The file is complete before it gets the lock's name: nobody ever reads half a holder.
  const draft = `${lockPath}.${mine.token}`
  try {
    await writeFile(draft, JSON.stringify(mine)) // on a full disk it is made, and stays empty
    for (;;) {
      if (await linkNew(draft, lockPath)) return mine
      const found = await readHolder(lockPath)
      if (found === 'missing') continue
      if (found === 'unreadable') {
        if (!(await isOlderThan(lockPath, unreadableStaleMs))) {
          await sleep(20)
          continue
        }
      } else if (isAlive(found)) {
        throw new DirectoryLockedError(folder, found.pid, found.pid === process.pid)
      }
      const guardPath = `${lockPath}.${found === 'unreadable' ? found : found.token}-takeover`
      await acquire(folder, guardPath)
      try {
        const still = await readHolder(lockPath)
        const isSame =
          found === 'unreadable' ? still === found : typeof still === 'object' && still.token === found.token
        if (!isSame) continue
        await rename(draft, lockPath)
        return mine
      } finally {
        await rm(guardPath, { force: true })
      }
    }
  } finally {
    await rm(draft, { force: true })
  }
}

/** Gives `from` the name `to` as well; false when `to` is there already. */
async function linkNew(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'].includes(systemCodeOf(error))) throw error
  }
  // A file system without hard links.
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL)
    return true
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false
    throw error
  }
}

async function readHolder(path: string): Promise<Holder | 'missing' | 'unreadable'> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return 'missing'
    throw error
  }
  try {
    const { pid, startTime, bootId, token } = JSON.parse(text) as Record<string, unknown>
    const isWhole =
      Number.isSafeInteger(pid) &&
      typeof startTime === 'string' &&
      typeof bootId === 'string' &&
      typeof token === 'string' &&
      /^[0-9a-f]+$/.test(token)
    return isWhole ? { pid: pid as number, startTime, bootId, token } : 'unreadable'
  } catch {
    return 'unreadable' // not JSON: cut short by a loss of power, or not ours
  }
}

function isAlive(holder: Holder): boolean {
  const thisBoot = bootId()
  if (holder.bootId !== '' && thisBoot !== '' && holder.bootId !== thisBoot) return false
  if (holder.pid <= 0) return false
  try {
    process.kill(holder.pid, 0)
  } catch (error) {
    if (systemCodeOf(error) === 'ESRCH') return false // EPERM: alive, of another user
  }
  const startTime = startTimeOf(holder.pid)
  return holder.startTime === '' || startTime === '' || startTime === holder.startTime
}

/** Field 22 of /proc/<pid>/stat; empty where there is none. */
function startTimeOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Field 2 is the program's name in parentheses and may hold spaces: count from its end.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return '' // no /proc, or the process just ended
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return '' // not Linux
  }
}

/** Drafts and takeover locks of processes that were killed while they took the lock. Called by the lock's holder only. */
async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${lockName}.`)) continue
    const path = join(folder, name)
    const holder = await readHolder(path)
    if (holder === 'missing') continue
    const isLeft = holder === 'unreadable' ? await isOlderThan(path, unreadableStaleMs) : !isAlive(holder)
    if (isLeft) await rm(path, { force: true })
  }
}

/** True when the file is gone, too. */
async function isOlderThan(path: string, ageMs: number): Promise<boolean> {
  try {
    return Math.abs(Date.now() - (await stat(path)).mtimeMs) >= ageMs
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return true
    throw error
  }
}

async function attempt<T>(folder: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body()
  } catch (error) {
    if (error instanceof DirectoryLockedError) throw error
    throw new FileError('lock', folder, systemCodeOf(error), { cause: error })
  }
}
