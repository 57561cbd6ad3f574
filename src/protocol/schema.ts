import { type Uuid, zeroUuid } from '../base/index.ts'
import { type VersionRange, versionRange } from './versions.ts'

/**
 * How messages are declared: a function for each of Kafka's types, whose result carries the TypeScript types of what is
 * read (`ValueOf`) and of what may be written (`InputOf`: fields with a default, and those that not every version has,
 * may be left out).
 */
export interface FieldOptions<Default> {
  /** Versions of the message that have the field, `3+` or `2-4`; all of them when left out. */
  readonly versions?: string
  /** Versions in which it may be null; `true` is all that have it. */
  readonly nullable?: true | string
  /** What it reads as in versions that lack it. When left out: zero, false, empty; null for `records`. */
  readonly default?: Default
  /** Writing a version that lacks it drops it silently; otherwise a value other than the default is an error. */
  readonly ignorable?: true
  /** Travels as a tagged field with this number, only when it differs from the default. */
  readonly tag?: number
}

type NoOptions = Record<never, never>

type ScalarKind =
  | 'int8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'int64'
  | 'int64Wide'
  | 'float64'
  | 'boolean'
  | 'uuid'
  | 'string'
  | 'bytes'
  | 'records'

/** One field as the codec compiler sees it. `types` exists for the type checker only. */
export interface Field<Value = unknown, Input = unknown, Omittable extends boolean = boolean> {
  readonly kind: ScalarKind | 'struct' | 'array' | 'arrayOf'
  /** Of a struct, or of each element of an array of structs. */
  readonly fields: Fields
  /** Of an array of plain values. */
  readonly element: Field | undefined
  readonly versions: VersionRange
  /** Undefined: never null. */
  readonly nullable: VersionRange | undefined
  readonly default: unknown
  readonly ignorable: boolean
  readonly tag: number | undefined
  readonly types?: { readonly value: Value; readonly input: Input; readonly omittable: Omittable }
}

export interface Fields {
  readonly [name: string]: Field
}

type Shown<T> = { [K in keyof T]: T[K] }
type FieldValue<F> = F extends Field<infer Value> ? Value : never
type FieldInput<F> = F extends Field<unknown, infer Input> ? Input : never
type RequiredNames<F extends Fields> = {
  [K in keyof F]: F[K] extends Field<unknown, unknown, false> ? K : never
}[keyof F]

export type ValueOf<F extends Fields> = Shown<{ readonly [K in keyof F]: FieldValue<F[K]> }>
export type InputOf<F extends Fields> = Shown<
  { readonly [K in RequiredNames<F>]: FieldInput<F[K]> } & {
    readonly [K in Exclude<keyof F, RequiredNames<F>>]?: FieldInput<F[K]> | undefined
  }
>

type Null<Options> = Options extends { readonly nullable: true | string } ? null : never
type Omittable<Options> = Options extends
  | { readonly versions: string }
  | { readonly default: unknown }
  | { readonly tag: number }
  ? true
  : false
type Plain<Value, Options> = Field<Value | Null<Options>, Value | Null<Options>, Omittable<Options>>

export function int8<const O extends FieldOptions<number> = NoOptions>(options?: O): Plain<number, O> {
  return scalar('int8', 0, options)
}

export function int16<const O extends FieldOptions<number> = NoOptions>(options?: O): Plain<number, O> {
  return scalar('int16', 0, options)
}

export function uint16<const O extends FieldOptions<number> = NoOptions>(options?: O): Plain<number, O> {
  return scalar('uint16', 0, options)
}

export function int32<const O extends FieldOptions<number> = NoOptions>(options?: O): Plain<number, O> {
  return scalar('int32', 0, options)
}

/** A number. What lies beyond 2^53 reads as one of the bounds in int64.ts, which are no safe integers. */
export function int64<const O extends FieldOptions<number> = NoOptions>(options?: O): Plain<number, O> {
  return scalar('int64', 0, options)
}

/** A bigint: for fields in which values beyond 2^53 have a meaning. */
export function int64Wide<const O extends FieldOptions<bigint> = NoOptions>(options?: O): Plain<bigint, O> {
  return scalar('int64Wide', 0n, options)
}

export function float64<const O extends FieldOptions<number> = NoOptions>(options?: O): Plain<number, O> {
  return scalar('float64', 0, options)
}

export function boolean<const O extends FieldOptions<boolean> = NoOptions>(options?: O): Plain<boolean, O> {
  return scalar('boolean', false, options)
}

export function uuid<const O extends FieldOptions<Uuid> = NoOptions>(options?: O): Plain<Uuid, O> {
  return scalar('uuid', zeroUuid, options)
}

export function string<const O extends FieldOptions<string | null> = NoOptions>(options?: O): Plain<string, O> {
  return scalar('string', '', options)
}

/** Read as a slice of the message's buffer, written as a copy. */
export function bytes<const O extends FieldOptions<null> = NoOptions>(options?: O): Plain<Buffer, O> {
  return scalar('bytes', Buffer.alloc(0), options)
}

/** Record batches: read as a slice of the message's buffer, written as the chunks they are. Null when there are none. */
export function records<const O extends FieldOptions<null> = NoOptions>(
  options?: O,
): Field<Buffer | null, Buffer | readonly Buffer[] | null, Omittable<O>> {
  return field('records', { nullable: true, ...options }, null)
}

export function struct<const F extends Fields, const O extends FieldOptions<null> = NoOptions>(
  fields: F,
  options?: O,
): Field<ValueOf<F> | Null<O>, InputOf<F> | Null<O>, Omittable<O>> {
  const defaults = Object.fromEntries(Object.entries(fields).map(([name, inner]) => [name, inner.default]))
  return field('struct', options, defaults, { fields })
}

/** An array of structs. */
export function array<const F extends Fields, const O extends FieldOptions<null> = NoOptions>(
  fields: F,
  options?: O,
): Field<readonly ValueOf<F>[] | Null<O>, readonly InputOf<F>[] | Null<O>, Omittable<O>> {
  return field('array', options, [], { fields })
}

/** An array of plain values: `arrayOf(int32())`. */
export function arrayOf<Value, Input, const O extends FieldOptions<null> = NoOptions>(
  element: Field<Value, Input, false>,
  options?: O,
): Field<readonly Value[] | Null<O>, readonly Input[] | Null<O>, Omittable<O>> {
  return field('arrayOf', options, [], { element })
}

function scalar<Value, const O extends FieldOptions<Value | null>>(
  kind: ScalarKind,
  zero: Value,
  options: O | undefined,
): Plain<Value, O> {
  return field(kind, options, zero)
}

function field(
  kind: Field['kind'],
  options: FieldOptions<unknown> | undefined,
  zero: unknown,
  inside: { readonly fields?: Fields; readonly element?: Field } = {},
): Field<never, never, never> {
  const versions = versionRange(options?.versions ?? '0+')
  return {
    kind,
    fields: inside.fields ?? {},
    element: inside.element,
    versions,
    nullable: typeof options?.nullable === 'string' ? versionRange(options.nullable) : options?.nullable && versions,
    default: options?.default === undefined ? zero : options.default,
    ignorable: options?.ignorable ?? false,
    tag: options?.tag,
  }
}
