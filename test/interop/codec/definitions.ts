import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { zeroUuid } from '../../../src/base/index.ts'
import type { Message } from '../../../src/protocol/index.ts'
import type { Field, Fields } from '../../../src/protocol/schema.ts'
import { inRange, type VersionRange, versionRange } from '../../../src/protocol/versions.ts'

/** A message as Kafka defines it: the JSON file in the jar of its clients. */
export interface Definition {
  readonly name: string
  readonly apiKey?: number
  readonly validVersions: string
  readonly flexibleVersions: string
  readonly fields: readonly DefinedField[]
  readonly commonStructs?: readonly { readonly name: string; readonly fields: readonly DefinedField[] }[]
}

interface DefinedField {
  readonly name: string
  /** `int32`, `[]string`, `[]TopicData`, `LeaderIdAndEpoch` */
  readonly type: string
  readonly versions: string
  readonly nullableVersions?: string
  readonly taggedVersions?: string
  readonly tag?: number
  readonly default?: string | number | boolean
  readonly ignorable?: boolean
  readonly fields?: readonly DefinedField[]
}

/** What a version of a message has, in a form that both kinds of declarations are brought to. */
export interface FieldShape {
  readonly name: string
  readonly type: string
  readonly nullable: boolean
  /** Writing a version that lacks it drops it; false where every version that is compared, and has what it is in, has it. */
  readonly ignorable: boolean
  /** Null: it doesn't travel as a tagged field. */
  readonly tag: number | null
  readonly default: unknown
  /** Of a struct, or of each element of an array of structs; null for other types. */
  readonly fields: readonly FieldShape[] | null
}

/** Every definition in `kafka-clients` of `jars`, by the message's name. */
export function readDefinitions(jars: string): ReadonlyMap<string, Definition> {
  const jar = readdirSync(jars).find((name) => /^kafka-clients-[\d.]+\.jar$/.test(name))
  if (jar === undefined) throw new Error(`No kafka-clients in ${jars}`)
  const definitions: Definition[] = []
  for (const { name, content } of zipEntries(readFileSync(join(jars, jar)))) {
    if (/^common\/message\/\w+\.json$/.test(name)) definitions.push(parseDefinition(content().toString('utf8')))
  }
  return new Map(definitions.map((definition) => [definition.name, definition]))
}

interface ZipEntry {
  readonly name: string
  content(): Buffer
}

/** The files in a zip archive, as its directory at the end lists them. */
function* zipEntries(zip: Buffer): Generator<ZipEntry> {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06'))
  if (end < 0) throw new Error('No zip archive')
  let at = zip.readUInt32LE(end + 16)
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const method = zip.readUInt16LE(at + 10)
    const packedBytes = zip.readUInt32LE(at + 20)
    const nameBytes = zip.readUInt16LE(at + 28)
    const start = zip.readUInt32LE(at + 42)
    const name = zip.toString('utf8', at + 46, at + 46 + nameBytes)
    const content = () => {
      const from = start + 30 + zip.readUInt16LE(start + 26) + zip.readUInt16LE(start + 28)
      const packed = zip.subarray(from, from + packedBytes)
      return method === 0 ? packed : inflateRawSync(packed)
    }
    yield { name, content }
    at += 46 + nameBytes + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
}

/** JSON with comments on lines of their own or behind a value; no text in the files has `//`. */
function parseDefinition(text: string): Definition {
  return JSON.parse(text.replaceAll(/\/\/.*$/gm, '')) as Definition
}

/** `none`: in no version. */
function rangeOf(text: string | undefined): VersionRange | undefined {
  return text === undefined || text === 'none' ? undefined : versionRange(text)
}

/** Versions that the definition and the declaration both have. */
export function sharedVersions(definition: Definition, message: Message): number[] {
  const theirs = versionRange(definition.validVersions)
  const min = Math.max(theirs.min, message.versions.min)
  const max = Math.min(theirs.max, message.versions.max)
  return Array.from({ length: Math.max(0, max - min + 1) }, (_, i) => min + i)
}

export function isFlexible(definition: Definition, version: number): boolean {
  return inRange(rangeOf(definition.flexibleVersions), version)
}

/** The shape that Kafka's definition gives. `all`: the versions that are compared. */
export function definedShape(definition: Definition, version: number, all: readonly number[]): FieldShape[] {
  const structs = new Map((definition.commonStructs ?? []).map(({ name, fields }) => [name, fields]))
  const shapes = (fields: readonly DefinedField[], within: readonly number[]): FieldShape[] =>
    fields.filter((field) => inRange(versionRange(field.versions), version)).map((field) => shape(field, within))
  const shape = (field: DefinedField, within: readonly number[]): FieldShape => {
    const versions = versionRange(field.versions)
    const elementType = field.type.replace(/^\[\]/, '')
    const isArray = elementType !== field.type
    const inner = field.fields ?? structs.get(elementType)
    const fields = inner === undefined ? null : shapes(inner, having(versions, within))
    const nullable = inRange(rangeOf(field.nullableVersions), version)
    const type = `${isArray ? '[]' : ''}${inner === undefined ? elementType : 'struct'}`
    return {
      name: lowerFirst(field.name),
      type,
      nullable,
      ignorable: field.ignorable === true && having(versions, within).length < within.length,
      tag: inRange(rangeOf(field.taggedVersions), version) ? field.tag! : null,
      default: definedDefault(field, type),
      fields,
    }
  }
  return shapes(definition.fields, all)
}

function definedDefault(field: DefinedField, type: string): unknown {
  const text = field.default === undefined ? '' : String(field.default)
  if (text === 'null') return null
  if (type.startsWith('[]')) return 'empty'
  switch (type) {
    case 'struct':
      return 'of its fields'
    case 'records':
      return null
    case 'bytes':
      return 'empty'
    case 'string':
      return text
    case 'uuid':
      return text === '' ? zeroUuid : text
    case 'bool':
      return text === 'true'
    case 'int64':
      return BigInt(text === '' ? 0 : text)
    default:
      return text === '' ? 0 : Number(text)
  }
}

/** The shape that our declaration gives. */
export function declaredShape(message: Message, version: number, all: readonly number[]): FieldShape[] {
  return shapesOf(message.fields, version, all)
}

function having(versions: VersionRange, all: readonly number[]): number[] {
  return all.filter((version) => inRange(versions, version))
}

function shapesOf(fields: Fields, version: number, all: readonly number[]): FieldShape[] {
  return Object.entries(fields)
    .filter(([, field]) => inRange(field.versions, version))
    .map(([name, field]) => {
      const hasFields = field.kind === 'struct' || field.kind === 'array'
      return {
        name,
        type: typeOf(field),
        nullable: inRange(field.nullable, version),
        ignorable: field.ignorable && having(field.versions, all).length < all.length,
        tag: field.tag ?? null,
        default: declaredDefault(field),
        fields: hasFields ? shapesOf(field.fields, version, having(field.versions, all)) : null,
      }
    })
}

function typeOf(field: Field): string {
  switch (field.kind) {
    case 'boolean':
      return 'bool'
    case 'int64Wide':
      return 'int64'
    case 'array':
      return '[]struct'
    case 'arrayOf':
      return `[]${typeOf(field.element!)}`
    default:
      return field.kind
  }
}

function declaredDefault(field: Field): unknown {
  const value = field.default
  if (value === null) return null
  switch (field.kind) {
    case 'struct':
      return 'of its fields'
    case 'array':
    case 'arrayOf':
    case 'bytes':
      return 'empty'
    case 'int64':
    case 'int64Wide':
      return BigInt(value as number | bigint)
    default:
      return value
  }
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}
