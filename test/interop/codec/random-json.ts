import fc from 'fast-check'
import { uuidFromBytes } from '../../../src/base/index.ts'
import type { FieldShape } from './definitions.ts'

/** A message as the JSON that Kafka's converters read, every field of `shapes` in it. Not made from our declarations. */
export function arbitraryJson(shapes: readonly FieldShape[]): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(Object.fromEntries(shapes.map((shape) => [shape.name, arbitraryField(shape)])), {
    noNullPrototype: true,
  })
}

function arbitraryField(shape: FieldShape): fc.Arbitrary<unknown> {
  const value = arbitraryPresent(shape)
  // Kafka's tagged fields are written when they differ from the default: half of the time they shall not.
  const orNull = shape.nullable ? fc.option(value, { freq: 4 }) : value
  const isPlain = typeof shape.default === 'number' || typeof shape.default === 'boolean'
  return shape.tag !== null && isPlain ? fc.oneof(orNull, fc.constant(shape.default)) : orNull
}

function arbitraryPresent({ type, fields }: FieldShape): fc.Arbitrary<unknown> {
  if (type === '[]struct') return fc.array(arbitraryJson(fields!), { maxLength: 3 })
  if (type === 'struct') return arbitraryJson(fields!)
  if (type.startsWith('[]')) return fc.array(arbitraryScalar(type.slice(2)), { maxLength: 5 })
  return arbitraryScalar(type)
}

function arbitraryScalar(type: string): fc.Arbitrary<unknown> {
  switch (type) {
    case 'int8':
      return fc.integer({ min: -0x80, max: 0x7f })
    case 'int16':
      return fc.integer({ min: -0x8000, max: 0x7fff })
    case 'uint16':
      return fc.integer({ min: 0, max: 0xffff })
    case 'int32':
      return fc.integer()
    case 'int64':
      return fc.oneof(fc.maxSafeInteger(), fc.integer(), fc.constant(-1))
    case 'float64':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'bool':
      return fc.boolean()
    case 'uuid':
      return fc.uint8Array({ minLength: 16, maxLength: 16 }).map(uuidFromBytes)
    case 'string':
      return fc.oneof(fc.string({ unit: 'grapheme', maxLength: 6 }), fc.string({ minLength: 40, maxLength: 200 }))
    case 'bytes':
    case 'records':
      return fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('base64'))
    default:
      throw new Error(`No values of type ${type} are made`)
  }
}
