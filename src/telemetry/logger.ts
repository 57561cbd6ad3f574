import { createRequire } from 'node:module'
import type { Clock } from '../platform/index.ts'
import { humanLine } from './human-line.ts'

/** Data of a log line. An `error` field may be an Error: it is written with its type, message, stack and causes. */
export type LogFields = Readonly<Record<string, unknown>>

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/**
 * Where a part of a node reports. `error`: someone must act; `warn`: service is degraded; `info`: a state changed; `debug`:
 * one per request; nothing is logged per record. The message is fixed and in lower case, what varies is in the fields.
 */
export interface Logger {
  /** A logger whose lines also have `fields`. */
  child(fields: LogFields): Logger
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

export interface LoggerOptions {
  /** The lowest level that is written; 'silent' writes nothing. */
  readonly level: LogLevel | 'silent'
  /** Gets whole lines with their newline: process.stdout, or a test's array. */
  readonly destination: { write(line: string): unknown }
  /** 'json': one JSON object a line, for programs. 'human': time, level, message and fields, for a terminal. */
  readonly format: 'json' | 'human'
  /** The `name` field of every line. */
  readonly name: string
  /** Where a line's time comes from, so that a simulated node's log is simulated too. */
  readonly clock: Pick<Clock, 'now'>
  /** In the 'human' format: colours. */
  readonly colors?: boolean
}

/** Writes nothing, and loads nothing. */
export const silentLogger: Logger = Object.freeze({
  child: () => silentLogger,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
})

/** pino's JSON lines, or the same lines laid out for a person. pino is loaded here, not before. */
export function createLogger(options: LoggerOptions): Logger {
  const { level, destination, clock, format } = options
  if (level === 'silent') return silentLogger
  const require = createRequire(import.meta.url)
  const { pino } = require('pino') as typeof import('pino')
  const layOut = { write: (line: string) => destination.write(humanLine(line, options.colors ?? false)) }
  return pino(
    {
      level,
      base: { name: options.name },
      timestamp: () => `,"time":${clock.now()}`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.errWithCause },
    },
    format === 'human' ? layOut : { write: (line: string) => destination.write(line) },
  )
}

function nothing(): void {
  // A level that is off.
}
