import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'

// A process of which only a worker thread uses Level, in the folder that is named. Prints whether Level is loaded, with the thread and after it.
const worker = new Worker(new URL('./level-thread.ts', import.meta.url), { workerData: process.argv[2] })
const [code] = await once(worker, 'exit')
const mapped = await readFile('/proc/self/maps', 'utf8')
process.stdout.write(JSON.stringify({ code, isLoaded: mapped.includes('classic-level') }))
