import { messageOf } from '../base/index.ts'
import { CoordinationError } from '../coordination/index.ts'
import type { Answer, CloseAnswer, ConnectionFacts, RequestHandler } from '../network/index.ts'
import {
  type ApiMessage,
  apiName,
  apis,
  decodeMessage,
  encodeResponse,
  MalformedRequestError,
  type MessageInput,
  Reader,
  type RequestHeader,
  readRequestHeader,
} from '../protocol/index.ts'
import type { Reply, RequestContext, ServedApi } from './api.ts'
import { apiVersionsFallback } from './api-versions.ts'
import { errorCodeOfFault } from './errors.ts'
import { FaultInjector } from './fault-injection.ts'
import { ApiProbe } from './probe.ts'
import type { ApiServices } from './services.ts'

/**
 * From a frame to the API that it is for, and from its reply to bytes. What can't be read, and keys and versions that aren't
 * served, close the connection, as in Kafka; a fault of a handler becomes an answer with an error code.
 */
export class Dispatcher implements RequestHandler {
  readonly faults: FaultInjector
  readonly #services: ApiServices
  readonly #served: ReadonlyMap<number, ServedApi>
  readonly #probes: ReadonlyMap<number, ApiProbe>

  constructor(services: ApiServices, served: readonly ServedApi[]) {
    this.#services = services
    this.faults = new FaultInjector({
      timers: services.platform.timers,
      topicName: (topicId) => services.coordination.image.topics.byId(topicId)?.name,
      apiNames: served.map(({ api }) => api.name),
    })
    this.#served = new Map(served.map((each) => [each.api.key, each]))
    this.#probes = new Map(served.map(({ api }) => [api.key, new ApiProbe(services.metrics, api.name)]))
  }

  mayOverlap(apiKey: number): boolean {
    return this.#served.get(apiKey)?.overlaps === true
  }

  isBrief(apiKey: number): boolean {
    return this.#served.get(apiKey)?.brief === true
  }

  handle(frame: Buffer, connection: ConnectionFacts): Answer | Promise<Answer> {
    if (frame.length < 8) return { close: `A request of ${frame.length} bytes has no header` }
    const reader = new Reader(frame)
    let header: RequestHeader = { ...headerStart(frame), clientId: null }
    const served = this.#served.get(header.apiKey)
    if (served === undefined) return refusal(header, 'This API is not served')
    const { min, max } = served.versions
    if (header.apiVersion < min || header.apiVersion > max) {
      if (served.api.key !== apis.ApiVersions.key) {
        return refusal(header, `This version is not served, ${min} to ${max} are`)
      }
      return { chunks: encodeResponse(apis.ApiVersions.response, 0, header.correlationId, apiVersionsFallback(served)) }
    }
    let request: object
    try {
      header = readRequestHeader(reader)
      request = decodeMessage(served.api.request, header.apiVersion, reader)
    } catch (error) {
      if (error instanceof MalformedRequestError) return refusal(header, messageOf(error))
      throw error
    }
    return this.#answer(served, header, request, connection)
  }

  #answer(
    served: ServedApi,
    header: RequestHeader,
    request: object,
    connection: ConnectionFacts,
  ): Answer | Promise<Answer> {
    const { apiVersion, clientId } = header
    const { clock } = this.#services.platform
    const probe = this.#probes.get(header.apiKey)!
    const beganMs = clock.monotonic()
    const context: RequestContext = { apiVersion, clientId, connection, services: this.#services }
    const done = (reply: Reply<MessageInput<ApiMessage>>): Answer => {
      probe.requests.value++
      probe.timeUs.record((clock.monotonic() - beganMs) * 1000)
      return encode(served, header, reply)
    }
    const failed = (fault: unknown): Answer => {
      const fields = { peer: connection.peer, ...detailsOf(header), error: fault }
      if (fault instanceof CoordinationError) {
        // No bug here: there is no controller, or the client gave it no time.
        this.#services.log.warn(fields, 'request not carried out')
      } else {
        probe.faults.value++
        this.#services.log.error(fields, 'request failed')
      }
      return done({ body: served.fault(request as never, errorCodeOfFault(fault), apiVersion) })
    }
    let reply: ReturnType<ServedApi['handle']>
    try {
      reply = this.faults.isActive
        ? this.faults.intercept(served, request, context)
        : served.handle(request as never, context)
    } catch (fault) {
      return failed(fault)
    }
    return reply instanceof Promise ? reply.then(done, failed) : done(reply)
  }
}

function encode(served: ServedApi, header: RequestHeader, reply: Reply<MessageInput<ApiMessage>>): Answer {
  if (reply === 'none') return reply
  if ('close' in reply) return refusal(header, reply.close)
  const { body, release } = reply
  try {
    const chunks = encodeResponse(served.api.response, header.apiVersion, header.correlationId, body)
    return release === undefined ? { chunks } : { chunks, release }
  } catch (error) {
    release?.()
    throw error
  }
}

/** Characters of a client id that a log line has: a client could otherwise fill the disk with it. */
const maxLoggedLength = 200

/** The part of a header that all versions of all APIs share. */
function headerStart(frame: Buffer): Omit<RequestHeader, 'clientId'> {
  return { apiKey: frame.readInt16BE(0), apiVersion: frame.readInt16BE(2), correlationId: frame.readInt32BE(4) }
}

function refusal(header: RequestHeader, reason: string): CloseAnswer {
  return { close: reason, details: detailsOf(header) }
}

function detailsOf({ apiKey, apiVersion, clientId }: RequestHeader): Readonly<Record<string, unknown>> {
  return { api: apiName(apiKey), apiKey, apiVersion, clientId: clientId?.slice(0, maxLoggedLength) ?? null }
}
