/**
 * api: one file per Kafka API. Each decodes by its declaration, calls one service and encodes.
 *
 *   registry.ts      `servedApis`: all of them
 *   api.ts           `defineApi`: what an API is; `RequestContext`: what it may know
 *   services.ts      `ApiServices`: what it may call
 *   dispatcher.ts    `Dispatcher`: from a frame to its API and back
 *   fault-injection.ts  faults that a test asks for; injected-errors.ts, request-subjects.ts: where errors go in an answer
 *   errors.ts        the one map from outcomes to error codes
 *   endpoints.ts     where clients are told to find brokers
 *   config-resources.ts  topics and brokers, to which configs belong
 *   distinct.ts      what is asked twice is answered once
 *   topic-creator.ts topics that are made when a request needs them
 *   producer-ids.ts  ids from the controller's blocks
 *   probe.ts         metrics
 *   <api>.ts         versions, what trips clients, where it differs from Kafka: in the header of each
 *
 * Runs on the event loop, per request. Invariants:
 * - An answer is in the version of its request. What isn't served isn't advertised, but for the one range that old clients
 *   need to see (`advertisedMin`).
 * - A handler that awaits has begun its effects before: appends of one connection keep their order.
 * - A peer that sends nonsense gets its connection closed, one that asks for what isn't there gets an error code.
 */

export { Dispatcher } from './dispatcher.ts'
export type { Fault, FaultMatch, Faults, FaultyApi, InjectableError } from './fault-injection.ts'
export { servedApis } from './registry.ts'
export {
  type ApiServices,
  type ApiServicesOptions,
  createApiServices,
  type GroupService,
  type LogDirectories,
} from './services.ts'
