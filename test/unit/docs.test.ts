import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { withGeneratedParts } from '../../scripts/generate-readme.ts'
import { root } from '../support/readme.ts'

const documents = (['README.md', 'ARCHITECTURE.md'] as const).map((name) => ({
  name,
  text: readFileSync(join(root, name), 'utf8'),
}))

describe.each(documents)('$name', ({ name, text }) => {
  test('has what the code says of APIs, commands, defaults and accepted differences; `npm run docs` writes it anew', () => {
    expect(text).toBe(withGeneratedParts(name, text))
  })

  test('names only files and folders that exist', () => {
    const paths = [...codeSpans(text)].filter(isPath)
    expect(paths.filter((path) => !places.some((place) => exists(join(root, place, path))))).toEqual([])
  })

  test('links only to files that exist', () => {
    const targets = [...text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target)
    const local = targets.filter((target) => !/^[a-z]+:/.test(target))
    expect(local.filter((target) => !exists(join(root, target)))).toEqual([])
  })

  test('names only tests that exist', () => {
    for (const { file, title } of namedTests(text)) {
      expect(readFileSync(join(root, 'test', file), 'utf8'), `${file}: ${title}`).toContain(title)
    }
  })
})

test('what is taken for a path, or for the name of a test, in the documents', () => {
  const spans = ['log/segment.ts', 'log/', '.ci/', 'a.b', '--json', '<topic>-<partition>/', 'ARCHITECTURE.md']
  expect(spans.filter(isPath)).toEqual(['log/segment.ts', 'log/', '.ci/', 'ARCHITECTURE.md'])
  expect([...namedTests('`unit/a.test.ts`: "does\nthis"')]).toEqual([{ file: 'unit/a.test.ts', title: 'does this' }])
})

test("ARCHITECTURE.md's file map has every folder with source files", () => {
  const map = sectionOf(documents[1]!.text, '## 7. File map')
  const spans = new Set(codeSpans(map))
  expect(foldersOf(join(root, 'src'), '').filter((folder) => !spans.has(folder))).toEqual([])
})

test("ARCHITECTURE.md's invariants each name the test behind them", () => {
  const rows = sectionOf(documents[1]!.text, '## 8. Invariants')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
  expect(rows.length).toBeGreaterThan(0)
  expect(rows.filter((row) => [...namedTests(row)].length === 0)).toEqual([])
})

/** Paths are said from the root, or from src/ or test/. */
const places = ['', 'src', 'test']

/** The texts between backticks, of lines that are not in a block of code. */
function* codeSpans(text: string): Iterable<string> {
  for (const [, span = ''] of text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g)) yield span
}

function isPath(span: string): boolean {
  return /^\.?[\w-]+(?:[./][\w-]+)*\.(?:ts|cjs|sh|md|txt)$/.test(span) || /^(?:[\w.-]+\/)+$/.test(span)
}

/** `` `unit/log/crash.test.ts`: "after a power loss" `` names a test by its file and a part of its title. */
function* namedTests(text: string): Iterable<{ readonly file: string; readonly title: string }> {
  for (const [, file = '', title = ''] of text.matchAll(/`([\w/.-]+\.test\.ts)`:\s+"([^"]+)"/g))
    yield { file, title: title.replace(/\s+/g, ' ') }
}

function sectionOf(text: string, heading: string): string {
  const from = text.indexOf(`\n${heading}`)
  expect(from, heading).toBeGreaterThan(0)
  const to = text.indexOf('\n## ', from + 1)
  return text.slice(from, to < 0 ? undefined : to)
}

/** `log/`, `raft/core/`: every folder below `path` that holds TypeScript files. */
function foldersOf(path: string, prefix: string): string[] {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      const folder = `${prefix}${name}/`
      const inside = foldersOf(join(path, name), folder)
      return readdirSync(join(path, name)).some((file) => file.endsWith('.ts')) ? [folder, ...inside] : inside
    })
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}
