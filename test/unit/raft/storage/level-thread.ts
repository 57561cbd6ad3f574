import { workerData } from 'node:worker_threads'
import { openLevelStore } from '../../../../src/raft/storage/level-store.ts'

// A worker thread that uses Level, and ends.
const store = await openLevelStore(workerData as string)
await store.batch([{ type: 'put', key: Uint8Array.of(1), value: Uint8Array.of(2) }], { sync: true })
await store.close()
