import { threadId } from 'node:worker_threads'
import type { OffloadTask } from '../../src/platform/index.ts'

export const sumTask: OffloadTask<{ readonly bytes: Uint8Array }, { readonly sum: number; readonly same: Uint8Array }> =
  {
    module: import.meta.url,
    name: 'sumTask',
    run: ({ bytes }) => ({ sum: bytes.reduce((sum, byte) => sum + byte, 0), same: bytes }),
  }

export const failingTask: OffloadTask<string, never> = {
  module: import.meta.url,
  name: 'failingTask',
  run: (reason) => {
    throw new Error(reason)
  },
}

export const exitingTask: OffloadTask<number, never> = {
  module: import.meta.url,
  name: 'exitingTask',
  run: (exitCode) => process.exit(exitCode),
}

export const unclonableTask: OffloadTask<number, unknown> = {
  module: import.meta.url,
  name: 'unclonableTask',
  run: () => () => 1,
}

export const workerIdTask: OffloadTask<number, number> = {
  module: import.meta.url,
  name: 'workerIdTask',
  run: () => threadId,
}
