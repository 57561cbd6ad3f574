import { enableCompileCache } from 'node:module'

/**
 * An empty program that starts a broker inside itself, as a test does, and tells its parent how long the import took, how long `startBroker()`, and
 * what memory it holds then. Its argument is the URL of the package's main module.
 */
export interface Embedded {
  readonly importMs: number
  readonly startMs: number
  readonly rssBytes: number
}

enableCompileCache()
const [, , module = ''] = process.argv
const beganMs = performance.now()
const { startBroker } = (await import(module)) as typeof import('../src/index.ts')
const importedMs = performance.now()
const broker = await startBroker({ topics: ['bench'] })
const startedMs = performance.now()
process.send!({
  importMs: importedMs - beganMs,
  startMs: startedMs - importedMs,
  rssBytes: process.memoryUsage.rss(),
} satisfies Embedded)
await broker.stop()
process.disconnect()
