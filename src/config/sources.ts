import { Properties, PropertiesNodeType } from 'properties-file/parser'
import { messageOf } from '../base/index.ts'
import { type ConfigProblem, shortened } from './config-error.ts'

/** Where a value was set, from the weakest to the strongest. */
export type SettingSource = 'default' | 'file' | 'environment' | 'override'

/** What one source says about one key. */
export interface Setting {
  readonly key: string
  readonly text: string
  readonly source: SettingSource
  /** Where exactly, for messages: `server.properties line 12`, `ROOKERY_LOG_DIRS`. */
  readonly place: string
}

/** A value as a program writes it; lists are joined with commas. */
export type SettingValue = string | number | bigint | boolean | readonly string[]

export interface ConfigInput {
  /** The text of a `server.properties` file, in the syntax of java.util.Properties. */
  readonly file?: string | undefined
  /** What messages call the file; 'server.properties' when left out. */
  readonly fileName?: string | undefined
  /** Environment variables; those named `ROOKERY_` count: `ROOKERY_LOG_DIRS` sets `log.dirs`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** `key=value` texts of a command line (a later one wins), or values by key of a program. */
  readonly overrides?: readonly string[] | Readonly<Record<string, SettingValue>> | undefined
  /** Weaker than everything else that is set, but stronger than the built-in defaults. */
  readonly defaults?: Readonly<Record<string, SettingValue>> | undefined
}

/** Variables of that prefix that aren't keys: a declaration of topics, and the switches of Rookery's own tests. */
const otherVariables = /^ROOKERY_(TOPICS|REQUIRE_PEERS|TEST_.*|.*_SEEDS?)$/

/** What each source sets, by key, the strongest last to be seen and so the one that stays. */
export function readSources(input: ConfigInput, problems: ConfigProblem[]): Map<string, Setting> {
  const settings = new Map<string, Setting>()
  const add = (setting: Setting) => settings.set(setting.key, setting)
  for (const [key, value] of Object.entries(input.defaults ?? {})) {
    add({ key, text: String(value), source: 'default', place: 'the defaults' })
  }
  readFile(input.file ?? '', input.fileName ?? 'server.properties', add, problems)
  for (const [name, text] of Object.entries(input.env ?? {})) {
    if (!name.startsWith('ROOKERY_') || otherVariables.test(name) || text === undefined) continue
    add({ key: keyOfVariable(name), text, source: 'environment', place: name })
  }
  readOverrides(input.overrides ?? [], add, problems)
  return settings
}

function readFile(text: string, fileName: string, add: (setting: Setting) => void, problems: ConfigProblem[]): void {
  try {
    for (const node of new Properties(text).nodes) {
      if (node.type !== PropertiesNodeType.PROPERTY) continue
      add({ key: node.key, text: node.value, source: 'file', place: `${fileName} line ${node.startingLineNumber}` })
    }
  } catch (error) {
    // The parser throws for one thing only, a \u that four hexadecimal digits don't follow; nothing was read then.
    problems.push({ key: undefined, message: `${fileName} is no properties file: ${messageOf(error)}` })
  }
}

function keyOfVariable(name: string): string {
  return name.slice('ROOKERY_'.length).toLowerCase().replaceAll('_', '.')
}

function readOverrides(
  overrides: NonNullable<ConfigInput['overrides']>,
  add: (setting: Setting) => void,
  problems: ConfigProblem[],
): void {
  if (!isTexts(overrides)) {
    for (const [key, value] of Object.entries(overrides)) {
      add({ key, text: String(value), source: 'override', place: 'the overrides' })
    }
    return
  }
  for (const override of overrides) {
    const equals = override.indexOf('=')
    const key = override.slice(0, equals).trim()
    if (equals < 0 || key === '') {
      problems.push({ key: undefined, message: `--override ${shortened(override)}: allowed is key=value` })
    } else {
      add({ key, text: override.slice(equals + 1), source: 'override', place: '--override' })
    }
  }
}

function isTexts(overrides: NonNullable<ConfigInput['overrides']>): overrides is readonly string[] {
  return Array.isArray(overrides)
}
