import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Broker, startBroker } from '../../src/index.ts'
import { runProgram, startProgram } from '../support/programs.ts'
import { readmeExample } from '../support/readme.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const main = join(import.meta.dirname, '../../src/cli/main.ts')

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let broker: Broker
let env: Record<string, string>

beforeAll(async () => {
  folder = await temporaryFolder()
  broker = await startBroker({ storage: join(folder.path, 'data') })
  await writeFile(join(folder.path, 'rookery'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  await chmod(join(folder.path, 'rookery'), 0o755)
  env = { PATH: `${folder.path}:${process.env.PATH}`, KAFKA_BOOTSTRAP_SERVERS: broker.bootstrapServers }
})

afterAll(async () => {
  await broker.stop()
  await folder[Symbol.asyncDispose]()
})

interface Task {
  readonly title: string
  readonly commands: readonly string[]
}

/** The tasks of the README, with the commands of each. */
function tasks(): readonly Task[] {
  return readmeExample('tasks', '')
    .split('# ')
    .slice(1)
    .map((text) => {
      const [title = '', ...lines] = text.split('\n')
      return { title, commands: lines.filter((line) => line !== '') }
    })
}

/** What each task prints, in the README's order. */
const expected: readonly RegExp[] = [
  /^Topic orders created with 3 partitions$/m,
  /"records":1,[\s\S]*2 records written to orders/,
  /^orders-\d@0 \S+Z key=anna shop=7 \{"item":"latte"\}$/m,
  /"key":"ben","value":"tea"[\s\S]*PARTITION +FIRST +END +AT/,
  /^kitchen: Empty, lag \d+, 0 members/m,
  /WOULD BE[\s\S]*Nothing was changed[\s\S]*NEW OFFSET|NEW OFFSET[\s\S]*Nothing was changed/,
  /^Topic orders altered$[\s\S]*retention\.ms=86400000/m,
  /^Cluster \S+: 1 node[\s\S]*^OK +partitions/m,
  /no faults[\s\S]*OFFSETS +RECORDS/,
  /^Group kitchen deleted$[\s\S]*^Topic orders deleted$/m,
]

test("README's ten everyday tasks, one after the other", async () => {
  const all = tasks()
  expect(all.map(({ title }) => title.split('.')[0])).toEqual(expected.map((_, i) => String(i + 1)))
  for (const [i, { title, commands }] of all.entries()) {
    let output = ''
    for (const command of commands) {
      // The one that is ended by Ctrl-C.
      if (command === 'rookery consume orders --key-separator :') await watch(command)
      else {
        const finished = await runProgram('sh', ['-ec', command], { env, cwd: folder.path })
        expect(finished.exitCode, finished.output).toBe(0)
        output += finished.stdout + finished.stderr
      }
    }
    expect(output, title).toMatch(expected[i]!)
  }
})

/** Writes until the command shows it; then ends it. */
async function watch(command: string): Promise<void> {
  const program = startProgram('sh', ['-ec', `exec ${command}`], { env, cwd: folder.path })
  let isShown = false
  const shown = program
    .until(({ stdout }) => stdout.includes('dora:mocha\n'), 'the record')
    .then(() => {
      isShown = true
    })
  while (!isShown) {
    await runProgram('sh', ['-ec', "echo 'dora:mocha' | rookery produce orders -k :"], { env })
    await Promise.race([shown, new Promise((resolve) => setImmediate(resolve))])
  }
  program.kill('SIGINT')
  expect((await program.ended()).exitCode).toBe(0)
}
