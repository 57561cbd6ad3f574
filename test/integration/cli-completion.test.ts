import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Broker, startBroker } from '../../src/index.ts'
import { describeWithPeer } from '../support/peers.ts'
import { runProgram } from '../support/programs.ts'
import { rookery } from '../support/rookery-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const main = join(import.meta.dirname, '../../src/cli/main.ts')

let broker: Broker
let folder: Awaited<ReturnType<typeof temporaryFolder>>

beforeAll(async () => {
  folder = await temporaryFolder()
  broker = await startBroker({ topics: ['orders', 'orders-late', 'prices'] })
  const reset = ['groups', 'reset-offsets', 'team:a', '--to', 'beginning', '--topic', 'orders', '--execute']
  expect(await rookery([...reset, '-b', broker.bootstrapServers])).toMatchObject({ code: 0 })
  await writeFile(join(folder.path, 'rookery'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  await chmod(join(folder.path, 'rookery'), 0o755)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await rookery(['completion', shell])
    expect(code).toBe(0)
    await writeFile(join(folder.path, `completion.${shell}`), stdout)
  }
})

afterAll(async () => {
  await broker.stop()
  await folder[Symbol.asyncDispose]()
})

/** Where the cluster is asked: a broker that does not answer within 1.5 s is given up, and who types tries again. */
const patient = { timeout: 60_000, interval: 100 }

/** What a shell offers for a line with the cursor at its end, sorted. `BROKER` is the broker's address. */
type Complete = (line: string) => Promise<string[]>

async function answers(shell: string, args: readonly string[]): Promise<string[]> {
  const env = { PATH: `${folder.path}:${process.env.PATH}` }
  const { exitCode, stdout, output } = await runProgram(shell, args, { env, cwd: folder.path })
  expect(exitCode, output).toBe(0)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .sort()
}

/** As readline does: the words cut at its breaks, and the function called. */
const inBash: Complete = async (line) => {
  const script = `
    source completion.bash
    COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
    _rookery
    printf '%s\\n' "\${COMPREPLY[@]}"`
  return await answers('bash', ['--norc', '-c', script, 'bash', line])
}

/** zsh completes only in its line editor: its words are set, and what it is told to offer is printed. */
const inZsh: Complete = async (line) => {
  const script = `
    compdef() { }
    compadd() { [[ $1 == -- ]] && shift; print -rl -- $@ }
    _describe() { local list=$@[-1]; print -rl -- \${(P)list%%:*} }
    _files() { print files }
    compset() { }
    source ./completion.zsh
    words=("\${(@s: :)1}") CURRENT=$#words
    _rookery | while read -r each; do
      current=\${words[CURRENT]##*=}
      [[ $each == "$current"* ]] && print -r -- $each
    done
    true`
  return await answers('zsh', ['-f', '-c', script, 'zsh', line])
}

const inFish: Complete = async (line) => {
  const script = `source completion.fish; complete -C ${JSON.stringify(line)}`
  const lines = await answers('fish', ['--no-config', '-c', script])
  return lines.map((each) => each.split('\t')[0]!)
}

const shells = [
  ['bash', inBash],
  ['zsh', inZsh],
  ['fish', inFish],
] as const

for (const [shell, complete] of shells) {
  describeWithPeer(shell, `completion in ${shell}`, () => {
    const at = (line: string) => complete(line.replace('BROKER', broker.bootstrapServers))

    test('offers commands, and those of a command', async () => {
      expect(await at('rookery to')).toEqual(['topics'])
      expect(await at('rookery topics de')).toEqual(['delete', 'describe'])
      expect(await at('rookery log ')).toEqual(expect.arrayContaining(['dump', 'verify']))
    })

    test('offers options, and what one of few values can be', async () => {
      expect(await at('rookery topics create x --part')).toEqual(['--partitions'])
      expect(await at('rookery produce orders --compression z')).toEqual(['zstd'])
      expect(await at('rookery produce orders -z s')).toEqual(['snappy'])
    })

    test('offers the topics and groups of the cluster that the line names', async () => {
      await expect.poll(() => at('rookery topics describe -b BROKER ord'), patient).toEqual(['orders', 'orders-late'])
      await expect
        .poll(() => at('rookery consume --bootstrap-server BROKER --max 5 orders pr'), patient)
        .toEqual(['prices'])
      await expect.poll(() => at('rookery consume orders -b BROKER --group team'), patient).toEqual(['team:a'])
      await expect
        .poll(() => at('rookery groups reset-offsets -b BROKER team:a --topic pri'), patient)
        .toEqual(['prices'])
    })

    test('offers nothing, and says nothing, where nobody answers', async () => {
      expect(await at('rookery topics describe -b localhost:1 ord')).toEqual([])
    })

    test('a value of an option is no argument', async () => {
      expect(await at('rookery configs describe --timeout 5 to')).toEqual(['topic'])
    })
  })
}

test('what comes after a colon is offered without what bash takes for an earlier word', async () => {
  const line = `rookery groups describe -b ${broker.bootstrapServers} team:`
  await expect.poll(() => inBash(line), patient).toEqual(['a'])
})

test('an option and its value in one word', async () => {
  expect(await inBash('rookery produce orders --acks=a')).toEqual(['all'])
})

test('names come one a line, and nothing when the cluster can not be asked', async () => {
  const topics = () => rookery(['completion', '--names', 'topics', '-b', broker.bootstrapServers])
  const expected = { code: 0, stdout: expect.stringContaining('orders\norders-late\nprices\n'), stderr: '' }
  await expect.poll(topics, patient).toEqual(expected)
  const none = await rookery(['completion', '--names', 'groups', '-b', 'localhost:1'])
  expect(none).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(await rookery(['completion'])).toMatchObject({ code: 2, stderr: expect.stringContaining('bash, zsh or fish') })
})
