import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * A broker in a process of its own, as `rookery start` runs it but without a log, that tells its parent what it used. The parent sends the settings
 * first, then any number of `begin` and `end`; what lies between is measured.
 */
export interface BrokerSettings {
  readonly overrides: Readonly<Record<string, string | number>>
}

/** What a broker used between `begin` and `end`; before the first `begin`, since its process began. */
export interface Usage {
  /** Of all its threads, user and system. */
  readonly cpuSeconds: number
  /** How much later than it should a timer of the event loop ran; undefined where it isn't known. */
  readonly loopDelayP99Ms: number | undefined
  readonly loopDelayMaxMs: number | undefined
  readonly rssBytes: number
  /** Highest since the process began. */
  readonly peakRssBytes: number
}

export type BrokerMessage =
  | { readonly type: 'serving'; readonly port: number }
  | { readonly type: 'began' }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'failed'; readonly message: string }

/** A timer's own period is part of the delay that is recorded. */
const loopDelayResolutionMs = 1

/** As the program sets it. */
const poolThreads = 16
process.env.UV_THREADPOOL_SIZE = String(poolThreads) // before the pool is first used

process.once('message', (settings: BrokerSettings) => {
  serve(settings).catch((error: Error) => {
    report({ type: 'failed', message: error.stack ?? error.message })
    process.exitCode = 1
    process.disconnect()
  })
})

async function serve({ overrides }: BrokerSettings): Promise<void> {
  const { parseConfig } = await import('../src/config/index.ts')
  const { raftStorageOnDisk, startNode } = await import('../src/node/index.ts')
  const { createRealPlatform } = await import('../src/platform/index.ts')
  const { createLogger } = await import('../src/telemetry/index.ts')
  const platform = createRealPlatform()
  const { clock } = platform
  const logger = createLogger({ level: 'warn', format: 'json', destination: process.stderr, name: 'bench', clock })
  const node = await startNode({
    config: parseConfig({ overrides }),
    platform,
    logger,
    openRaftStorage: raftStorageOnDisk,
    poolThreads,
  })
  const delays = monitorEventLoopDelay({ resolution: loopDelayResolutionMs })
  delays.enable()
  let cpuBefore = { user: 0, system: 0 }
  process.on('message', (message: 'begin' | 'end' | 'stop') => {
    if (message === 'begin') {
      delays.reset()
      cpuBefore = process.cpuUsage()
      report({ type: 'began' })
    } else if (message === 'end') {
      const { user, system } = process.cpuUsage(cpuBefore)
      report({
        type: 'usage',
        usage: {
          cpuSeconds: (user + system) / 1e6,
          loopDelayP99Ms: Math.max(0, delays.percentile(99) / 1e6 - loopDelayResolutionMs),
          loopDelayMaxMs: Math.max(0, delays.max / 1e6 - loopDelayResolutionMs),
          rssBytes: process.memoryUsage.rss(),
          peakRssBytes: process.resourceUsage().maxRSS * 1024,
        },
      })
    } else {
      delays.disable()
      void node.stop().then(() => process.disconnect())
    }
  })
  report({ type: 'serving', port: Number(node.bootstrapServers.split(':').at(-1)) })
}

function report(message: BrokerMessage): void {
  process.send!(message)
}
