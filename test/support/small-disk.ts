import { spawnSync } from 'node:child_process'
import { statfsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { temporaryFolder } from './temporary-folder.ts'

/** A file system of a few MiB in memory, at a path of its own. */
export class SmallDisk implements AsyncDisposable {
  readonly path: string
  readonly #parent: AsyncDisposable

  static async make(mebibytes: number): Promise<SmallDisk> {
    const folder = await temporaryFolder()
    const path = join(folder.path, 'disk')
    await mkdir(path)
    const fault = mount(['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path])
    if (fault === undefined) return new SmallDisk(path, folder)
    await folder[Symbol.asyncDispose]()
    throw new Error(fault)
  }

  private constructor(path: string, parent: AsyncDisposable) {
    this.path = path
    this.#parent = parent
  }

  resize(mebibytes: number): void {
    const fault = mount(['-o', `remount,size=${mebibytes}m`, this.path])
    if (fault !== undefined) throw new Error(fault)
  }

  /** Not one block is left. */
  async fill(): Promise<void> {
    const { bavail, bsize } = statfsSync(this.path)
    await writeFile(join(this.path, 'filler'), Buffer.alloc(bavail * bsize))
  }

  async empty(): Promise<void> {
    await rm(join(this.path, 'filler'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    spawnSync('umount', ['-l', this.path])
    await this.#parent[Symbol.asyncDispose]()
  }
}

/** A `describe` of tests that need a `SmallDisk`, which takes root. Where none can be made they are skipped, and a line says so. */
export async function describeWithSmallDisk(title: string, body: () => void): Promise<void> {
  const reason = await SmallDisk.make(1).then(
    async (disk) => void (await disk[Symbol.asyncDispose]()),
    (error: Error) => error.message,
  )
  if (reason === undefined) {
    describe(title, body)
    return
  }
  console.warn(`SKIPPED: ${title}: ${reason}`)
  test.skipIf(true)(title, () => {
    // Never runs: it is here so that the report counts what was left out.
  })
}

/** What went wrong; undefined when nothing did. */
function mount(args: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync('mount', args, { encoding: 'utf8' })
  return status === 0 ? undefined : `cannot mount a file system: ${(stderr || error?.message) ?? status}`
}
