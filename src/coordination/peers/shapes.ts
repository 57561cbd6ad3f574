import { isUuid } from '../../base/index.ts'

/** Whether a value that came from another node has the form that a request must have. */
export type Shape = (value: unknown) => boolean

export const text: Shape = (value) => typeof value === 'string'
export const flag: Shape = (value) => typeof value === 'boolean'
/** A whole number of JavaScript's safe range. */
export const whole: Shape = (value) => Number.isSafeInteger(value)
/** An id in Kafka's text form. */
export const uuid: Shape = (value) => typeof value === 'string' && isUuid(value)

export function oneOf(...allowed: readonly string[]): Shape {
  return (value) => typeof value === 'string' && allowed.includes(value)
}

export function nullable(shape: Shape): Shape {
  return (value) => value === null || shape(value)
}

export function either(...shapes: readonly Shape[]): Shape {
  return (value) => shapes.some((shape) => shape(value))
}

export function arrayOf(shape: Shape): Shape {
  return (value) => Array.isArray(value) && value.every((each) => shape(each))
}

export function mapOf(key: Shape, content: Shape): Shape {
  return (value) => value instanceof Map && [...value].every(([each, of]) => key(each) && content(of))
}

/** Fields that may be missing are in `optional`. Others than those named are ignored: a newer node may say more. */
export function struct(fields: Readonly<Record<string, Shape>>, optional: Readonly<Record<string, Shape>> = {}): Shape {
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    const found = value as Readonly<Record<string, unknown>>
    return (
      Object.entries(fields).every(([name, shape]) => shape(found[name])) &&
      Object.entries(optional).every(([name, shape]) => found[name] === undefined || shape(found[name]))
    )
  }
}
