import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../support/programs.ts'
import { readmeExamples, root } from '../support/readme.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const tsc = (...args: string[]) =>
  runProgram(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...args], { timeoutMs: 150_000 })

test('the programs in README are accepted by strict TypeScript, with all declarations that they use', async () => {
  await using folder = await temporaryFolder()
  const types = join(folder.path, 'types')
  const built = await tsc('-p', join(root, 'tsconfig.build.json'), '--outDir', types)
  expect(built.exitCode, built.output).toBe(0)
  const files = readmeExamples()
    .map(({ mark, code }) => ({ name: /^file=(\S+\.ts)$/.exec(mark)?.[1], code }))
    .filter((file): file is { name: string; code: string } => file.name !== undefined)
  expect(files.map(({ name }) => name)).toContain('cluster.test.ts')
  for (const { name, code } of files) {
    await mkdir(dirname(join(folder.path, name)), { recursive: true })
    await writeFile(join(folder.path, name), code)
  }
  await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'))
  await writeFile(join(folder.path, 'package.json'), JSON.stringify({ type: 'module' }))
  const compilerOptions = {
    strict: true,
    skipLibCheck: false,
    noEmit: true,
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    paths: { rookery: ['./types/index.d.ts'], 'rookery/vitest': ['./types/vitest.d.ts'] },
  }
  const include = files.map(({ name }) => name)
  await writeFile(join(folder.path, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }))
  const { exitCode, output } = await tsc('-p', folder.path)
  expect(exitCode, output).toBe(0)
}, 180_000)
