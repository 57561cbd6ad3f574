/**
 * Writes the parts of the documents that are facts of the code. README.md: the APIs and their versions, the commands, the
 * defaults that differ from Kafka's. ARCHITECTURE.md: the differences that the oracle accepts. A test fails when they are stale.
 *
 *     node scripts/generate-readme.ts        npm run docs
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { servedApis } from '../src/api/index.ts'
import { createProgram } from '../src/cli/program.ts'
import { type AnyKey, brokerKeys } from '../src/config/index.ts'
import { acceptedDifferences } from '../test/oracle/accepted-differences.ts'

const parts = {
  'README.md': { apis, commands, defaults },
  'ARCHITECTURE.md': { differences },
} as const

/** `text`, of that document, with each part anew between its markers. Throws when a marker is missing. */
export function withGeneratedParts(document: keyof typeof parts, text: string): string {
  let result = text
  for (const [name, generate] of Object.entries<() => string>(parts[document])) {
    const begin = `<!-- generated: ${name} -->\n`
    const end = `<!-- end of ${name} -->`
    const from = result.indexOf(begin)
    const to = result.indexOf(end)
    if (from < 0 || to < from) throw new Error(`${document} lacks the markers of the part ${name}`)
    result = `${result.slice(0, from + begin.length)}\n${generate()}\n${result.slice(to)}`
  }
  return result
}

function apis(): string {
  const rows = servedApis.map(({ api, versions: { min, max, advertisedMin } }) => {
    const versions = advertisedMin === undefined ? `${min} to ${max}` : `${min} to ${max}; listed from ${advertisedMin}`
    return [api.name, String(api.key), versions]
  })
  return table(['API', 'Key', 'Versions'], rows)
}

function commands(): string {
  const rows: string[][] = []
  for (const command of createProgram().commands) {
    const each = command.commands.length === 0 ? [command] : command.commands
    for (const leaf of each) {
      const path = leaf === command ? leaf.name() : `${command.name()} ${leaf.name()}`
      const given = leaf.registeredArguments.map((argument) => {
        const name = argument.variadic ? `${argument.name()}...` : argument.name()
        return argument.required ? `<${name}>` : `[${name}]`
      })
      rows.push([`\`rookery ${[path, ...given].join(' ')}\``, leaf.description()])
    }
  }
  return table(['Command', 'Does'], rows)
}

function defaults(): string {
  const rows: string[][] = []
  for (const key of Object.values<AnyKey>(brokerKeys)) {
    const { name, defaultText, kafkaDefaultText, singleNodeDefaultText, documentation } = key
    if (kafkaDefaultText !== null) rows.push([code(name), code(defaultText), code(kafkaDefaultText), documentation])
    else if (singleNodeDefaultText !== null) {
      rows.push([code(name), code(singleNodeDefaultText), code(defaultText), documentation])
    }
  }
  return table(['Key', 'Rookery', 'Kafka', 'What it is'], rows)
}

function differences(): string {
  return acceptedDifferences.map(({ title, reason }) => `- **${title}**: ${reason}.\n`).join('')
}

function code(text: string | null): string {
  return text === null ? '' : `\`${text}\``
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${lines.join('\n')}\n`
}

if (import.meta.main) {
  for (const document of ['README.md', 'ARCHITECTURE.md'] as const) {
    const path = join(import.meta.dirname, '..', document)
    await writeFile(path, withGeneratedParts(document, await readFile(path, 'utf8')))
  }
}
