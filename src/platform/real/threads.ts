import nodeModule from 'node:module'
import { dirname } from 'node:path'
import { errorOf } from '../../base/index.ts'
import type { Thread, ThreadProgram, Threads } from '../ports.ts'
import { moduleExtension } from './module-extension.ts'

/** What a thread begins with. */
export interface ThreadStart {
  readonly module: string
  readonly name: string
  readonly input: unknown
  /** Of whoever starts it, where it has one: the thread loads much of the same. */
  readonly compileCache: string | undefined
}

/** Worker threads of Node, which is asked for them with the first. */
export function createRealThreads(): Threads {
  return { start: startThread }
}

function startThread<Input>({ module, name }: ThreadProgram<Input>, input: Input): Thread {
  const { Worker } = process.getBuiltinModule('node:worker_threads')
  const cacheOfVersion = nodeModule.getCompileCacheDir()
  const compileCache = cacheOfVersion === undefined ? undefined : dirname(cacheOfVersion)
  const worker = new Worker(new URL(`./thread-main${moduleExtension}`, import.meta.url), {
    execArgv: preloads(process.execArgv),
    name,
    workerData: { module, name, input, compileCache } satisfies ThreadStart,
  })
  let error: Error | undefined
  worker.on('error', (cause) => {
    error = errorOf(cause)
  })
  return {
    post: (message, moved = []) => worker.postMessage(message, moved),
    onMessage: (listener) => {
      worker.on('message', listener)
    },
    onEnd: (listener) => {
      worker.on('exit', () => listener(error))
    },
    stop: async () => {
      await worker.terminate()
    },
  }
}

/**
 * Of a process's options those that load a module before everything: whatever that is for, threads need it as well. Other options are
 * the process's, and some of them are refused for a thread.
 */
export function preloads(options: readonly string[]): string[] {
  const names = ['--import', '--require', '-r']
  return options.flatMap((option, at) => {
    if (names.includes(option)) return options.slice(at, at + 2)
    return names.some((name) => option.startsWith(`${name}=`)) ? [option] : []
  })
}
