import { messageOf } from '../base/index.ts'
import { UsageError } from './exit.ts'

/** How the bytes of a key or a value are text. */
export type DataFormat = 'text' | 'json' | 'hex' | 'base64'

export const dataFormats: readonly DataFormat[] = ['text', 'json', 'hex', 'base64']

/** The bytes that `text` stands for. `place` says in errors what and where it is. Throws `UsageError`. */
export function parseData(text: Buffer, format: DataFormat, place: string): Buffer {
  switch (format) {
    case 'text':
      return text
    case 'json':
      try {
        JSON.parse(text.toString('utf8'))
      } catch (error) {
        throw new UsageError(`${place} is not JSON: ${messageOf(error)}`, { cause: error })
      }
      return text
    case 'hex': {
      const digits = text.toString('latin1')
      if (/^(?:[0-9a-f]{2})*$/i.test(digits)) return Buffer.from(digits, 'hex')
      throw new UsageError(`${place} is not hexadecimal: allowed are pairs of the digits 0 to 9 and a to f`)
    }
    case 'base64': {
      const base64 = text.toString('latin1')
      if (isBase64(base64)) return Buffer.from(base64, 'base64')
      throw new UsageError(`${place} is not base64`)
    }
  }
}

/** With or without padding; not the variant for URLs. */
export function isBase64(text: string): boolean {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return false
  const digits = text.replace(/=+$/, '').length
  return digits % 4 !== 1 && (text.length === digits || text.length % 4 === 0)
}

/**
 * The text that stands for `bytes`. JSON becomes one line; what is no JSON is shown as a JSON string. Text is the bytes as they
 * are.
 */
export function formatData(bytes: Buffer, format: DataFormat): Buffer {
  switch (format) {
    case 'text':
      return bytes
    case 'json': {
      const json = jsonOf(bytes)
      return Buffer.from(JSON.stringify(json === undefined ? bytes.toString() : json.value))
    }
    case 'hex':
      return Buffer.from(bytes.toString('hex'))
    case 'base64':
      return Buffer.from(bytes.toString('base64'))
  }
}

/** Undefined for what is no JSON. */
export function jsonOf(bytes: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(bytes.toString('utf8')) as unknown }
  } catch {
    return undefined // a syntax error
  }
}

const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', '\\': '\\' }

/**
 * A separator as kcat takes it: shells pass few control characters on, so `\t`, `\n`, `\\` and `\x1f` stand for one. Any other text is
 * what it is.
 */
export function parseSeparator(text: string): string {
  return text.replaceAll(/\\(?:x([0-9a-fA-F]{2})|([tn\\]))/g, (_all, hex: string | undefined, sign: string) => {
    return hex === undefined ? escapes[sign]! : String.fromCharCode(Number.parseInt(hex, 16))
  })
}
