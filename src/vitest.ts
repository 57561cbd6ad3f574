/**
 * `rookery/vitest`: one broker for a run of vitest (3 to 5), started before the first test file and stopped after the last.
 *
 *     export default defineConfig({ test: { globalSetup: ['rookery/vitest'] } })   // vitest.config.ts
 *     import type {} from 'rookery/vitest'                                         // once, for the type of inject
 *     new Kafka({ brokers: [inject('rookery').bootstrapServers] })                 // in a test
 *
 * With options it is a file of the project's own, named in `globalSetup`: `export default rookeryGlobalSetup({ topics: ['orders'] })`.
 *
 * What holds:
 * - Nothing of vitest is loaded; its types are needed by who imports this, and by nobody else.
 * - Test files share the broker, and vitest runs them side by side: each is to have topics and groups of its own.
 * - In watch mode the broker stays, and is reset before tests run again.
 */
import type { ProvidedContext } from 'vitest'
import { type BrokerOptions, startBroker } from './index.ts'

/** What tests are told: `inject('rookery')`. */
export interface RookeryContext {
  /** What clients connect to: `localhost:54321`. */
  readonly bootstrapServers: string
  readonly port: number
  readonly clusterId: string
}

declare module 'vitest' {
  interface ProvidedContext {
    rookery: RookeryContext
  }
}

/** What of vitest's `TestProject` is used. */
interface Project {
  provide(key: 'rookery', value: ProvidedContext['rookery']): void
  onTestsRerun(callback: () => Promise<void>): void
}

/** A global set-up that starts a broker with these options and resolves with what stops it. */
export function rookeryGlobalSetup(options: BrokerOptions = {}): (project: Project) => Promise<() => Promise<void>> {
  return async (project) => {
    const { bootstrapServers, port, clusterId, reset, stop } = await startBroker(options)
    project.provide('rookery', { bootstrapServers, port, clusterId })
    project.onTestsRerun(() => reset())
    return stop
  }
}

export default rookeryGlobalSetup()
