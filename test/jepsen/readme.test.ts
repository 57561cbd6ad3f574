import { expect, test } from 'vitest'
import { runProgram } from '../support/programs.ts'
import { readmeExample, root } from '../support/readme.ts'

test("README's run of real processes, with one fault, breaks no promise", async () => {
  const command = readmeExample('chaos', '').replace('--minutes 2', '--times 1')
  const { exitCode, output } = await runProgram('sh', ['-e', '-c', command], { cwd: root, timeoutMs: 120_000 })
  expect(exitCode, output).toBe(0)
  expect(output).toContain('No promise was broken')
}, 130_000)

test("README's simulated clusters, one of each, break no promise", async () => {
  const commands = readmeExample('simulate', '')
    .replaceAll(/--seeds \d+/g, '--seeds 1')
    .replace(/ --state \S+/, '')
  const { exitCode, output } = await runProgram('sh', ['-e', '-c', commands], { cwd: root, timeoutMs: 120_000 })
  expect(exitCode, output).toBe(0)
  expect(output.match(/^1 seeds passed, 0 failed/gm)).toHaveLength(2)
}, 130_000)
