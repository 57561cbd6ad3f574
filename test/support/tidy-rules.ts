import type { SourceFile } from './source-files.ts'

/** What a rule saw and what it found. A rule that looked at nothing proves nothing: callers check `checked`. */
export interface Findings {
  /** How many files or imports the rule looked at. */
  readonly checked: number
  /** Each begins with the path of the file at fault. */
  readonly violations: readonly string[]
}

/** The row of each folder under src; an import points to a lower row. */
const rows: Readonly<Record<string, number>> = {
  'vitest.ts': 11,
  'index.ts': 10,
  cli: 10,
  console: 10,
  node: 9,
  api: 8,
  group: 7,
  transaction: 7,
  'coordinator-runtime': 6,
  security: 6,
  replication: 5,
  coordination: 5,
  controller: 4,
  metadata: 3,
  log: 3,
  raft: 3,
  network: 3,
  rpc: 3,
  protocol: 2,
  config: 2,
  telemetry: 2,
  platform: 1,
  base: 0,
}

/** The one file that may load Level. */
const levelAdapter = 'src/raft/storage/level-store.ts'

/** Where effects happen: the platform itself, gRPC's and Level's own, and the programs around a node. */
const effectsAllowed = ['src/platform/', 'src/rpc/', 'src/cli/', 'src/console/', levelAdapter]

const effectModules =
  /^(?:node:)?(?:fs|fs\/promises|net|tls|dns|dns\/promises|dgram|http|http2|https|worker_threads|child_process|cluster|timers|timers\/promises|perf_hooks|os)$/

/** Names that reach the world without an import, or whatever the import is called. */
const effectCalls: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Date.now', /\bDate\s*\.\s*now\b/],
  ['new Date()', /\bnew\s+Date\s*(?:\(\s*\)|(?![\w\s(]))/],
  ['performance.now', /\bperformance\s*\.\s*(?:now|timeOrigin|timerify|mark|measure|eventLoopUtilization)\b/],
  ['process.hrtime', /\bprocess\s*\.\s*hrtime\b/],
  ['process.env', /\bprocess\s*\.\s*env\b/],
  ['Math.random', /\bMath\s*\.\s*random\b/],
  ['crypto.randomUUID', /\brandomUUID\b/],
  ['random bytes of crypto', /\b(?:randomBytes|randomInt|randomFill|randomFillSync|getRandomValues)\b/],
  ['setTimeout', /\bsetTimeout\b/],
  ['setInterval', /\bsetInterval\b/],
  ['setImmediate', /\bsetImmediate\b/],
  ['AbortSignal.timeout', /\bAbortSignal\s*\.\s*timeout\b/],
  ['fetch of the web', /(?<![.\w$#])(?<!function )fetch\s*\(\s*['"`]/],
]

/** What node:zlib does at once; the rest runs in the thread pool or is a stream. */
const synchronousZlib = /^(?:\w+Sync|crc32|constants)$/

const inSource = (files: readonly SourceFile[]) => files.filter((file) => file.path.startsWith('src/'))

/** `src/log/index.ts` is in `log`; the folder of `src/index.ts` is `index.ts`. */
const folderOf = (path: string) => path.split('/')[1] ?? ''

/** An import from one folder to another points to a lower row. */
export function layering(files: readonly SourceFile[]): Findings {
  const violations: string[] = []
  let checked = 0
  for (const file of inSource(files)) {
    const own = folderOf(file.path)
    const ownRow = rows[own]
    if (ownRow === undefined) violations.push(`${file.path}: no row is known for src/${own}`)
    for (const { target, relative } of file.imports) {
      if (!relative) continue
      checked++
      const other = folderOf(target)
      const otherRow = rows[other]
      if (!target.startsWith('src/')) violations.push(`${file.path}: imports ${target}, which is no source`)
      else if (other === own || otherRow === undefined || ownRow === undefined) continue
      else if (otherRow >= ownRow) {
        violations.push(`${file.path}: row ${ownRow} imports ${target} of row ${otherRow}`)
      }
    }
  }
  return { checked, violations }
}

/** An import into another folder names a face: the `index.ts` of that folder or of a folder inside it. */
export function faces(files: readonly SourceFile[]): Findings {
  const violations: string[] = []
  let checked = 0
  for (const file of inSource(files)) {
    for (const { target, relative } of file.imports) {
      if (!relative || folderOf(target) === folderOf(file.path)) continue
      checked++
      if (!target.endsWith('/index.ts')) violations.push(`${file.path}: imports ${target} past its face`)
    }
  }
  return { checked, violations }
}

/** A face says what it is, in a comment at its top of three lines or more, and names what it exports. */
export function faceHeaders(files: readonly SourceFile[]): Findings {
  const violations: string[] = []
  const found = inSource(files).filter((file) => /^src\/(?:[^/]+\/)?index\.ts$/.test(file.path))
  for (const file of found) {
    const header = /^\/\*\*[\s\S]*?\*\//.exec(file.text)?.[0] ?? ''
    if (header.split('\n').length < 3)
      violations.push(`${file.path}: does not begin with a comment that says what it is`)
    if (/\bexport\s*\*/.test(file.code)) violations.push(`${file.path}: exports *; name what is exported`)
  }
  return { checked: found.length, violations }
}

/** No file needs itself to be loaded first. Types are gone by then and don't count. */
export function cycles(files: readonly SourceFile[]): Findings {
  const violations: string[] = []
  const byPath = new Map(inSource(files).map((file) => [file.path, file]))
  const done = new Set<string>()
  const open: string[] = []
  const visit = (file: SourceFile): void => {
    const again = open.indexOf(file.path)
    if (again >= 0) violations.push(`${file.path}: imports itself: ${[...open.slice(again), file.path].join(' -> ')}`)
    if (again >= 0 || done.has(file.path)) return
    open.push(file.path)
    for (const { target, typeOnly } of file.imports) {
      const next = typeOnly ? undefined : byPath.get(target)
      if (next !== undefined) visit(next)
    }
    open.pop()
    done.add(file.path)
  }
  for (const file of byPath.values()) visit(file)
  return { checked: byPath.size, violations }
}

/** Clocks, randomness, timers, files and sockets are reached through the platform's ports. */
export function effects(files: readonly SourceFile[]): Findings {
  const violations: string[] = []
  const found = inSource(files).filter((file) => !effectsAllowed.some((allowed) => file.path.startsWith(allowed)))
  for (const file of found) {
    for (const [name, pattern] of effectCalls) {
      if (pattern.test(file.code)) violations.push(`${file.path}: uses ${name}`)
    }
    for (const { target, typeOnly, names } of file.imports) {
      if (!typeOnly && effectModules.test(target)) violations.push(`${file.path}: imports ${target}`)
      if (!/^(?:node:)?zlib$/.test(target)) continue
      const calls = [...file.code.matchAll(/\bzlib(?:\(\))?\s*\.\s*(\w+)/g)].map((match) => match[1]!)
      const wrong = [...names, ...calls].filter((each) => !synchronousZlib.test(each))
      if (!typeOnly && wrong.length > 0) violations.push(`${file.path}: uses ${wrong.join(', ')} of zlib`)
    }
  }
  return { checked: found.length, violations }
}

/** gRPC stays in rpc/, Level in its adapter. */
export function confinedPackages(files: readonly SourceFile[]): Findings {
  const violations: string[] = []
  const found = inSource(files)
  for (const file of found) {
    for (const { target } of file.imports) {
      if (target.startsWith('@grpc/') && folderOf(file.path) !== 'rpc') {
        violations.push(`${file.path}: imports ${target} outside src/rpc`)
      }
      if (/^(?:level|classic-level|abstract-level)$/.test(target) && file.path !== levelAdapter) {
        violations.push(`${file.path}: imports ${target} outside ${levelAdapter}`)
      }
    }
  }
  return { checked: found.length, violations }
}

/** Every source file is used by the package, the program, a test or a benchmark. */
export function deadFiles(files: readonly SourceFile[]): Findings {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const isRoot = ({ path }: SourceFile) =>
    path === 'src/index.ts' || path === 'src/vitest.ts' || path === 'src/cli/main.ts' || !path.startsWith('src/')
  const reached = new Set<string>()
  const pending = files.filter(isRoot)
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (reached.has(file.path)) continue
    reached.add(file.path)
    for (const { target } of file.imports) {
      const next = byPath.get(target)
      if (next !== undefined) pending.push(next)
    }
  }
  const found = inSource(files)
  const dead = found.filter((file) => !reached.has(file.path))
  return { checked: found.length, violations: dead.map((file) => `${file.path}: nothing imports it`) }
}

/** Nothing is left from a session of debugging. */
export function leftovers(files: readonly SourceFile[]): Findings {
  const violations: string[] = []
  const report = (file: SourceFile, what: string) => violations.push(`${file.path}: has a leftover ${what}`)
  for (const file of files) {
    if (/\bdebugger\b\s*;?\s*$/m.test(file.code)) report(file, 'debugger')
    if (/\b(?:test|it|describe)\s*\.\s*only\b/.test(file.code)) report(file, '.only')
    if (!file.path.startsWith('src/')) continue
    const isProgram = file.path.startsWith('src/cli/')
    if (!isProgram && /(?<![.\w$])console\s*\.\s*\w+\s*\(/.test(file.code)) report(file, 'console call')
    if (/\b(?:TODO|FIXME|XXX)\b/.test(file.text)) report(file, 'note to do something')
  }
  return { checked: files.length, violations }
}
