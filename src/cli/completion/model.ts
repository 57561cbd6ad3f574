import type { Command, Option } from 'commander'

/** What may stand in a place of the command line. `nothing`: a text that nobody else knows. */
export type Candidates =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  | { readonly kind: 'topics' | 'groups' | 'files' | 'nothing' }

export interface CompletedOption {
  /** `-p`, `--partitions` */
  readonly names: readonly string[]
  readonly description: string
  /** Undefined for one that takes no value. */
  readonly value: Candidates | undefined
}

export interface CompletedCommand {
  /** The words after `rookery`: `topics create`; empty for the program itself. */
  readonly path: string
  readonly subcommands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly CompletedOption[]
  /** In their order. */
  readonly arguments: readonly Candidates[]
  /** The last argument may be given again. */
  readonly isVariadic: boolean
}

/** Every command of a program, the program itself first. */
export function completedCommands(program: Command): readonly CompletedCommand[] {
  return [...walk(program, [])]
}

function* walk(command: Command, path: readonly string[]): Generator<CompletedCommand> {
  const help = command.createHelp()
  const subcommands = help.visibleCommands(command).filter((each) => path.length === 0 || each.name() !== 'help')
  // `topics` alone is `topics list`, and takes its options.
  const initial = command.commands.find((each) => each.name() === 'list')
  const own = initial === undefined || path.length === 0 ? command : initial
  const given = path.length === 0 ? [] : command.registeredArguments
  yield {
    path: path.join(' '),
    subcommands: subcommands.map((each) => ({ name: each.name(), description: each.description() })),
    options: own.createHelp().visibleOptions(own).map(completedOption),
    arguments: given.map((each) => candidates(each.name(), each.argChoices)),
    isVariadic: given.at(-1)?.variadic ?? false,
  }
  for (const each of command.commands) yield* walk(each, [...path, each.name()])
}

function completedOption(option: Option): CompletedOption {
  const names = [option.short, option.long].filter((name) => name !== undefined && name !== null)
  const placeholder = /[<[]([\w=-]+)/.exec(option.flags)?.[1]
  const value = placeholder === undefined ? undefined : candidates(placeholder, option.argChoices)
  return { names, description: option.description, value }
}

/** By what the place is called in the help: `<topics...>`, `<group>`, `<file>`. */
function candidates(placeholder: string, choices: readonly string[] | undefined): Candidates {
  if (choices !== undefined) return { kind: 'choices', choices }
  if (/^topics?$/.test(placeholder)) return { kind: 'topics' }
  if (/^groups?$/.test(placeholder)) return { kind: 'groups' }
  return { kind: /^(?:file|path)$/.test(placeholder) ? 'files' : 'nothing' }
}
