import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatScript, parseScript, ScriptRunner } from './script-runner.ts'

/** Writes what the commands print into the scripts, for a diff to read. */
const isRewriting = process.env.ROOKERY_REWRITE === '1'

const scripts = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.txt'))

test.each(scripts)('%s', (name) => {
  const path = join(import.meta.dirname, name)
  const text = readFileSync(path, 'utf8')
  const steps = parseScript(text)
  expect(steps.length).toBeGreaterThan(0)
  const runner = new ScriptRunner()
  const actual = formatScript(
    steps,
    steps.map(({ command }) => runner.run(command)),
  )
  if (isRewriting) writeFileSync(path, actual)
  else expect(actual).toBe(text)
})
