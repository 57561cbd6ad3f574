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
  await writeFile(join(modules, 'rookery/package.json'), JSON.stringify({ type: 'module', exports: './index.js' }))
  const source = pathToFileURL(join(root, 'src/index.ts')).href
  await writeFile(join(modules, 'rookery/index.js'), `export * from ${JSON.stringify(source)}\n`)
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
    'rookery',
    'tasks',
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

test('the example of a test passes', async () => {
  const path = join(folder.path, 'orders.test.ts')
  await writeFile(path, readmeExample('file=orders.test.ts', broker.bootstrapServers))
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const { exitCode, output } = await runProgram(process.execPath, [vitest, 'run', '--root', folder.path], {
    env: { VITEST: '', VITEST_WORKER_ID: '', VITEST_POOL_ID: '' },
  })
  expect(exitCode, output).toBe(0)
  expect(output).toContain('1 passed')
})

describeWithPeer('kcat', "the first screen's kcat", () => {
  test('writes a record and reads all', async () => {
    const { exitCode, output, stdout } = await runProgram('sh', ['-ec', readmeExample('kcat', broker.bootstrapServers)])
    expect(exitCode, output).toBe(0)
    expect(stdout).toContain('en:hello')
  })
})
