import { join } from 'node:path'
import type { Files } from './ports.ts'

/**
 * Replaces the file `name` in `directory`, which exists, as a whole: after a crash it holds the old content or the new one, never a
 * part. Durable when it resolves. Throws `FileError`. One call at a time for a file.
 */
export async function replaceFile(files: Files, directory: string, name: string, content: Uint8Array): Promise<void> {
  const path = join(directory, name)
  const temporary = `${path}.tmp`
  const handle = await files.open(temporary, 'create')
  try {
    await handle.truncate(0)
    await handle.write([content], 0)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await files.rename(temporary, path)
  await files.syncDirectory(directory)
}
