import { RookeryError } from '../base/index.ts'

/** Bytes that are no message of the version they claim. The connection they came over is closed. */
export class MalformedRequestError extends RookeryError {
  override readonly code = 'MALFORMED_REQUEST'
}

/** A value was set that this version of the message cannot carry, and that may not be dropped silently. */
export class UnsupportedFieldError extends RookeryError {
  override readonly code = 'FIELD_UNSUPPORTED'
  /** Message and field, `FetchRequest.topics.topicId`. */
  readonly field: string
  readonly version: number

  constructor(field: string, version: number) {
    super(`${field} has a value that version ${version} cannot carry`)
    this.field = field
    this.version = version
  }
}

/** A record batch whose inside is not what its header or its codec claims. */
export class CorruptBatchError extends RookeryError {
  override readonly code = 'CORRUPT_BATCH'
}

/** A batch that unpacks to more than it may: refused before or while it is unpacked. */
export class BatchTooLargeError extends RookeryError {
  override readonly code = 'BATCH_TOO_LARGE'
  readonly maxBytes: number

  constructor(maxBytes: number) {
    super(`Record batch unpacks to more than ${maxBytes} bytes`)
    this.maxBytes = maxBytes
  }
}
