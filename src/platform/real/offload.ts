import type { Worker } from 'node:worker_threads'
import { assert } from '../../base/index.ts'
import { OffloadError } from '../errors.ts'
import type { Offload, OffloadTask } from '../ports.ts'
import { moduleExtension } from './module-extension.ts'

/** What the pool posts to a worker. One is under way in each worker at a time, so an answer needs no id. */
export interface OffloadRequest {
  readonly module: string
  readonly name: string
  readonly input: unknown
}

/** What a worker answers. */
export type OffloadAnswer = { readonly result: unknown } | { readonly error: string }

interface PendingTask extends OffloadRequest {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
}

interface PoolWorker {
  readonly thread: Worker
  task: PendingTask | undefined
  /** Stops the worker when it stays idle. */
  idleTimeout: NodeJS.Timeout | undefined
}

/** Two: one long task (a recovery) doesn't hold up the short ones, and the event loop keeps a core to itself on four. */
const maxWorkers = 2
/** An idle worker holds about 10 MB, and starting one takes 30 ms. */
const idleMs = 5000

/**
 * A pool of worker threads, started when they are needed and stopped when they are idle for a while. A worker keeps the
 * process alive only while it runs a task.
 * Tasks wait in the order they came; whoever offloads bounds what it has under way.
 */
export class RealOffload implements Offload {
  readonly #workers = new Set<PoolWorker>()
  readonly #waiting: PendingTask[] = []

  run<Input, Output>(task: OffloadTask<Input, Output>, input: Input): Promise<Output> {
    return new Promise<Output>((resolve, reject) => {
      this.#waiting.push({ module: task.module, name: task.name, input, resolve, reject })
      void this.#dispatch()
    })
  }

  async #dispatch(): Promise<void> {
    // Loaded with the first task: most nodes of most tests never have one.
    const threads = await import('node:worker_threads')
    for (const worker of this.#workers) if (worker.task === undefined) this.#next(worker)
    while (this.#waiting.length > 0 && this.#workers.size < maxWorkers) this.#next(this.#start(threads))
  }

  #start(threads: typeof import('node:worker_threads')): PoolWorker {
    const thread = new threads.Worker(new URL(`./offload-worker${moduleExtension}`, import.meta.url), { execArgv: [] })
    const worker: PoolWorker = { thread, task: undefined, idleTimeout: undefined }
    this.#workers.add(worker)
    thread.on('message', (answer: OffloadAnswer) => {
      const task = worker.task
      assert(task !== undefined, 'a worker answers only what it was asked')
      worker.task = undefined
      if ('error' in answer) task.reject(new OffloadError(answer.error))
      else task.resolve(answer.result as never)
      this.#next(worker)
    })
    let cause: unknown
    thread.on('error', (error) => {
      cause = error
    })
    thread.on('exit', (exitCode) => {
      this.#workers.delete(worker)
      const { task } = worker
      task?.reject(new OffloadError(`Worker stopped with code ${exitCode} while it ran ${task.name}`, { cause }))
      if (this.#waiting.length > 0) void this.#dispatch()
    })
    return worker
  }

  /** Gives the idle `worker` the task that waits longest. */
  #next(worker: PoolWorker): void {
    const task = this.#waiting.shift()
    worker.task = task
    clearTimeout(worker.idleTimeout)
    if (task === undefined) {
      worker.thread.unref()
      worker.idleTimeout = setTimeout(() => this.#stop(worker), idleMs)
      worker.idleTimeout.unref()
      return
    }
    worker.thread.ref()
    try {
      worker.thread.postMessage({ module: task.module, name: task.name, input: task.input } satisfies OffloadRequest)
    } catch (error) {
      worker.task = undefined
      task.reject(new OffloadError(`Cannot copy the input of ${task.name}`, { cause: error }))
      this.#next(worker)
    }
  }

  #stop(worker: PoolWorker): void {
    this.#workers.delete(worker) // at once: no task is given to it any more
    void worker.thread.terminate()
  }
}
