import { parentPort } from 'node:worker_threads'
import { createRealPlatform, type DirectoryLock, DirectoryLockedError } from '../../../../src/platform/index.ts'

// Tries to lock a folder at the same moment as the other racers; tells how it went, and releases when told to.
const { files } = createRealPlatform()
let lock: DirectoryLock | undefined
parentPort!.on('message', async (message: 'release' | { folder: string; start: Int32Array; count: number }) => {
  if (message === 'release') {
    await lock?.release()
    lock = undefined
    parentPort!.postMessage('released')
    return
  }
  const { folder, start, count } = message
  Atomics.add(start, 0, 1)
  while (Atomics.load(start, 0) < count) {
    // All are ready within microseconds of each other.
  }
  try {
    lock = await files.lockDirectory(folder)
    parentPort!.postMessage('locked')
  } catch (error) {
    parentPort!.postMessage(error instanceof DirectoryLockedError ? 'refused' : String(error))
  }
})
