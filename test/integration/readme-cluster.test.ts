import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { expect, test } from 'vitest'
import { portsOfNodes } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { describeWithPeer } from '../support/peers.ts'
import { runProgram } from '../support/programs.ts'
import { readmeExample, root } from '../support/readme.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Ports of the README, in the order in which they get others here. */
const readmePorts = ['9191', '9192', '9193', '9092', '9094', '9096']

test("README's three nodes, from the files to the quorum", async () => {
  await using example = await prepare(['node-1.properties'])
  const { run, here, log } = example
  // The nodes keep the standard error open.
  const launched = await run(`exec 2> errors\n${here(readmeExample('cluster', ''))}\njobs -p >> pids`)
  expect(launched.exitCode, launched.output).toBe(0)
  for (const id of [1, 2, 3]) {
    await until(async () => (await log(`node-${id}`)).includes('node started'), `node ${id}`)
  }
  const status = await run(here(readmeExample('quorum', '')))
  expect(status.exitCode, status.output).toBe(0)
  expect(status.stdout).toMatch(/^Leader [123] in epoch \d+; \d of 3 voters have all \d+ entries$/m)
})

test("README's controller and broker, and a second controller that gets a vote", async () => {
  await using example = await prepare(['controller-1.properties', 'broker-11.properties'])
  const { run, here, log } = example
  for (const name of ['roles', 'second']) {
    const launched = await run(`exec 2> errors\n${here(readmeExample(name, ''))}\njobs -p >> pids`)
    expect(launched.exitCode, launched.output).toBe(0)
  }
  await until(async () => (await log('broker-11')).includes('node started'), 'the broker')
  await until(async () => (await log('controller-2')).includes('controller registered'), 'the second controller')
  const added = await run(here(readmeExample('vote', '')))
  expect(added.exitCode, added.output).toBe(0)
  expect(added.stdout).toContain('Voter 2 added')
})

describeWithPeer('openssl', "README's certificates", () => {
  test('let the three nodes talk over TLS', async () => {
    await using example = await prepare(['node-1.properties', 'tls.properties'])
    const { run, here, log } = example
    const lines = here(readmeExample('cluster', '')).split('\n')
    const [files, start] = [
      lines.filter((line) => line.startsWith('sed')),
      lines.filter((line) => line.startsWith('for')),
    ]
    const launched = await run(
      ['exec 2> errors', ...files, readmeExample('tls', ''), ...start, 'jobs -p >> pids'].join('\n'),
    )
    expect(launched.exitCode, launched.output).toBe(0)
    for (const id of [1, 2, 3]) {
      await until(async () => (await log(`node-${id}`)).includes('node started'), `node ${id}`)
    }
    // A listener without TLS would take this.
    const port = /CONTROLLER:\/\/127\.0\.0\.1:(\d+)/.exec(here(readmeExample('file=node-1.properties', '')))?.[1]
    const asked = await run(
      `openssl s_client -connect 127.0.0.1:${port} -CAfile ca.pem -verify_return_error < /dev/null`,
    )
    expect(asked.exitCode, asked.output).toBe(0)
    const status = await run(here(readmeExample('quorum', '')))
    expect(status.stdout).toMatch(/^Leader [123] in epoch \d+; \d of 3 voters have all \d+ entries$/m)
  })
})

/** The README's files in a folder, with other ports, and the command rookery; ends what was started when it is disposed of. */
async function prepare(files: readonly string[]) {
  const folder = await temporaryFolder()
  const ports = (await portsOfNodes(3)).flatMap(({ client, controller }) => [client, controller])
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
  for (const file of files) await writeFile(join(folder.path, file), here(readmeExample(`file=${file}`, '')))
  return {
    run,
    here,
    log: async (node: string) => await readFile(join(folder.path, `${node}.log`), 'utf8').catch(() => ''),
    async [Symbol.asyncDispose]() {
      // The shell that started them is gone: who looks whether they have ended, too, is another.
      await run('for pid in $(cat pids); do kill $pid || true; while kill -0 $pid 2>&1; do sleep 0.05; done; done')
      await folder[Symbol.asyncDispose]()
    },
  }
}
