import { parentPort } from 'node:worker_threads'
import { assert, messageOf } from '../../base/index.ts'
import type { OffloadAnswer, OffloadRequest } from './offload.ts'

// The program of an offload worker: loads the module a task names and runs the function it exports.
const port = parentPort
assert(port !== null, 'runs as a worker only')

port.on('message', async (request: OffloadRequest) => {
  let answer: OffloadAnswer
  try {
    const exported: Record<string, unknown> = await import(request.module)
    const task = exported[request.name] as { run?: (input: unknown) => unknown } | undefined
    assert(typeof task?.run === 'function', `${request.module} exports no task ${request.name}`)
    answer = { result: task.run(request.input) }
  } catch (error) {
    answer = { error: messageOf(error) }
  }
  try {
    port.postMessage(answer)
  } catch (error) {
    port.postMessage({
      error: `Cannot copy the result of ${request.name}: ${messageOf(error)}`,
    } satisfies OffloadAnswer)
  }
})
