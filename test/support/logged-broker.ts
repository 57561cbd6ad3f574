import { expect } from 'vitest'
import { type Broker, type BrokerLogger, type BrokerOptions, startBroker } from '../../src/index.ts'
import { recordsOfAnyAge } from './records-of-any-age.ts'

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** A broker in this process, and what it says. */
export interface LoggedBroker extends AsyncDisposable {
  readonly broker: Broker
  readonly bootstrapServers: string
  readonly logLines: readonly LogLine[]
  /** Lines of a level that someone is to look at. */
  complaints(): LogLine[]
}

/** Starts a broker on files in a temporary folder; disposing of it fails the test when the broker logged an error. */
export async function startLoggedBroker(options: BrokerOptions = {}): Promise<LoggedBroker> {
  const logLines: LogLine[] = []
  const config = { ...recordsOfAnyAge, ...options.config }
  const broker = await startBroker({ storage: 'temporary', ...options, config, logger: collector(logLines, {}) })
  const complaints = () => logLines.filter(({ level }) => level === 'warn' || level === 'error')
  return {
    broker,
    bootstrapServers: broker.bootstrapServers,
    logLines,
    complaints,
    [Symbol.asyncDispose]: async () => {
      await broker.stop()
      expect(logLines.filter(({ level }) => level === 'error')).toEqual([])
    },
  }
}

function collector(lines: LogLine[], context: Record<string, unknown>): BrokerLogger {
  const add = (level: LogLine['level']) => (fields: Record<string, unknown>, message: string) => {
    lines.push({ level, message, fields: { ...context, ...fields } })
  }
  return {
    child: (fields) => collector(lines, { ...context, ...fields }),
    debug: add('debug'),
    info: add('info'),
    warn: add('warn'),
    error: add('error'),
  }
}
