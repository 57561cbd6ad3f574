import { join } from 'node:path'
import type { Files } from './ports.ts'

const probeFile = '.probe'

/**
 * Whether `bytes` fit into `directory`, and as much again stays free, so that what was full is not full again at once. Tries it: of a
 * quota nothing else tells. False too when the disk has another fault: who asks, asks again later.
 */
export async function hasRoomFor(files: Files, directory: string, bytes: number): Promise<boolean> {
  const path = join(directory, probeFile)
  try {
    if ((await files.space(directory)).freeBytes < 2 * bytes) return false
    const handle = await files.open(path, 'create')
    try {
      await handle.write([Buffer.alloc(bytes)], 0)
      await handle.sync()
    } finally {
      await handle.close()
    }
    return true
  } catch {
    return false
  } finally {
    await files.remove(path).catch(() => {})
  }
}
