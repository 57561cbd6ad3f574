import { threadId } from 'node:worker_threads'
import type { ThreadProgram } from '../../../../src/platform/index.ts'

/** Says what it began with and where, then everything that it is told. */
export const echoProgram: ThreadProgram<{ readonly greeting: string }> = {
  module: import.meta.url,
  name: 'echoProgram',
  run: (port, { greeting }) => {
    port.post({ greeting, threadId })
    port.onMessage((message) => port.post(message))
  },
}

/** Ends in the way that it is told. */
export const endingProgram: ThreadProgram<'throws' | 'rejects' | 'exits'> = {
  module: import.meta.url,
  name: 'endingProgram',
  run: (port, how) => {
    port.post('a last word')
    if (how === 'throws') throw new Error('thrown in the thread')
    if (how === 'rejects') void Promise.reject(new Error('rejected in the thread'))
    if (how === 'exits') process.exit(3)
  },
}

/** Never gives its event loop a turn. */
export const hangingProgram: ThreadProgram<undefined> = {
  module: import.meta.url,
  name: 'hangingProgram',
  run: (port) => {
    port.post('hanging')
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
  },
}
