import { assert } from '../base/index.ts'
import { type Codec, compileCodec } from './compile.ts'
import type { Reader } from './reader.ts'
import type { Fields, InputOf, ValueOf } from './schema.ts'
import { inRange, type VersionRange, versionRange } from './versions.ts'
import type { Writer } from './writer.ts'

interface Declaration<F extends Fields> {
  readonly name: string
  /** `2-7` */
  readonly versions: string
  /** First version in the flexible encoding, `5+`; left out when there is none. */
  readonly flexible?: string
  readonly fields: F
}

/** A declared message: a request, a response, or something that Kafka keeps in records. */
export class Message<F extends Fields = Fields> {
  /** `FetchRequest` */
  readonly name: string
  readonly versions: VersionRange
  readonly fields: F
  readonly #flexible: VersionRange | undefined
  /** By version; compiled when first used. */
  readonly #codecs: (Codec | undefined)[] = []

  constructor(declaration: Declaration<F>) {
    this.name = declaration.name
    this.versions = versionRange(declaration.versions)
    this.fields = declaration.fields
    this.#flexible = declaration.flexible === undefined ? undefined : versionRange(declaration.flexible)
  }

  isFlexible(version: number): boolean {
    return inRange(this.#flexible, version)
  }

  /** `version` must be one of `versions`: who speaks for a peer checks that first. */
  codec(version: number): Codec {
    const known = this.#codecs[version]
    if (known !== undefined) return known
    assert(inRange(this.versions, version), `${this.name} has no version ${version}`)
    const codec = compileCodec(this.name, this.fields, version, this.isFlexible(version))
    this.#codecs[version] = codec
    return codec
  }
}

/** A request or response of a Kafka API. */
export class ApiMessage<F extends Fields = Fields> extends Message<F> {
  readonly apiKey: number

  constructor(declaration: Declaration<F> & { readonly apiKey: number }) {
    super(declaration)
    this.apiKey = declaration.apiKey
  }
}

/** The key of a record in an internal topic. */
export class RecordKey<F extends Fields = Fields> extends Message<F> {
  /** Stands before the key and says what key and value are. */
  readonly recordType: number

  constructor(declaration: Omit<Declaration<F>, 'versions' | 'flexible'> & { readonly recordType: number }) {
    super({ ...declaration, versions: '0' })
    this.recordType = declaration.recordType
  }
}

/** What decoding gives: every field, whether the version has it or not. */
export type MessageType<M extends Message> = M extends Message<infer F> ? ValueOf<F> : never
/** What encoding takes: fields with a default, and those that not every version has, may be left out. */
export type MessageInput<M extends Message> = M extends Message<infer F> ? InputOf<F> : never

export function request<const F extends Fields>(
  declaration: Declaration<F> & { readonly apiKey: number },
): ApiMessage<F> {
  return new ApiMessage({ ...declaration, name: `${declaration.name}Request` })
}

export function response<const F extends Fields>(
  declaration: Declaration<F> & { readonly apiKey: number },
): ApiMessage<F> {
  return new ApiMessage({ ...declaration, name: `${declaration.name}Response` })
}

/** A message that travels inside others or lies in a log. */
export function data<const F extends Fields>(declaration: Declaration<F>): Message<F> {
  return new Message(declaration)
}

export function recordKey<const F extends Fields>(
  declaration: Omit<Declaration<F>, 'versions' | 'flexible'> & { readonly recordType: number },
): RecordKey<F> {
  return new RecordKey(declaration)
}

/**
 * Reads one message and leaves the reader behind it. Byte strings and records are slices of the reader's buffer.
 * Throws `MalformedRequestError`, and nothing else, whatever the bytes are.
 */
export function decodeMessage<F extends Fields>(message: Message<F>, version: number, reader: Reader): ValueOf<F> {
  return message.codec(version).read(reader) as ValueOf<F>
}

/** Throws `UnsupportedFieldError` when `value` says something that `version` cannot. */
export function encodeMessage<F extends Fields>(
  message: Message<F>,
  version: number,
  value: InputOf<F>,
  writer: Writer,
): void {
  message.codec(version).write(writer, value)
}
