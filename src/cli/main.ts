#!/usr/bin/env node
import nodeModule from 'node:module'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 22)) {
  process.stderr.write(`rookery: Node 22.22 or newer is needed, and this is Node ${process.versions.node}\n`)
  process.exit(2)
}

// Both before anything else is loaded: the thread pool takes its size when it is first used, and the compile cache helps
// only with what comes after it. A pool of 4 would let slow disk syncs hold up every other file operation.
process.env.UV_THREADPOOL_SIZE ??= '16'
nodeModule.enableCompileCache()

const { run } = await import('./program.ts')
await run(process.argv.slice(2))
