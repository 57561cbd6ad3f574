/** Kafka's type of a key, as DescribeConfigs answers it. CLASS is not used by any key declared here. */
export type KeyType = 'BOOLEAN' | 'STRING' | 'INT' | 'SHORT' | 'LONG' | 'DOUBLE' | 'LIST' | 'PASSWORD'

/** A declared setting: its name on the outside, its typed value on the inside. Made by the builders below, frozen. */
export interface Key<T> {
  readonly name: string
  readonly type: KeyType
  /** As a properties file would have it; null is "not set", and then the value is null too. */
  readonly defaultText: string | null
  /** Kafka's default where Rookery's is another one; the documentation says why. */
  readonly kafkaDefaultText: string | null
  /** The default while the quorum has a single voter, when it differs from `defaultText`. */
  readonly singleNodeDefaultText: string | null
  readonly documentation: string
  /** In words, for error messages: 'a whole number from 0 to 2147483647'. */
  readonly allowed: string
  /** May be changed while the broker runs, for one broker or for all. */
  readonly dynamic: boolean
  /** Its value is shown nowhere. */
  readonly sensitive: boolean
  /** Accepted, but not listed in DescribeConfigs. */
  readonly internal: boolean
  /** The value of a text; undefined when the text is not allowed. Never throws. */
  parse(text: string): Parsed<T> | undefined
}

export interface Parsed<T> {
  readonly value: T
  /** The text in Kafka's canonical form: trimmed, numbers without '+' or leading zeros, and all their digits. */
  readonly text: string
}

/** A key of any value type. */
export type AnyKey = Key<unknown>

/** Typed values by declared property. A key without a default may be null. */
export type ValuesOf<Keys> = { readonly [Name in keyof Keys]: Keys[Name] extends Key<infer T> ? T : never }

interface Options {
  readonly doc: string
  /** False when left out. */
  readonly dynamic?: boolean
  readonly internal?: boolean
}

interface Defaults<T> {
  readonly default: T
  readonly kafkaDefault?: T
  readonly singleNodeDefault?: T
}

interface NumberOptions<T extends number | null> extends Options, Defaults<T> {
  /** Included. */
  readonly min?: number
  /** Included. */
  readonly max?: number
  /** A value between the two that is not allowed all the same. */
  readonly except?: number
}

interface LongOptions<T extends bigint | number | null> extends Options, Defaults<T> {
  /** Included. */
  readonly min?: number
}

interface TextOptions<T extends string | null> extends Options, Defaults<T> {
  /** Every text when left out. */
  readonly oneOf?: readonly string[]
}

interface ListOptions<T extends readonly string[] | null> extends Options, Defaults<T> {
  /** Every element when left out. */
  readonly oneOf?: readonly string[]
  /** What each element looks like. */
  readonly elements?: RegExp
  /** An element that may be the only one, whatever `elements` says. */
  readonly alone?: string
  /** True: an element may stand in it more than once. */
  readonly repeats?: boolean
}

/** A group of keys, frozen; the property names are how code reads the values. */
export function declareKeys<const Keys extends Readonly<Record<string, AnyKey>>>(keys: Keys): Readonly<Keys> {
  return Object.freeze(keys)
}

/** INT: a whole number of 32 bits. */
export function int(name: string, options: NumberOptions<number>): Key<number>
export function int(name: string, options: NumberOptions<number | null>): Key<number | null>
export function int(name: string, options: NumberOptions<number | null>): Key<number> | Key<number | null> {
  return whole(name, 'INT', 32, options)
}

/** SHORT: a whole number of 16 bits. */
export function short(name: string, options: NumberOptions<number>): Key<number> {
  return whole(name, 'SHORT', 16, options) as Key<number>
}

function whole(name: string, type: KeyType, bits: number, options: NumberOptions<number | null>): Key<number | null> {
  const min = options.min ?? -(2 ** (bits - 1))
  const max = options.max ?? 2 ** (bits - 1) - 1
  const { except } = options
  const allowed = `a whole number from ${min} to ${max}${except === undefined ? '' : ` but not ${except}`}`
  return key<number | null>(name, type, options, allowed, (text) => {
    const number = wholeNumber(text)
    if (number === undefined || number < min || number > max || Number(number) === except) return undefined
    return { value: Number(number), text: number.toString() }
  })
}

/**
 * LONG: a whole number of 64 bits. A value past 2^53 - 1 (Kafka's 9223372036854775807 for "no limit") is read as Infinity,
 * which compares and subtracts as "no limit" should; its text keeps every digit. Never give such a value to a timer.
 */
export function long(name: string, options: LongOptions<bigint | number>): Key<number>
export function long(name: string, options: LongOptions<bigint | number | null>): Key<number | null>
export function long(name: string, options: LongOptions<bigint | number | null>): Key<number> | Key<number | null> {
  const min = options.min ?? -maxLong - 1n
  return key<number | null>(name, 'LONG', options, `a whole number from ${min} to ${maxLong}`, (text) => {
    const whole = wholeNumber(text)
    if (whole === undefined || whole < min || whole > maxLong) return undefined
    return { value: numberOfLong(whole), text: whole.toString() }
  })
}

/** 2^63 - 1, which Kafka writes for "no limit". */
export const maxLong = 9223372036854775807n

/** The number to compute with: ±Infinity for what a number can't hold exactly. */
function numberOfLong(whole: bigint): number {
  if (whole > Number.MAX_SAFE_INTEGER) return Number.POSITIVE_INFINITY
  if (whole < Number.MIN_SAFE_INTEGER) return Number.NEGATIVE_INFINITY
  return Number(whole)
}

/** DOUBLE: a decimal number, never NaN or infinite. */
export function double(name: string, options: NumberOptions<number>): Key<number> {
  const min = options.min ?? -Number.MAX_VALUE
  const max = options.max ?? Number.MAX_VALUE
  return key<number>(name, 'DOUBLE', options, `a number from ${min} to ${max}`, (text) => {
    if (!/^[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,5})?$/.test(text)) return undefined
    const value = Number(text)
    return Number.isFinite(value) && value >= min && value <= max ? { value, text } : undefined
  })
}

/** BOOLEAN: true or false, in any case. */
export function boolean(name: string, options: Options & Defaults<boolean>): Key<boolean> {
  return key<boolean>(name, 'BOOLEAN', options, 'true or false', (text) => {
    const lower = text.toLowerCase()
    return lower === 'true' || lower === 'false' ? { value: lower === 'true', text: lower } : undefined
  })
}

/** STRING: any text, or one of a few. */
export function string(name: string, options: TextOptions<string>): Key<string>
export function string(name: string, options: TextOptions<string | null>): Key<string | null>
export function string(name: string, options: TextOptions<string | null>): Key<string> | Key<string | null> {
  const { oneOf } = options
  return key<string | null>(name, 'STRING', options, oneOf === undefined ? 'a text' : alternatives(oneOf), (text) =>
    oneOf === undefined || oneOf.includes(text) ? { value: text, text } : undefined,
  )
}

/** STRING that is one of `oneOf`, typed as such. */
export function enumOf<const Value extends string>(
  name: string,
  options: Options & Defaults<NoInfer<Value>> & { readonly oneOf: readonly Value[] },
): Key<Value> {
  return key<Value>(name, 'STRING', options, alternatives(options.oneOf), (text) => {
    const value = options.oneOf.find((one) => one === text)
    return value === undefined ? undefined : { value, text: value }
  })
}

/** LIST: elements between commas, none empty and, unless it says so, none twice; the empty text is the empty list. */
export function list(name: string, options: ListOptions<readonly string[]>): Key<readonly string[]>
export function list(name: string, options: ListOptions<readonly string[] | null>): Key<readonly string[] | null>
export function list(
  name: string,
  options: ListOptions<readonly string[] | null>,
): Key<readonly string[]> | Key<readonly string[] | null> {
  const { oneOf, elements, alone, repeats = false } = options
  const what = oneOf === undefined ? 'texts' : `any of ${oneOf.join(', ')}`
  const isElement = (each: string) => elements === undefined || elements.test(each)
  const allowed = `${what}, between commas${repeats ? '' : ', each once'}`
  return key<readonly string[] | null>(name, 'LIST', options, allowed, (text) => {
    const value = text === '' ? [] : text.split(',').map((element) => element.trim())
    if (value.includes('') || (!repeats && new Set(value).size !== value.length)) return undefined
    const isAlone = value.length === 1 && value[0] === alone
    if (!isAlone && !value.every(isElement)) return undefined
    if (oneOf !== undefined && !value.every((element) => oneOf.includes(element))) return undefined
    return { value: Object.freeze(value), text: value.join(',') }
  })
}

/** STRING: `name:count` pairs between commas, each name once; counts of 0 to 2^31 - 1. */
export function counts(
  name: string,
  options: Options & { readonly names: RegExp; readonly what: string },
): Key<ReadonlyMap<string, number>> {
  const { names, what } = options
  return key<ReadonlyMap<string, number>>(
    name,
    'STRING',
    { ...options, default: '' },
    `${what}:count, between commas`,
    (text) => {
      const value = new Map<string, number>()
      for (const pair of text === '' ? [] : text.split(',')) {
        const [, one = '', count = ''] = /^(.+):(\d{1,10})$/.exec(pair.trim()) ?? []
        if (!names.test(one) || Number(count) >= 2 ** 31 || value.has(one)) return undefined
        value.set(one, Number(count))
      }
      return { value, text: [...value].map(([one, count]) => `${one}:${count}`).join(',') }
    },
  )
}

/** PASSWORD: a text that no message, log line or answer shows. */
export function password(name: string, options: TextOptions<string | null>): Key<string | null> {
  return key<string | null>(name, 'PASSWORD', options, 'a text', (text) => ({ value: text, text }), true)
}

/** Far more than any sensible value; keeps the work for a hostile one small. */
const maxTextLength = 65_536

function key<T>(
  name: string,
  type: KeyType,
  options: Options & Defaults<unknown>,
  allowed: string,
  parse: (trimmed: string) => Parsed<T> | undefined,
  sensitive = false,
): Key<T> {
  return Object.freeze({
    name,
    type,
    defaultText: textOf(options.default),
    kafkaDefaultText: textOf(options.kafkaDefault),
    singleNodeDefaultText: textOf(options.singleNodeDefault),
    documentation: options.doc,
    allowed,
    dynamic: options.dynamic ?? false,
    sensitive,
    internal: options.internal ?? false,
    parse: (text: string) => (text.length > maxTextLength ? undefined : parse(text.trim())),
  })
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null
  // Where a number needs an exponent, as Java writes it.
  return Array.isArray(value) ? value.join(',') : String(value).replace(/^([\d.]+)e\+?(-?\d+)$/, '$1E$2')
}

/** The whole number that Java's parser would read; undefined for anything else, and for more digits than 64 bits need. */
function wholeNumber(text: string): bigint | undefined {
  if (!/^[+-]?\d{1,40}$/.test(text)) return undefined
  return BigInt(text.startsWith('+') ? text.slice(1) : text)
}

function alternatives(values: readonly string[]): string {
  if (values.length === 1 && values[0] === '') return 'an empty value alone: there is none of that kind yet'
  return values.map((value) => (value === '' ? 'an empty value' : value)).join(' or ')
}
