import nodeModule from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/index.ts'
import type { ThreadProgram } from '../ports.ts'
import type { ThreadStart } from './threads.ts'

// What a thread runs first: it loads the module of its program, and hands on to it. What fails here ends the thread.
const port = parentPort
assert(port !== null, 'runs as a worker only')
const { module, name, input, compileCache } = workerData as ThreadStart

if (compileCache !== undefined) nodeModule.enableCompileCache(compileCache)
const exported: Record<string, unknown> = await import(module)
const program = exported[name] as Partial<ThreadProgram<unknown>> | undefined
assert(typeof program?.run === 'function', `${module} exports no program ${name}`)
program.run(
  {
    post: (message, moved = []) => port.postMessage(message, moved),
    onMessage: (listener) => {
      port.on('message', listener)
    },
  },
  input,
)
