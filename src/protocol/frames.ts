import { type Api, apiByKey, apis } from './apis.ts'
import { encodeMessage, type Message } from './message.ts'
import type { Reader } from './reader.ts'
import type { Fields, InputOf } from './schema.ts'
import { inRange } from './versions.ts'
import { Writer } from './writer.ts'

/**
 * What stands before every message on the wire.
 *
 *     request   int32 length | int16 api key | int16 version | int32 correlation id | string? client id | tags? | body
 *     response  int32 length | int32 correlation id | tags? | body
 *
 * `tags?` is there when the version is flexible. The client id is never in the compact form. An ApiVersions response
 * has no tags in its header at any version: its reader doesn't know yet which version it will get.
 */
export interface RequestHeader {
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string | null
}

/**
 * Reads the header and stands at the body. For a key or version that isn't declared only the part all versions share is
 * read, which is enough to name the request or, for ApiVersions, to answer it.
 */
export function readRequestHeader(reader: Reader): RequestHeader {
  const apiKey = reader.int16()
  const apiVersion = reader.int16()
  const correlationId = reader.int32()
  const clientId = reader.nullableString()
  const api = apiByKey(apiKey)
  if (api !== undefined && inRange(api.request.versions, apiVersion) && api.request.isFlexible(apiVersion)) {
    reader.skipTags()
  }
  return { apiKey, apiVersion, correlationId, clientId }
}

/** Reads a response's header up to its body and returns the correlation id. */
export function readResponseHeader(api: Api, version: number, reader: Reader): number {
  const correlationId = reader.int32()
  if (hasTagsInResponseHeader(api.response, version)) reader.skipTags()
  return correlationId
}

/** A request as it goes on the wire, length first. */
export function encodeRequest<F extends Fields>(
  message: Message<F> & { readonly apiKey: number },
  version: number,
  header: { readonly correlationId: number; readonly clientId: string | null },
  body: InputOf<F>,
): Buffer[] {
  const writer = new Writer()
  writer.startFrame()
  writer.int16(message.apiKey)
  writer.int16(version)
  writer.int32(header.correlationId)
  writer.nullableString(header.clientId)
  if (message.isFlexible(version)) writer.uvarint(0)
  encodeMessage(message, version, body, writer)
  return writer.finishFrame()
}

/** A response as it goes on the wire, length first. Record data in `body` is in the result as the slices it was. */
export function encodeResponse<F extends Fields>(
  message: Message<F> & { readonly apiKey: number },
  version: number,
  correlationId: number,
  body: InputOf<F>,
): Buffer[] {
  const writer = new Writer()
  writer.startFrame()
  writer.int32(correlationId)
  if (hasTagsInResponseHeader(message, version)) writer.uvarint(0)
  encodeMessage(message, version, body, writer)
  return writer.finishFrame()
}

function hasTagsInResponseHeader(message: Message & { readonly apiKey: number }, version: number): boolean {
  return message.apiKey !== apis.ApiVersions.key && message.isFlexible(version)
}
