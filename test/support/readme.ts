import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** A block of code in README.md that says how it is run: `js file=hello.mjs`, `sh kcat`. */
export interface ReadmeExample {
  /** What the fence says after the language. */
  readonly mark: string
  readonly code: string
}

/** The examples that are marked to be run. */
export function readmeExamples(): readonly ReadmeExample[] {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
  return [...text.matchAll(/^```\w+ (\S.*)\n([\s\S]*?)^```$/gm)].map(([, mark = '', code = '']) => ({ mark, code }))
}

/** The one example of that mark, with the broker that it is to talk to in place of the default one. */
export function readmeExample(mark: string, bootstrapServers: string): string {
  const found = readmeExamples().filter((example) => example.mark === mark)
  if (found.length !== 1) throw new Error(`README.md has ${found.length} examples marked '${mark}'`)
  return found[0]!.code.replaceAll('localhost:9092', bootstrapServers)
}
