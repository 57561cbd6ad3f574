import { assert } from '../base/index.ts'
import { UnsupportedFieldError } from './faults.ts'
import type { Reader } from './reader.ts'
import type { Field, Fields } from './schema.ts'
import { inRange } from './versions.ts'
import type { Writer } from './writer.ts'

/**
 * Turns a declaration into one reading and one writing function for one version, as JavaScript source. Generated code
 * reads a struct into local variables and makes the object in one literal, so all objects of a kind have one shape and
 * no field is looked up by name: several times faster than interpreting the declaration. The source holds names and
 * defaults from declarations, never anything from the wire.
 *
 * For `topics: array({ name: string(), partitions: arrayOf(int32()) })` in a flexible version it writes:
 *
 *     function readArray$topics(r) {
 *       const n = r.compactArrayLength(3)
 *       if (n < 0) r.unexpectedNullArray()
 *       r.chargeObjects(n)
 *       const a = new Array(n)
 *       for (let i = 0; i < n; i++) a[i] = read$topics(r)
 *       return a
 *     }
 *     function read$topics(r) {
 *       const $name = r.compactString()
 *       const $partitions = readArray$topics$partitions(r)
 *       r.skipTags()
 *       return { name: $name, partitions: $partitions }
 *     }
 */
export interface Codec {
  readonly read: (reader: Reader) => unknown
  readonly write: (writer: Writer, value: unknown) => void
}

export function compileCodec(name: string, fields: Fields, version: number, flexible: boolean): Codec {
  const source = new CodecSource(name, version, flexible)
  source.addReader('', fields)
  source.addWriter('', fields)
  const build = new Function('unsupported', 'empty', source.text()) as (
    unsupported: (field: string) => never,
    empty: Buffer,
  ) => Codec
  return build((field) => {
    throw new UnsupportedFieldError(field, version)
  }, Buffer.alloc(0))
}

class CodecSource {
  readonly #name: string
  readonly #version: number
  readonly #flexible: boolean
  readonly #functions: string[] = []

  constructor(name: string, version: number, flexible: boolean) {
    this.#name = name
    this.#version = version
    this.#flexible = flexible
  }

  text(): string {
    return `'use strict'\n${this.#functions.join('\n')}\nreturn { read, write }`
  }

  /** `path`: where the struct is in the message, `$topics$partitions`; empty for the message itself. */
  addReader(path: string, fields: Fields): void {
    const lines: string[] = []
    const results: string[] = []
    const tagged: string[] = []
    for (const [name, field] of Object.entries(fields)) {
      if (!this.#has(field)) {
        results.push(`${name}: ${defaultSource(field)}`)
        continue
      }
      results.push(`${name}: $${name}`)
      const value = this.#readSource(`${path}$${name}`, field)
      if (field.tag === undefined) lines.push(`const $${name} = ${value}`)
      else {
        lines.push(`let $${name} = ${defaultSource(field)}`)
        tagged.push(`case ${field.tag}: $${name} = ${value}; break`)
      }
    }
    if (this.#flexible) {
      lines.push(
        tagged.length === 0
          ? 'r.skipTags()'
          : `for (let count = r.tagCount(); count > 0; count--) {
              const tag = r.uvarint(), size = r.tagSize(), end = r.position + size
              switch (tag) { ${tagged.join('\n')}\n default: r.skip(size) }
              r.expectPosition(end)
            }`,
      )
    }
    this.#functions.push(`function read${path}(r) {\n${lines.join('\n')}\nreturn { ${results.join(', ')} }\n}`)
  }

  addWriter(path: string, fields: Fields): void {
    const lines: string[] = []
    const tagged: { readonly tag: number; readonly name: string; readonly write: string; readonly differs: string }[] =
      []
    for (const [name, field] of Object.entries(fields)) {
      const label = JSON.stringify(`${this.#name}${path.replaceAll('$', '.')}.${name}`)
      if (!this.#has(field)) {
        if (!field.ignorable) {
          const differs = this.#differsSource(`${path}$${name}`, field, `v.${name}`)
          lines.push(`if (v.${name} !== undefined && ${differs}) unsupported(${label})`)
        }
        continue
      }
      lines.push(`const $${name} = v.${name} === undefined ? ${defaultSource(field)} : v.${name}`)
      const mayBeNull = inRange(field.nullable, this.#version)
      if (field.nullable !== undefined && !mayBeNull) lines.push(`if ($${name} === null) unsupported(${label})`)
      const write = this.#writeSource(`${path}$${name}`, field, `$${name}`)
      if (field.tag === undefined) lines.push(write)
      else {
        const differs = this.#differsSource(`${path}$${name}`, field, `$${name}`)
        tagged.push({ tag: field.tag, name, write, differs })
      }
    }
    if (this.#flexible) {
      tagged.sort((a, b) => a.tag - b.tag)
      for (const { name, differs } of tagged) lines.push(`const has$${name} = ${differs}`)
      lines.push(`w.uvarint(${tagged.map(({ name }) => `(has$${name} ? 1 : 0)`).join(' + ') || 0})`)
      for (const { tag, name, write } of tagged) {
        lines.push(`if (has$${name}) { const at = w.beginTag(${tag}); ${write}; w.endTag(at) }`)
      }
    }
    this.#functions.push(`function write${path}(w, v) {\n${lines.join('\n')}\n}`)
  }

  #has(field: Field): boolean {
    return inRange(field.versions, this.#version)
  }

  /** `int32`, `compactNullableString`: the method of Reader or Writer for a field that is no struct or array. */
  #method(field: Field): string {
    const nullable = inRange(field.nullable, this.#version)
    if (field.kind !== 'string' && field.kind !== 'bytes') return field.kind
    const name = nullable ? `nullable${capitalized(field.kind)}` : field.kind
    return this.#flexible ? `compact${capitalized(name)}` : name
  }

  #readSource(path: string, field: Field): string {
    switch (field.kind) {
      case 'struct': {
        this.addReader(path, field.fields)
        return inRange(field.nullable, this.#version) ? `(r.structPresent() ? read${path}(r) : null)` : `read${path}(r)`
      }
      case 'array':
        this.addReader(path, field.fields)
        this.#addArrayReader(path, field, `read${path}(r)`, this.#minBytesOf(field.fields), true)
        return `readArray${path}(r)`
      case 'arrayOf': {
        const element = elementOf(field)
        const charged = element.kind === 'string' || element.kind === 'bytes' || element.kind === 'uuid'
        this.#addArrayReader(path, field, this.#readSource(path, element), this.#minBytes(element), charged)
        return `readArray${path}(r)`
      }
      case 'records':
        return this.#flexible ? 'r.compactNullableBytes()' : 'r.nullableBytes()'
      default:
        return `r.${this.#method(field)}()`
    }
  }

  #addArrayReader(path: string, field: Field, element: string, minBytes: number, charged: boolean): void {
    const onNull = inRange(field.nullable, this.#version) ? 'return null' : 'r.unexpectedNullArray()'
    this.#functions.push(`function readArray${path}(r) {
      const n = r.${this.#flexible ? 'compactArrayLength' : 'arrayLength'}(${minBytes})
      if (n < 0) ${onNull}
      ${charged ? 'r.chargeObjects(n)' : ''}
      const a = new Array(n)
      for (let i = 0; i < n; i++) a[i] = ${element}
      return a
    }`)
  }

  #writeSource(path: string, field: Field, value: string): string {
    switch (field.kind) {
      case 'struct': {
        this.addWriter(path, field.fields)
        const write = `write${path}(w, ${value})`
        if (!inRange(field.nullable, this.#version)) return write
        return `if (${value} === null) w.int8(-1); else { w.int8(1); ${write} }`
      }
      case 'array':
        this.addWriter(path, field.fields)
        return this.#writeArraySource(value, `write${path}(w, ${value}[i])`)
      case 'arrayOf':
        return this.#writeArraySource(value, this.#writeSource(path, elementOf(field), `${value}[i]`))
      case 'records':
        return `w.${this.#flexible ? 'compactRecords' : 'records'}(${value})`
      default:
        return `w.${this.#method(field)}(${value})`
    }
  }

  /** Null arrives here only where the version has it: `addWriter` refused it otherwise. */
  #writeArraySource(value: string, element: string): string {
    const count = this.#flexible
      ? `w.uvarint(${value} === null ? 0 : ${value}.length + 1)`
      : `w.int32(${value} === null ? -1 : ${value}.length)`
    return `${count}; if (${value} !== null) for (let i = 0; i < ${value}.length; i++) ${element}`
  }

  /** An expression: does `value` differ from the field's default? */
  #differsSource(path: string, field: Field, value: string): string {
    switch (field.kind) {
      case 'array':
      case 'arrayOf':
      case 'bytes':
        return field.default === null ? `${value} !== null` : `(${value} === null || ${value}.length !== 0)`
      case 'struct': {
        if (field.default === null) return `${value} !== null`
        const inner = Object.entries(field.fields).map(([name, f]) => {
          const differs = this.#differsSource(`${path}$${name}`, f, `x.${name}`)
          return `(x.${name} !== undefined && ${differs})`
        })
        this.#functions.push(`function differs${path}(x) { return ${inner.join(' || ')} }`)
        return `differs${path}(${value})`
      }
      default:
        return `${value} !== ${defaultSource(field)}`
    }
  }

  #minBytesOf(fields: Fields): number {
    let bytes = this.#flexible ? 1 : 0
    for (const field of Object.values(fields)) {
      if (this.#has(field) && field.tag === undefined) bytes += this.#minBytes(field)
    }
    assert(bytes > 0, `an element of an array in ${this.#name} takes at least a byte`)
    return bytes
  }

  #minBytes(field: Field): number {
    switch (field.kind) {
      case 'int8':
      case 'boolean':
        return 1
      case 'int16':
      case 'uint16':
        return 2
      case 'int32':
        return 4
      case 'int64':
      case 'int64Wide':
      case 'float64':
        return 8
      case 'uuid':
        return 16
      case 'string':
        return this.#flexible ? 1 : 2
      case 'bytes':
      case 'records':
      case 'array':
      case 'arrayOf':
        return this.#flexible ? 1 : 4
      case 'struct':
        return inRange(field.nullable, this.#version) ? 1 : this.#minBytesOf(field.fields)
    }
  }
}

function elementOf(field: Field): Field {
  assert(field.element !== undefined, 'an array of plain values has an element')
  return field.element
}

function defaultSource(field: Field): string {
  const value = field.default
  if (value === null) return 'null'
  switch (field.kind) {
    case 'int64Wide':
      return `${String(value)}n`
    case 'bytes':
      return 'empty'
    case 'array':
    case 'arrayOf':
      return '[]'
    case 'struct': {
      const inner = Object.entries(field.fields).map(([name, f]) => `${name}: ${defaultSource(f)}`)
      return `{ ${inner.join(', ')} }`
    }
    default:
      return JSON.stringify(value)
  }
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
