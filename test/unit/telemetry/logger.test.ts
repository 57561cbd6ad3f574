import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { humanLine } from '../../../src/telemetry/human-line.ts'
import { createLogger, type LogLevel, silentLogger } from '../../../src/telemetry/index.ts'

function collecting(level: LogLevel | 'silent', format: 'json' | 'human' = 'json') {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const logger = createLogger({ level, format, destination, name: 'rookery', clock: { now: () => 1_250 } })
  return { lines, logger }
}

describe('createLogger', () => {
  test('writes one JSON object a line, with the time of the clock it was given', () => {
    const { lines, logger } = collecting('debug')
    logger.info({ partition: 3 }, 'isr shrunk')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/\n$/)
    expect(JSON.parse(lines[0]!)).toEqual({
      level: 'info',
      time: 1250,
      name: 'rookery',
      partition: 3,
      msg: 'isr shrunk',
    })
  })

  test('writes the fields of the parents in the lines of a child', () => {
    const { lines, logger } = collecting('debug')
    logger.child({ topic: 'orders' }).child({ partition: 1 }).warn({ lagMs: 5 }, 'replica is behind')
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 'warn', topic: 'orders', partition: 1, lagMs: 5 })
  })

  test('writes only levels from its own on', () => {
    const { lines, logger } = collecting('warn')
    logger.debug({}, 'one')
    logger.info({}, 'two')
    logger.warn({}, 'three')
    logger.error({}, 'four')
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['three', 'four'])
  })

  test('writes an error with its message, stack and cause', () => {
    const { lines, logger } = collecting('info')
    logger.error({ error: new Error('Write failed', { cause: new Error('Disk is full') }) }, 'log directory is offline')
    const { error } = JSON.parse(lines[0]!)
    expect(error).toMatchObject({ type: 'Error', message: 'Write failed', cause: { message: 'Disk is full' } })
    expect(error.stack).toContain('logger.test.ts')
  })

  test('is the silent logger at level silent', () => {
    expect(collecting('silent').logger).toBe(silentLogger)
  })

  test('lays a line out for a person', () => {
    const { lines, logger } = collecting('info', 'human')
    logger.info({ topic: 'orders', note: 'two words', isr: [1, 2] }, 'isr shrunk')
    logger.warn({}, 'no fields')
    expect(lines).toEqual([
      '00:00:01.250 info  isr shrunk  topic=orders note="two words" isr=[1,2]\n',
      '00:00:01.250 warn  no fields\n',
    ])
  })
})

describe('silentLogger', () => {
  test('neither it nor its module loads pino', () => {
    const face = join(import.meta.dirname, '../../../src/telemetry/index.ts')
    const program = `
      import { registerHooks } from 'node:module'
      registerHooks({ resolve(specifier, context, next) {
        if (specifier === 'pino') { console.log('loaded pino'); }
        return next(specifier, context)
      } })
      const { createLogger, silentLogger } = await import(${JSON.stringify(face)})
      silentLogger.child({ a: 1 }).error({}, 'nothing')
      console.log('silent done')
      createLogger({ level: 'info', format: 'json', destination: process.stdout, name: 'x', clock: { now: () => 0 } })
    `
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
    expect(run.stderr).toBe('')
    expect(run.stdout).toBe('silent done\nloaded pino\n')
  })
})

describe('humanLine', () => {
  test('shows the stack of an error on lines of its own', () => {
    const error = { type: 'Error', message: 'Write failed', stack: 'Error: Write failed\n    at here' }
    const line = humanLine(JSON.stringify({ level: 'error', time: 0, msg: 'offline', error }), false)
    expect(line).toBe('00:00:00.000 error offline  error="Write failed"\n  Error: Write failed\n      at here\n')
  })

  test('lets no control character of a field through to the terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (value, stack) => {
        const line = humanLine(JSON.stringify({ level: 'info', time: 0, msg: 'm', value, error: { stack } }), false)
        expect(line.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
      }),
    )
  })

  test('gives back what is no JSON object', () => {
    for (const line of ['', 'plain\n', '1', 'null', '{']) expect(humanLine(line, false)).toBe(line)
  })

  test('colours the level when asked', () => {
    expect(humanLine('{"level":"error","time":0,"msg":"m"}', true)).toContain('\u001b[31merror\u001b[39m')
  })
})
