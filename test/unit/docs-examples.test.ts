import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Broker, startBroker } from '../../src/index.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { describeWithPeer } from '../support/peers.ts'
import { runProgram } from '../support/programs.ts'
import { readmeExample, readmeExamples, root } from '../support/readme.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// From the source: the same examples from the package are in test/integration/package.test.ts.

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let broker: Broker
beforeAll(async () => {
  folder = await temporaryFolder()
  await makeProject(folder.path)
  broker = await startBroker()
})
afterAll(async () => {
  await broker.stop()
  await folder[Symbol.asyncDispose]()
})

/** An empty project in which `rookery` is the source of this repository. */
async function makeProject(path: string): Promise<void> {
  const modules = join(path, 'node_modules')
  await mkdir(join(modules, 'rookery'), { recursive: true })
  await writeFile(join(path, 'package.json'), JSON.stringify({ type: 'module' }))
  await writeFile(
    join(modules, 'rookery/package.json'),
    JSON.stringify({ type: 'module', exports: { '.': './index.js', './vitest': './vitest.js' } }),
  )
  for (const name of ['index', 'vitest']) {
    const source = JSON.stringify(pathToFileURL(join(root, `src/${name}.ts`)).href)
    const text = name === 'index' ? `export * from ${source}\n` : `export { default } from ${source}\n`
    await writeFile(join(modules, `rookery/${name}.js`), text)
  }
  for (const name of ['kafkajs', 'vitest']) await symlink(join(root, 'node_modules', name), join(modules, name))
}

async function runFile(name: string): Promise<string> {
  const path = join(folder.path, name)
  await writeFile(path, readmeExample(`file=${name}`, broker.bootstrapServers))
  const { exitCode, output } = await runProgram(process.execPath, [path])
  expect(exitCode, output).toBe(0)
  return output
}

test('every example that is marked is run here or from the package', () => {
  expect(readmeExamples().map(({ mark }) => mark)).toEqual([
    'file=hello.mjs',
    'kcat',
    'file=orders.test.ts',
    'file=options.ts',
    'file=extras.test.ts',
    'file=shared/vitest.config.ts',
    'file=shared/payments.test.ts',
    'rookery',
    'tasks',
    'file=node-1.properties',
    'cluster',
    'quorum',
    'file=controller-1.properties',
    'file=broker-11.properties',
    'roles',
    'second',
    'vote',
    'file=tls.properties',
    'tls',
    'file=cluster.test.ts',
    'chaos',
    'simulate',
  ])
})

test('the program of the first screen writes its record', async () => {
  await runFile('hello.mjs')
  const client = await connect(broker.bootstrapServers)
  const batches = await readPartition(client, 'greetings', 0)
  client.close()
  expect(batches.length).toBe(1)
})

test('the options of startBroker are as they are shown', async () => {
  expect(await runFile('options.ts')).toMatch(/localhost:\d+ [\w-]{22} \/.*rookery-/)
})

test.each([
  ['orders.test.ts', 1],
  ['extras.test.ts', 4],
  ['cluster.test.ts', 1],
])('the tests of %s pass', async (name, count) => {
  await writeFile(join(folder.path, name), readmeExample(`file=${name}`, broker.bootstrapServers))
  await runVitest(folder.path, [name], count)
})

test('the example of a broker for a whole run passes', async () => {
  const project = join(folder.path, 'shared')
  await mkdir(project)
  for (const name of ['shared/vitest.config.ts', 'shared/payments.test.ts']) {
    await writeFile(join(folder.path, name), readmeExample(`file=${name}`, broker.bootstrapServers))
  }
  await runVitest(project, [], 1)
})

async function runVitest(path: string, files: readonly string[], passed: number): Promise<void> {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  // Of its own it has 5 s for a test, which is enough for these where little else runs.
  const patient = ['--test-timeout=60000', '--hook-timeout=60000']
  const { exitCode, output } = await runProgram(
    process.execPath,
    [vitest, 'run', '--root', path, ...patient, ...files],
    {
      env: { VITEST: '', VITEST_WORKER_ID: '', VITEST_POOL_ID: '' },
    },
  )
  expect(exitCode, output).toBe(0)
  expect(output).toContain(`${passed} passed`)
}

describeWithPeer('kcat', "the first screen's kcat", () => {
  test('writes a record and reads all', async () => {
    const { exitCode, output, stdout } = await runProgram('sh', ['-ec', readmeExample('kcat', broker.bootstrapServers)])
    expect(exitCode, output).toBe(0)
    expect(stdout).toContain('en:hello')
  })
})
