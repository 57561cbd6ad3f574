import { createRealPlatform } from '../../../../src/platform/index.ts'

// Locks a folder, says so, and holds the lock until it is killed.
await createRealPlatform().files.lockDirectory(process.argv[2]!)
process.stdout.write('locked\n')
setInterval(() => {}, 1000)
