import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readSourceFiles, type SourceFile, sourceFile } from '../support/source-files.ts'
import {
  confinedPackages,
  cycles,
  deadFiles,
  effects,
  type Findings,
  faceHeaders,
  faces,
  layering,
  leftovers,
} from '../support/tidy-rules.ts'

type Rule = (files: readonly SourceFile[]) => Findings

const root = join(import.meta.dirname, '../..')
const repository = readSourceFiles(root, ['src', 'test', 'bench', 'scripts'])
  // This file plants what the rules look for.
  .filter((file) => file.path !== 'test/unit/tidy.test.ts')

const rules: Readonly<Record<string, Rule>> = {
  'an import points to a lower row': layering,
  'another folder is imported through its face': faces,
  'a face says what it is': faceHeaders,
  'no file imports itself through others': cycles,
  'effects go through the platform': effects,
  'gRPC and Level each stay in their place': confinedPackages,
  'no file is dead': deadFiles,
  'nothing is left from debugging': leftovers,
}

describe('the source', () => {
  test.each(Object.entries(rules))('%s', (_name, rule) => {
    const { checked, violations } = rule(repository)
    expect(violations).toEqual([])
    expect(checked, 'what the rule looked at').toBeGreaterThan(0)
  })
})

/** What `rule` says of a repository that is only these files. */
function violationsIn(rule: Rule, files: Readonly<Record<string, string>>): readonly string[] {
  return rule(Object.entries(files).map(([path, text]) => sourceFile(path, text))).violations
}

/** `rule` finds something in each of these files, one at a time. */
function expectCaught(rule: Rule, path: string, texts: readonly string[]): void {
  for (const text of texts) expect(violationsIn(rule, { [path]: text }), text).not.toEqual([])
}

function expectAllowed(rule: Rule, path: string, texts: readonly string[]): void {
  for (const text of texts) expect(violationsIn(rule, { [path]: text }), text).toEqual([])
}

describe('the rules', () => {
  test('see nothing in nothing', () => {
    for (const rule of Object.values(rules)) expect(rule([]).checked).toBe(0)
  })

  test('catch an import that points up or sideways, in each of its forms', () => {
    expectCaught(layering, 'src/log/partition-log.ts', [
      "import { a } from '../node/index.ts'",
      "import type { A } from '../raft/index.ts'",
      "import { a,\n  b } from '../api/index.ts'",
      "import '../api/index.ts'",
      "export { a } from '../controller/index.ts'",
      "const a = await import('../api/index.ts')",
      "type A = typeof import('../api/index.ts')",
      "const a = require('../api/index.ts')",
      "import { a } from '../../test/support/a.ts'",
    ])
    expectCaught(layering, 'src/unheard-of/index.ts', ['export const a = 1'])
    expectAllowed(layering, 'src/log/partition-log.ts', [
      "import { a } from '../platform/index.ts'",
      "import { a } from './segment.ts'",
      "// import { a } from '../node/index.ts'",
      "/* import { a } from '../node/index.ts' */",
      "const text = '/*'; import { a } from '../base/index.ts'; const more = '*/'",
    ])
  })

  test('catch an import past a face', () => {
    expectCaught(faces, 'src/log/partition-log.ts', ["import { a } from '../base/ids.ts'"])
    expectAllowed(faces, 'src/log/partition-log.ts', [
      "import { a } from '../base/index.ts'",
      "import { a } from '../platform/simulated/index.ts'",
      "import { a } from './segment.ts'",
    ])
  })

  test('catch a face without a header, or with nameless exports', () => {
    const header = '/**\n * log: segments.\n */\n'
    expectCaught(faceHeaders, 'src/log/index.ts', [
      'export const a = 1',
      '/** log */',
      `${header}export * from './a.ts'`,
    ])
    expectAllowed(faceHeaders, 'src/log/index.ts', [`${header}export { a } from './a.ts'`])
    expectCaught(faceHeaders, 'src/index.ts', ['export const a = 1'])
  })

  test('catch files that import each other', () => {
    const two = (kind: string) => ({
      'src/log/a.ts': `import { b } from './b.ts'`,
      'src/log/b.ts': `import ${kind}{ c } from './c.ts'`,
      'src/log/c.ts': `import { a } from './a.ts'`,
    })
    expect(violationsIn(cycles, two(''))).toEqual([
      'src/log/a.ts: imports itself: src/log/a.ts -> src/log/b.ts -> src/log/c.ts -> src/log/a.ts',
    ])
    expect(violationsIn(cycles, two('type '))).toEqual([])
  })

  test('catch effects, but not where they belong', () => {
    const planted = [
      'const now = Date.now()',
      'const now = Date\n  .now()',
      'const { now } = { now: Date.now }',
      'const now = new Date()',
      'const now = new Date',
      'performance.now()',
      'process.hrtime.bigint()',
      'process.env.LAG',
      'Math.random()',
      "import { randomUUID } from 'node:crypto'",
      'crypto.getRandomValues(bytes)',
      'setTimeout(run, 5)',
      'setInterval(run, 5)',
      'setImmediate(run)',
      'AbortSignal.timeout(5)',
      "await fetch('https://example.org')",
      "import { readFileSync } from 'node:fs'",
      "import { readFile } from 'fs/promises'",
      "import net from 'node:net'",
      "import tls from 'node:tls'",
      "import dns from 'node:dns'",
      "import { Worker } from 'node:worker_threads'",
      "const fs = await import('node:fs')",
      "process.getBuiltinModule('node:fs')",
      "import { gzip } from 'node:zlib'",
      "import zlib from 'node:zlib'\nzlib.createGzip()",
    ]
    expectCaught(effects, 'src/log/partition-log.ts', planted)
    for (const path of ['src/platform/real/a.ts', 'src/cli/main.ts', 'src/rpc/a.ts'])
      expectAllowed(effects, path, planted)
    expectAllowed(effects, 'src/log/partition-log.ts', [
      '// setTimeout is not for us, nor is Date.now',
      '/** Not Math.random. */',
      'const shown = new Date(timestampMs)',
      "import { gunzipSync, constants, crc32 } from 'node:zlib'",
      "import type { Stats } from 'node:fs'",
      'log.fetch(request)',
      'this.clock.now()',
    ])
  })

  test('catch gRPC and Level outside their places', () => {
    expectCaught(confinedPackages, 'src/raft/driver.ts', [
      "import { Level } from 'level'",
      "import { ClassicLevel } from 'classic-level'",
      "import { Server } from '@grpc/grpc-js'",
      "const grpc = await import('@grpc/grpc-js')",
    ])
    expectAllowed(confinedPackages, 'src/raft/storage/level-store.ts', ["import { Level } from 'level'"])
    expectAllowed(confinedPackages, 'src/rpc/server.ts', ["import { Server } from '@grpc/grpc-js'"])
  })

  test('catch a file that nothing imports', () => {
    const files = {
      'src/index.ts': "import './a.ts'",
      'src/a.ts': "new URL('./worker.ts', import.meta.url)",
      'src/worker.ts': 'new URL(`./other${extension}`, import.meta.url)',
      'src/other.ts': '',
      'src/dead.ts': "import './deader.ts'",
      'src/deader.ts': '',
      'src/tested.ts': '',
      'test/unit/tested.test.ts': "import '../../src/tested.ts'",
    }
    expect(violationsIn(deadFiles, files)).toEqual([
      'src/dead.ts: nothing imports it',
      'src/deader.ts: nothing imports it',
    ])
  })

  test('catch what is left from debugging', () => {
    expectCaught(leftovers, 'src/log/a.ts', ["console.log('here')", 'debugger', '// TODO later', '/* FIXME */'])
    expectCaught(leftovers, 'test/unit/a.test.ts', ["test.only('a', () => {})", "describe.only('a', () => {})"])
    expectAllowed(leftovers, 'src/cli/main.ts', ["console.log('table')"])
    expectAllowed(leftovers, 'test/unit/a.test.ts', ["console.log('skipped')", "test('.only', () => {})"])
  })
})
