import { existsSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { portsOfNodes } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { type Outcome, type RunningProgram, runProgram, startProgram } from '../support/programs.ts'
import { readmeExample, root } from '../support/readme.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// The package as a user gets it: packed, installed in an empty project, run as compiled JavaScript.

interface PackedFile {
  readonly path: string
  readonly size: number
}
interface Packed {
  readonly filename: string
  readonly size: number
  readonly files: readonly PackedFile[]
}

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let project: string
let packed: Packed
/** Why the package could not be installed here; undefined when it was. */
let missing: string | undefined

beforeAll(async () => {
  folder = await temporaryFolder()
  project = join(folder.path, 'project')
  await mkdir(project)
  packed = await pack(folder.path)
  missing = await install(join(folder.path, packed.filename))
  if (missing === undefined) return
  if (process.env.ROOKERY_REQUIRE_PEERS === '1') throw new Error(missing)
  process.stderr.write(`SKIPPED: the installed package: ${missing}\n`)
}, 180_000)
afterAll(() => folder[Symbol.asyncDispose]())

async function pack(destination: string): Promise<Packed> {
  const { exitCode, stdout, output } = await npm(root, 'pack', '--json', '--pack-destination', destination)
  expect(exitCode, output).toBe(0)
  // npm 11 gives a list, npm 12 an object by name; what scripts print may come before either.
  const json = JSON.parse(stdout.slice(stdout.search(/^[[{]$/m))) as Packed[] | Record<string, Packed>
  return Object.values(json)[0]!
}

/** From npm's cache where it has everything, from the registry otherwise. */
async function install(tarball: string): Promise<string | undefined> {
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'project', private: true, type: 'module' }))
  const { exitCode, output } = await npm(project, 'install', '--prefer-offline', tarball, 'kafkajs@2')
  if (exitCode === 0) return undefined
  if (/\b(ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/.test(output)) {
    return 'npm cannot reach its registry, and its cache lacks something'
  }
  throw new Error(output)
}

function npm(cwd: string, ...args: string[]): Promise<Outcome> {
  const quiet = ['--loglevel=error', '--no-audit', '--no-fund', '--no-progress']
  return runProgram('npm', ['--prefix', cwd, ...args, ...quiet], { timeoutMs: 120_000 })
}

function node(...args: string[]): Promise<Outcome> {
  return runProgram(process.execPath, args)
}

function vitest(...args: string[]): Promise<Outcome> {
  // Of its own it has 5 s for a test, which is enough for these where little else runs.
  const patient = ['--test-timeout=60000', '--hook-timeout=60000']
  return node(join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...patient, ...args)
}

async function linkTestTools(): Promise<void> {
  await mkdir(installed('@types'), { recursive: true })
  for (const name of ['vitest', '@types/node']) {
    if (!existsSync(installed(name))) await symlink(join(root, 'node_modules', name), installed(name))
  }
}

const installed = (path: string) => join(project, 'node_modules', path)

test('the tarball has the compiled sources, the documents, the messages between nodes, and nothing else', () => {
  const others = packed.files.map(({ path }) => path).filter((path) => !path.startsWith('dist/'))
  const documents = ['ARCHITECTURE.md', 'CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
  expect(others.sort()).toEqual([...documents, 'proto/node.proto'])
  const compiled = packed.files.map(({ path }) => path).filter((path) => path.startsWith('dist/'))
  const withoutSource = compiled.filter((path) => {
    const source = path.replace(/^dist\//, 'src/').replace(/(\.d\.ts|\.js|\.js\.map)$/, '.ts')
    return !path.startsWith('dist/chunks/') && !existsSync(join(root, source))
  })
  expect(withoutSource).toEqual([])
  const entries = compiled.filter((path) => path.endsWith('.js') && !path.startsWith('dist/chunks/'))
  expect(entries.sort()).toEqual(['dist/cli/main.js', 'dist/index.js', 'dist/vitest.js'])
  expect(compiled).toContain('dist/index.d.ts')
  expect(compiled.filter((path) => path.includes('simulated'))).toEqual([])
  expect(packed.size).toBeLessThan(2_000_000)
})

describe('the installed package', () => {
  test("runs README's program with all options, and ends by itself", async ({ skip }) => {
    skip(missing !== undefined, missing)
    const path = join(project, 'options.ts')
    await writeFile(path, readmeExample('file=options.ts', ''))
    const { exitCode, output } = await node(path)
    expect(exitCode, output).toBe(0)
    expect(output).toMatch(/localhost:\d+ [\w-]{22} \/.*rookery-/)
  })

  test("runs README's tests", async ({ skip }) => {
    skip(missing !== undefined, missing)
    await linkTestTools()
    for (const name of ['orders.test.ts', 'extras.test.ts']) {
      await writeFile(join(project, name), readmeExample(`file=${name}`, ''))
    }
    const { exitCode, output } = await vitest('--root', project, '--dir', project, 'orders.test.ts', 'extras.test.ts')
    expect(exitCode, output).toBe(0)
    expect(output).toContain('5 passed')
  })

  test("runs README's test with the broker of a whole run", async ({ skip }) => {
    skip(missing !== undefined, missing)
    await linkTestTools()
    await mkdir(join(project, 'shared'), { recursive: true })
    for (const name of ['shared/vitest.config.ts', 'shared/payments.test.ts']) {
      await writeFile(join(project, name), readmeExample(`file=${name}`, ''))
    }
    await writeFile(join(project, 'shared/setup.ts'), ownSetup)
    await writeFile(join(project, 'shared/own.config.ts'), ownConfig)
    await writeFile(join(project, 'shared/own.check.ts'), ownCheck)
    const shared = await vitest('--root', join(project, 'shared'))
    expect(shared.exitCode, shared.output).toBe(0)
    expect(shared.output).toContain('1 passed')
    const own = await vitest('--root', join(project, 'shared'), '--config', 'own.config.ts')
    expect(own.exitCode, own.output).toBe(0)
    expect(own.output).toContain('2 passed')
  })

  test('has types that strict TypeScript accepts, with those of its own declarations', async ({ skip }) => {
    skip(missing !== undefined, missing)
    await writeFile(join(project, 'wrong.ts'), misuse)
    await writeFile(join(project, 'cluster.test.ts'), readmeExample('file=cluster.test.ts', ''))
    const compilerOptions = { strict: true, noEmit: true, skipLibCheck: false, ...targetOptions }
    await writeFile(
      join(project, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, include: ['*.ts', 'shared/*.test.ts', 'shared/setup.ts'] }),
    )
    const { exitCode, output } = await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', project)
    expect(exitCode, output).toBe(0)
  })

  test('unpacks batches in a worker thread, and loads what it loads late', async ({ skip }) => {
    skip(missing !== undefined, missing)
    const path = join(project, 'packed.mjs')
    await writeFile(path, packedRecords)
    const { exitCode, stdout, output } = await node(path)
    expect(exitCode, output).toBe(0)
    expect(stdout).toContain('a record without a key is refused')
  })

  test('starts a node among others, with its control plane in a thread', async ({ skip }) => {
    skip(missing !== undefined, missing)
    const [ports] = await portsOfNodes(1)
    const overrides = [
      `log.dirs=${join(folder.path, 'quorum')}`,
      `listeners=PLAINTEXT://127.0.0.1:${ports!.client},CONTROLLER://127.0.0.1:${ports!.controller}`,
      'controller.listener.names=CONTROLLER',
      `controller.quorum.bootstrap.servers=127.0.0.1:${ports!.controller}`,
    ]
    const args = ['start', '--log-format', 'json', ...overrides.flatMap((each) => ['--override', each])]
    const voter = startProgram(installed('.bin/rookery'), args)
    await voter.until(({ stdout }) => stdout.includes('node started'), 'it serves')
    await voter.until(({ stdout }) => stdout.includes('became the controller'), 'its thread tells that it leads')
    voter.kill('SIGTERM')
    const { exitCode, output } = await voter.ended()
    expect(exitCode, output).toBe(0)
  })

  describe('as a program', () => {
    let broker: RunningProgram
    let bootstrapServers = ''
    beforeAll(async () => {
      if (missing !== undefined) return
      const overrides = [`log.dirs=${join(folder.path, 'data')}`, 'listeners=PLAINTEXT://localhost:0']
      const args = ['start', '--log-format', 'json', ...overrides.flatMap((each) => ['--override', each])]
      broker = startProgram(installed('.bin/rookery'), args)
      await broker.until(({ stdout }) => stdout.includes('node started'), 'it serves')
      bootstrapServers = `localhost:${/"port":(\d+)/.exec(broker.stdout)?.[1]}`
    })
    afterAll(async () => {
      broker?.kill('SIGTERM')
      await broker?.ended()
    })

    test('says where it serves and where its data is', async ({ skip }) => {
      skip(missing !== undefined, missing)
      await until(() => broker.stdout.includes(join(folder.path, 'data')), 'it names its folder')
      expect(broker.stdout).toContain(bootstrapServers)
    })

    test("takes README's commands", async ({ skip }) => {
      skip(missing !== undefined, missing)
      const commands = readmeExample('rookery', bootstrapServers)
        .split('\n')
        .map((line) => line.replace(/(npx rookery .*)/, `$1 --bootstrap-server ${bootstrapServers}`))
      const { exitCode, stdout, output } = await runProgram('sh', ['-ec', `cd ${project}\n${commands.join('\n')}`])
      expect(exitCode, output).toBe(0)
      expect(stdout).toContain('Topic payments created with 3 partitions')
      expect(stdout).toMatch(/^anna:10$/m)
      expect(stdout).toMatch(/^payments +\d +\d+ +\d+ +0 /m)
    })

    test('loads little for a short command', async ({ skip }) => {
      skip(missing !== undefined, missing)
      const hook = join(project, 'hook.mjs')
      await writeFile(hook, loadedFiles)
      const args = [installed('rookery/dist/cli/main.js'), 'topics', 'list', '-b', bootstrapServers]
      const { exitCode, stderr, output } = await node('--import', pathToFileURL(hook).href, ...args)
      expect(exitCode, output).toBe(0)
      const loaded = JSON.parse(/^LOADED (.*)$/m.exec(stderr)?.[1] ?? '[]') as { name: string; bytes: number }[]
      expect(loaded.map(({ name }) => name)).toContain('dist/cli/main.js')
      // All of it are 1.5 MB, in a hundred files before they were bundled.
      expect(loaded.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(400_000)
      expect(loaded.length).toBeLessThan(40)
    })

    test("takes README's first program", async ({ skip }) => {
      skip(missing !== undefined, missing)
      const path = join(project, 'hello.mjs')
      await writeFile(path, readmeExample('file=hello.mjs', bootstrapServers))
      const { exitCode, output } = await node(path)
      expect(exitCode, output).toBe(0)
      const args = ['consume', 'greetings', '--from', 'beginning', '--exit', '--bootstrap-server', bootstrapServers]
      expect((await runProgram(installed('.bin/rookery'), args)).stdout).toBe('hallo\n')
    })

    test('ends cleanly when it is told to', async ({ skip }) => {
      skip(missing !== undefined, missing)
      broker.kill('SIGTERM')
      expect((await broker.ended()).exitCode).toBe(0)
      expect(broker.stdout).toContain('node stopped')
    })
  })
})

/** Tells which files of the package were loaded. */
const loadedFiles = `import { registerHooks } from 'node:module'
const loaded = []
registerHooks({ load(url, context, next) {
  const result = next(url, context)
  const name = /\\/rookery\\/(dist\\/.*)/.exec(url)?.[1]
  if (name !== undefined) loaded.push({ name, bytes: result.source.length })
  return result
} })
process.on('exit', () => console.error('LOADED ' + JSON.stringify(loaded)))
`

const targetOptions = { module: 'nodenext', target: 'es2024', lib: ['es2024', 'esnext.disposable'], types: ['node'] }

/** Types that let everything pass would accept this. */
const misuse = `import { type Broker, type BrokerOptions, ConfigError, startBroker } from 'rookery'
const options: BrokerOptions = { topics: ['orders'], config: { 'num.partitions': 2 } }
const broker: Broker = await startBroker(options)
const port: number = broker.port
const directory: string | undefined = broker.dataDirectory
// @ts-expect-error: there is no such option
await startBroker({ topic: ['orders'] })
// @ts-expect-error: it is read only
broker.port = port
// @ts-expect-error: there is no such error
broker.faults.failNext({ api: 'Produce', error: 'NOT_LEADER' })
// @ts-expect-error: there is no such API
broker.faults.delay({ api: 'Produces' }, 10)
// @ts-expect-error: its clock goes by itself
broker.clock
// @ts-expect-error: there is no such state
await broker.waitForGroup('g', 'Steady')
const { clock } = await startBroker({ clock: 'manual' })
await clock.advance(10)
const [record] = await broker.records('orders')
const text: string | null | undefined = record?.valueText
export { text }
export { ConfigError, directory }
`

/** A set-up of a project's own, and what sees that its options hold; a declared topic is there, another is not made. */
const ownSetup = `import { rookeryGlobalSetup } from 'rookery/vitest'
export default rookeryGlobalSetup({ topics: ['declared'], config: { 'auto.create.topics.enable': false } })
`
const ownConfig = `import { defineConfig } from 'vitest/config'
export default defineConfig({ test: { globalSetup: ['./setup.ts'], include: ['own.check.ts'] } })
`
const ownCheck = `import kafkajs from 'kafkajs'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
const { Kafka, logLevel } = kafkajs
const { bootstrapServers, port, clusterId } = inject('rookery')
const admin = new Kafka({ brokers: [bootstrapServers], logLevel: logLevel.NOTHING }).admin()
beforeAll(() => admin.connect())
afterAll(() => admin.disconnect())
test('the declared topic', async () => expect(await admin.listTopics()).toEqual(['declared']))
test('the cluster', async () => expect(await admin.describeCluster()).toMatchObject({ clusterId, brokers: [{ port }] }))
`

/** Records in a compacted topic are unpacked to look for their keys. */
const packedRecords = `import kafkajs from 'kafkajs'
import { startBroker } from 'rookery'
const { CompressionTypes, Kafka, logLevel } = kafkajs
const broker = await startBroker({
  storage: 'temporary',
  topics: [{ name: 'packed', configs: { 'cleanup.policy': 'compact' } }],
})
const producer = new Kafka({ brokers: [broker.bootstrapServers], logLevel: logLevel.NOTHING }).producer()
await producer.connect()
const send = (message) => producer.send({ topic: 'packed', compression: CompressionTypes.GZIP, messages: [message] })
await send({ key: 'a', value: 'x'.repeat(10_000) })
await send({ value: 'no key' }).then(
  () => console.log('a record without a key is taken'),
  () => console.log('a record without a key is refused'),
)
await producer.disconnect()
await broker.stop()
`
