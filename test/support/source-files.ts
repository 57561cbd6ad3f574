import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'

/** One TypeScript file, read as text: enough to check imports and names, without a compiler. */
export interface SourceFile {
  /** From the root of the repository, with slashes: `src/log/index.ts`. */
  readonly path: string
  readonly text: string
  /** `text` with every comment blanked out; lines stay where they are. */
  readonly code: string
  readonly imports: readonly Import[]
}

export interface Import {
  /** The path of the file for a relative import, otherwise the module's name. */
  readonly target: string
  readonly relative: boolean
  /** Gone at run time: `import type`, `typeof import()`. */
  readonly typeOnly: boolean
  /** The names between the braces, as exported; empty when there are none. */
  readonly names: readonly string[]
}

export function sourceFile(path: string, text: string): SourceFile {
  const code = withoutComments(text)
  return { path, text, code, imports: importsOf(path, code) }
}

/** Every .ts file below the folders that are there, sorted by path. */
export function readSourceFiles(root: string, folders: readonly string[]): SourceFile[] {
  const files: SourceFile[] = []
  for (const folder of folders) {
    for (const path of typescriptFiles(join(root, folder))) {
      files.push(sourceFile(relative(root, path).replaceAll(sep, '/'), readFileSync(path, 'utf8')))
    }
  }
  return files.sort((left, right) => (left.path < right.path ? -1 : 1))
}

function typescriptFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => join(entry.parentPath, entry.name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** A string ends at its quote, or at the end of the line when that is missing (a quote in a regular expression). */
const stringOrComment = /'(?:\\.|[^'\\\n])*'?|"(?:\\.|[^"\\\n])*"?|`(?:\\.|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g

function withoutComments(text: string): string {
  return text.replaceAll(stringOrComment, (match) => (match.startsWith('/') ? match.replaceAll(/[^\n]/g, ' ') : match))
}

const fromClause = /\b(?:import|export)\s+(type\s+)?([\w$*{}\s,]+?)\s*\bfrom\s*(['"])([^'"\n]+)\3/g
const bareImport = /\bimport\s*(['"])([^'"\n]+)\1/g
const importCall = /(\btypeof\s+)?\b(?:import|require|getBuiltinModule)\s*\(\s*(['"])([^'"\n]+)\2/g
/** A worker's file. Its ending may be the one of the file that starts it: `./worker${extension}`. */
const urlOfFile = /\bnew URL\(\s*(['"`])(\.[^'"`\n]+)\1\s*,\s*import\.meta\.url/g

function importsOf(path: string, code: string): Import[] {
  const found: Import[] = []
  const add = (specifier: string, typeOnly: boolean, names: readonly string[]) => {
    const isRelative = specifier.startsWith('.')
    const target = isRelative ? posix.join(posix.dirname(path), specifier) : specifier
    found.push({ target, relative: isRelative, typeOnly, names })
  }
  for (const match of code.matchAll(fromClause)) add(match[4]!, match[1] !== undefined, namesIn(match[2]!))
  for (const match of code.matchAll(bareImport)) add(match[2]!, false, [])
  for (const match of code.matchAll(importCall)) add(match[3]!, match[1] !== undefined, [])
  for (const match of code.matchAll(urlOfFile)) add(match[2]!.replace(/\$\{\w+\}$/, '.ts'), false, [])
  return found
}

function namesIn(clause: string): string[] {
  const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? ''
  return braces
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '))
    .map((name) => name.split(/\s+as\s+/)[0]!)
}
