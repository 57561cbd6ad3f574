#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

// Both before anything else is loaded: the thread pool takes its size when it is first used, and the compile cache helps
// only with what comes after it. A pool of 4 would let slow disk syncs hold up every other file operation.
process.env.UV_THREADPOOL_SIZE ??= '16'
enableCompileCache()

const { run } = await import('./program.ts')
await run(process.argv.slice(2))
