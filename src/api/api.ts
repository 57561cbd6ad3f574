import type { ConnectionFacts } from '../network/index.ts'
import type { Api, ApiMessage, ErrorCode, MessageInput, MessageType } from '../protocol/index.ts'
import type { ApiServices } from './services.ts'

/** What a handler may know beside the request itself. */
export interface RequestContext {
  readonly apiVersion: number
  /** Chosen by the client, for logs and quotas; not trusted. */
  readonly clientId: string | null
  readonly connection: ConnectionFacts
  readonly services: ApiServices
}

export type Reply<Body> =
  /** `release` runs once the response is written or never will be: record data in `body` stays untouched until then. */
  | { readonly body: Body; readonly release?: () => void }
  /** The request has no response. */
  | 'none'
  /** The connection closes, with this reason in the log. */
  | { readonly close: string }

/** One Kafka API as this broker serves it. Each file of this folder that is named for an API makes one with `defineApi`. */
export interface ApiDefinition<Request extends ApiMessage, Response extends ApiMessage> {
  readonly api: Api<Request, Response>
  /** What is served, both included. `advertisedMin`: a lower version that is listed and not served, where clients need to see it. */
  readonly versions: { readonly min: number; readonly max: number; readonly advertisedMin?: number }
  /** True: may begin while others of its kind on the same connection are unanswered. */
  readonly overlaps?: boolean
  /** True: answers are small whatever is asked; they are given when there is no memory for others. */
  readonly brief?: boolean
  /** May throw: then `fault` answers and the cause is logged. The request's byte strings are views, valid until the answer. */
  handle(
    request: MessageType<Request>,
    context: RequestContext,
  ): Reply<MessageInput<Response>> | Promise<Reply<MessageInput<Response>>>
  /** An answer that says `errorCode` about everything that was asked. */
  fault(request: MessageType<Request>, errorCode: ErrorCode, apiVersion: number): MessageInput<Response>
}

/** An API without its types, as the dispatcher and the registry hold it. */
export type ServedApi = ApiDefinition<ApiMessage, ApiMessage>

export function defineApi<Request extends ApiMessage, Response extends ApiMessage>(
  definition: ApiDefinition<Request, Response>,
): ServedApi {
  // The dispatcher gives `handle` only what the request's own declaration decoded.
  return definition as unknown as ServedApi
}
