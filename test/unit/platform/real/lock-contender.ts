import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRealPlatform, DirectoryLockedError } from '../../../../src/platform/index.ts'

// Takes the lock of a folder again and again; prints how often it had it. Fails when another had it at the same time.
const [folder, rounds] = [process.argv[2]!, Number(process.argv[3])]
const { files, timers } = createRealPlatform()
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1))
let count = 0
while (count < rounds) {
  try {
    const lock = await files.lockDirectory(folder)
    writeFileSync(join(folder, 'owner'), String(process.pid), { flag: 'wx' })
    await new Promise((resolve) => timers.defer(() => resolve(undefined)))
    rmSync(join(folder, 'owner'))
    count++
    // The last time the lock stays, and names a process that is gone.
    if (count === rounds) process.kill(process.pid, 'SIGKILL')
    await lock.release()
  } catch (error) {
    if (!(error instanceof DirectoryLockedError)) throw error
    await pause()
  }
}
