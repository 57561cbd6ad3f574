import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { expect, test } from 'vitest'
import { freePorts } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { runProgram } from '../support/programs.ts'
import { readmeExample, root } from '../support/readme.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Ports of the README, in the order in which they get others here. */
const readmePorts = ['9191', '9192', '9193', '9092', '9094', '9096']

test("README's three nodes, from the files to the quorum", async () => {
  await using folder = await temporaryFolder()
  const ports = (await freePorts(3)).flatMap(({ client, controller }) => [client, controller])
  const here = (text: string) =>
    readmePorts.reduce((changed, port, index) => changed.replaceAll(`:${port}`, `:${ports[index]}`), text)
  const bin = join(folder.path, 'bin')
  await mkdir(bin)
  await writeFile(
    join(bin, 'rookery'),
    `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'src/cli/main.ts')}' "$@"\n`,
  )
  await chmod(join(bin, 'rookery'), 0o755)
  const env = { PATH: `${bin}${delimiter}${process.env.PATH}` }
  const run = (script: string) => runProgram('sh', ['-ec', script], { env, cwd: folder.path })
  await writeFile(join(folder.path, 'node-1.properties'), here(readmeExample('file=node-1.properties', '')))

  // The nodes keep the standard error open.
  const launched = await run(`exec 2> errors\n${here(readmeExample('cluster', ''))}\njobs -p > pids`)
  expect(launched.exitCode, launched.output).toBe(0)
  try {
    const log = async (id: number) => await readFile(join(folder.path, `node-${id}.log`), 'utf8').catch(() => '')
    for (const id of [1, 2, 3]) await until(async () => (await log(id)).includes('node started'), `node ${id}`, 30_000)
    const status = await run(here(readmeExample('quorum', '')))
    expect(status.exitCode, status.output).toBe(0)
    expect(status.stdout).toMatch(/^Leader [123] in epoch \d+; \d of 3 voters have all \d+ entries$/m)
  } finally {
    // The shell that started them is gone: who looks whether they have ended, too, is another.
    await run('for pid in $(cat pids); do kill $pid || true; while kill -0 $pid 2>&1; do sleep 0.05; done; done')
  }
}, 90_000)
