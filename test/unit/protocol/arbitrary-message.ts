import fc from 'fast-check'
import { uuidFromBytes } from '../../../src/base/index.ts'
import { tooHighInt64, tooLowInt64 } from '../../../src/protocol/int64.ts'
import type { Field, Fields } from '../../../src/protocol/schema.ts'
import { inRange } from '../../../src/protocol/versions.ts'

/** Values of every field that `version` has, as decoding gives them: absent fields have their default. */
export function arbitraryValue(fields: Fields, version: number): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(
    Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [
        name,
        inRange(field.versions, version) ? arbitraryField(field, version) : fc.constant(field.default),
      ]),
    ),
    { noNullPrototype: true },
  )
}

function arbitraryField(field: Field, version: number): fc.Arbitrary<unknown> {
  const value = arbitraryPresent(field, version)
  return inRange(field.nullable, version) ? fc.option(value, { freq: 4 }) : value
}

function arbitraryPresent(field: Field, version: number): fc.Arbitrary<unknown> {
  switch (field.kind) {
    case 'int8':
      return fc.integer({ min: -0x80, max: 0x7f })
    case 'int16':
      return fc.integer({ min: -0x8000, max: 0x7fff })
    case 'uint16':
      return fc.integer({ min: 0, max: 0xffff })
    case 'int32':
      return fc.integer()
    case 'int64':
      return fc.oneof(fc.maxSafeInteger(), fc.integer(), fc.constantFrom(tooLowInt64, tooHighInt64, -1))
    case 'int64Wide':
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    case 'float64':
      return fc.double({ noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'uuid':
      return fc.uint8Array({ minLength: 16, maxLength: 16 }).map(uuidFromBytes)
    case 'string':
      return fc.oneof(fc.string({ unit: 'grapheme', maxLength: 6 }), fc.string({ minLength: 40, maxLength: 200 }))
    case 'bytes':
    case 'records':
      return fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
    case 'struct':
      return arbitraryValue(field.fields, version)
    case 'array':
      return fc.array(arbitraryValue(field.fields, version), { maxLength: 3 })
    case 'arrayOf':
      return fc.array(arbitraryPresent(field.element!, version), { maxLength: 5 })
  }
}
