import { KafkaServer, type RequestHandler } from '../../src/network/index.ts'
import type { Platform } from '../../src/platform/index.ts'
import { Metrics, silentLogger } from '../../src/telemetry/index.ts'

/** A server with limits that no test comes to. Its requests are no brief ones, and wait for each other, unless `handler` says otherwise. */
export function answeringServer(
  platform: Platform,
  handler: Pick<RequestHandler, 'handle'> & Partial<RequestHandler>,
): KafkaServer {
  return new KafkaServer({
    platform,
    handler: { mayOverlap: () => false, isBrief: () => false, ...handler },
    log: silentLogger,
    metrics: new Metrics(),
    maxRequestBytes: 1_000_000,
    maxQueuedBytes: 10_000_000,
    maxIdleMs: 600_000,
    connectionLimits: { max: 100, maxPerAddress: 100, overrides: new Map() },
  })
}
