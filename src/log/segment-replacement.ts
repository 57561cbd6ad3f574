import { join } from 'node:path'
import type { Offset } from '../base/index.ts'
import { scanBatches } from './batch-scan.ts'
import type { LogEnvironment } from './environment.ts'
import { StorageError } from './errors.ts'
import { type Segment, segmentExtensions, segmentFileName } from './segment.ts'

/** The log of a segment in the making. */
export const cleanedSuffix = '.cleaned'
/** The log of a segment that is whole and durable, and replaces all that begin within it. */
const swapSuffix = '.swap'

/**
 * Puts `cleaned`, whose log is durable under its name with `.cleaned`, in the place of the segments of which it is what
 * remains. Answers files that are to be removed later.
 *
 * The names say at every moment what a start has to do: `.cleaned` files go; for a `.swap` file, what follows here is done
 * to its end. Each step is durable before the next begins.
 */
export async function replaceSegments(
  environment: LogEnvironment,
  old: readonly Segment[],
  cleaned: Segment,
): Promise<readonly string[]> {
  const { files } = environment.platform
  const { directory } = cleaned
  const { path } = cleaned.log
  await files.rename(`${path}${cleanedSuffix}`, `${path}${swapSuffix}`)
  await files.syncDirectory(directory)
  const renamed: string[] = []
  for (const segment of old) {
    renamed.push(...(await segment.renameToDeleted({ keepsSnapshot: segment.baseOffset === cleaned.baseOffset })))
  }
  await files.syncDirectory(directory)
  await files.rename(`${path}${swapSuffix}`, path)
  await cleaned.storeIndexes()
  await files.syncDirectory(directory)
  return renamed
}

/**
 * At the start: ends replacements that a crash interrupted. Indexes are rebuilt when someone asks for them. Throws
 * `StorageError` when the new segment is damaged, since the old ones may be gone.
 */
export async function finishReplacements(environment: LogEnvironment, directory: string): Promise<void> {
  const { files } = environment.platform
  const names = ((await files.list(directory)) ?? []).map(({ name }) => name)
  const bases = names
    .filter((name) => /^\d{20}\.(log|index|timeindex)$/.test(name))
    .map((name) => Number.parseInt(name, 10))
  for (const name of names.filter((name) => /^\d{20}\.log\.swap$/.test(name))) {
    const baseOffset = Number.parseInt(name, 10)
    const path = join(directory, name)
    const endOffset = await endOf(environment, path, baseOffset)
    const replaced = new Set(bases.filter((base) => base > baseOffset && base < endOffset)).add(baseOffset)
    for (const base of replaced) {
      for (const extension of segmentExtensions) {
        if (extension === 'snapshot' && base === baseOffset) continue
        await files.remove(join(directory, segmentFileName(base, extension)))
      }
    }
    await files.syncDirectory(directory)
    await files.rename(path, join(directory, segmentFileName(baseOffset, 'log')))
    await files.syncDirectory(directory)
    environment.logger.info({ directory, baseOffset, endOffset }, 'interrupted compaction ended')
  }
}

/** Where the last batch of the file at `path` ends; exclusive. */
async function endOf({ handles, buffers }: LogEnvironment, path: string, baseOffset: Offset): Promise<Offset> {
  const file = handles.file(path)
  let endOffset = baseOffset
  try {
    const to = file.sizeSync()
    const { fault } = await scanBatches({
      file,
      buffers,
      from: 0,
      to,
      verifyCrc: true,
      visit: (view) => {
        endOffset = view.lastOffset + 1
        return true
      },
    })
    if (fault !== undefined) throw new StorageError(`Compacted segment ${path} is damaged (${fault})`, path)
    return endOffset
  } finally {
    file.discard()
  }
}
