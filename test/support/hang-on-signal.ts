import { isMainThread } from 'node:worker_threads'

// Loaded into a process under test with --import: at SIGUSR2 its event loop stands still, as if one of its callbacks never
// came to an end, for the milliseconds in ROOKERY_TEST_HANG_MS. Its other threads go on.
if (isMainThread) {
  const hangMs = Number(process.env.ROOKERY_TEST_HANG_MS)
  process.on('SIGUSR2', () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, hangMs)
  })
}
