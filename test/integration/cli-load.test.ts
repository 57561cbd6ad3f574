import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { startBroker } from '../../src/index.ts'
import { runProgram } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const main = join(import.meta.dirname, '../../src/cli/main.ts')

/** The folders of src/ from which a command loads something: what it loads is most of what a short command takes. */
async function loadedFolders(args: readonly string[]): Promise<string[]> {
  await using folder = await temporaryFolder()
  const hook = join(folder.path, 'hook.mjs')
  await writeFile(
    hook,
    `import { registerHooks } from 'node:module'
    const folders = new Set()
    registerHooks({ load(url, context, next) {
      const match = /\\/src\\/([\\w-]+)\\//.exec(url)
      if (match !== null) folders.add(match[1])
      return next(url, context)
    } })
    process.on('exit', () => console.error('LOADED ' + [...folders].sort().join(' ')))`,
  )
  const { exitCode, stderr } = await runProgram(process.execPath, ['--import', pathToFileURL(hook).href, main, ...args])
  expect(exitCode, stderr).toBe(0)
  return /^LOADED (.*)$/m.exec(stderr)?.[1]?.split(' ') ?? []
}

test('a command loads what it needs and nothing of the broker', async () => {
  expect(await loadedFolders(['--version'])).toEqual(['base', 'cli'])
  expect(await loadedFolders(['completion', 'bash'])).toEqual(['base', 'cli'])
  await using broker = await startBroker({ topics: ['orders'] })
  const client = ['base', 'cli', 'network', 'platform', 'protocol']
  for (const command of [['topics', 'list'], ['consume', 'orders', '--last', '1'], ['groups', 'list'], ['cluster']]) {
    expect(await loadedFolders([...command, '-b', broker.bootstrapServers]), command.join(' ')).toEqual(client)
  }
})
