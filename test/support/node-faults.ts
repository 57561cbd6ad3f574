/**
 * Loaded into the process of a node before anything else (`node --import`), where a test is to do to it what a test
 * can't do from outside:
 *
 * - `FAULTS_SOURCE_ADDRESS`: every connection that the process makes comes from this local address.
 * - `FAULTS_FILE`: a file with a `DiskFault`, or nothing, that is looked at every few milliseconds. File operations of the platform, and
 *   batches of Level, then fail with that code, or take so much longer.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'

/** What the disk of a node does from now on. */
export interface DiskFault {
  /** Of what is written: 'EIO', 'ENOSPC'; undefined when nothing fails. */
  readonly code?: string
  /** Where; a part of the path. Everywhere when it is empty. */
  readonly path: string
  /** The part of operations that fail, from 0 to 1. */
  readonly share: number
  /** How much longer each sync takes. */
  readonly slowMs: number
}

const { FAULTS_SOURCE_ADDRESS: sourceAddress, FAULTS_FILE: faultsFile } = process.env
if (sourceAddress !== undefined && sourceAddress !== '') connectFrom(sourceAddress)
if (faultsFile !== undefined && faultsFile !== '') await failAsToldBy(faultsFile)

function connectFrom(localAddress: string): void {
  const connect = Socket.prototype.connect as (this: Socket, ...args: unknown[]) => Socket
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    // Called by net.connect with its arguments as one array, with the options first.
    const list = Array.isArray(args[0]) ? (args[0] as unknown[]) : args
    const [options] = list
    if (typeof options === 'object' && options !== null && 'port' in options) {
      Object.assign(options, { localAddress, family: 4 })
    }
    return connect.apply(this, args)
  } as Socket['connect']
}

async function failAsToldBy(file: string): Promise<void> {
  const originals = { ...fs }
  let text = ''
  let fault: DiskFault | undefined
  const look = () => {
    let now = ''
    try {
      now = originals.readFileSync(file, 'utf8')
    } catch {
      // There is none.
    }
    if (now === text) return
    text = now
    fault = now === '' ? undefined : (JSON.parse(now) as DiskFault)
  }
  look()
  setInterval(look, 10).unref()

  /** The code with which an operation on `path` is to fail. */
  const failing = (path: string): string | undefined =>
    fault?.code !== undefined && path.includes(fault.path) && Math.random() < fault.share ? fault.code : undefined
  const errorOf = (code: string, syscall: string, path: string) =>
    Object.assign(new Error(`${code}: injected, ${syscall} '${path}'`), { code, errno: -5, syscall, path })
  const pathOf = (fd: unknown): string => {
    try {
      return originals.readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  }

  const patched = fs as unknown as Record<string, (...args: never[]) => unknown>
  /** The call with its callback at the end fails, or is slow. */
  const wrap = (name: string, pathAt: (first: unknown) => string, isSlow: boolean) => {
    const original = patched[name] as (...args: unknown[]) => unknown
    patched[name] = ((...args: unknown[]) => {
      if (fault === undefined) return original(...args)
      const path = pathAt(args[0])
      const code = failing(path)
      const slowMs = isSlow && path.includes(fault.path) ? fault.slowMs : 0
      const done = args.at(-1) as (error: unknown) => void
      if (code !== undefined) setTimeout(() => done(errorOf(code, name, path)), slowMs)
      else if (slowMs > 0) setTimeout(() => original(...args), slowMs)
      else return original(...args)
      return undefined
    }) as (...args: never[]) => unknown
  }
  const wrapSync = (name: string, pathAt: (first: unknown) => string) => {
    const original = patched[name] as (...args: unknown[]) => unknown
    patched[name] = ((...args: unknown[]) => {
      if (fault === undefined) return original(...args)
      const path = pathAt(args[0])
      const code = failing(path)
      if (code !== undefined) throw errorOf(code, name, path)
      return original(...args)
    }) as (...args: never[]) => unknown
  }
  const itself = (first: unknown) => `${first as string}`
  for (const name of ['fsync', 'fdatasync']) wrap(name, pathOf, true)
  for (const name of ['write', 'writev', 'ftruncate']) wrap(name, pathOf, false)
  for (const name of ['rename', 'mkdir']) wrap(name, itself, false)
  for (const name of ['writeSync', 'writevSync', 'ftruncateSync']) wrapSync(name, pathOf)
  wrapSync('mkdirSync', itself)
  syncBuiltinESMExports()

  // Level writes by itself, past node:fs.
  const { Level } = await import('level')
  type Batch = (this: { readonly location: string }, ...args: unknown[]) => Promise<void>
  const prototype = Level.prototype as unknown as { batch: Batch }
  const { batch } = prototype
  prototype.batch = async function (...args: unknown[]): Promise<void> {
    const code = failing(this.location)
    if (code !== undefined) throw errorOf(code, 'batch', this.location)
    if (fault !== undefined && fault.slowMs > 0 && this.location.includes(fault.path)) {
      const { slowMs } = fault
      await new Promise((resolve) => setTimeout(resolve, slowMs))
    }
    return await batch.apply(this, args)
  }
}
