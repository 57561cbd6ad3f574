import type { Candidates, CompletedCommand, CompletedOption } from './model.ts'

/** One `complete` for each command, option and argument; a function tells which command the line is. */
export function fishCompletion(commands: readonly CompletedCommand[]): string {
  return `# Completion of rookery for fish: rookery completion fish | source
set -g __rookery_paths ${commands.map(({ path }) => fishQuoted(path)).join(' ')}
set -g __rookery_valued ${valuedOptions(commands).map(fishQuoted).join(' ')}
function __rookery_path
  set -l found ''
  set -l skip 0
  for word in (commandline -opc)[2..]
    if test $skip = 1
      set skip 0
    else if string match -q -- '-*' $word
      contains -- "$found $word" $__rookery_valued; and set skip 1
    else if contains -- (string trim -- "$found $word") $__rookery_paths
      set found (string trim -- "$found $word")
    end
  end
  echo $found
end
function __rookery_is
  test (__rookery_path) = "$argv[1]"
end
function __rookery_names
  set -l server (string match -rg -- '(?:-b|--bootstrap-server)[ =]+(\\S+)' (commandline -cp))
  set -l option
  test -n "$server[1]"; and set option -b $server[1]
  rookery completion --names $argv[1] $option 2> /dev/null
end
complete -c rookery -f
${commands.map(commandLines).join('')}`
}

function commandLines({ path, subcommands, options, arguments: taken }: CompletedCommand): string {
  const condition = `-n ${fishQuoted(`__rookery_is '${path}'`)}`
  const lines = subcommands.map(({ name, description }) => {
    return `complete -c rookery ${condition} -a ${fishQuoted(name)} -d ${fishQuoted(description)}\n`
  })
  for (const option of options) lines.push(`complete -c rookery ${condition} ${optionText(option)}\n`)
  for (const each of new Set(taken.map(valueText))) {
    if (each !== '') lines.push(`complete -c rookery ${condition} ${each}\n`)
  }
  return lines.join('')
}

function optionText({ names, description, value }: CompletedOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  const takes = value === undefined ? [] : ['-r', valueText(value)]
  return [...flags, `-d ${fishQuoted(description)}`, ...takes].filter((part) => part !== '').join(' ')
}

function valueText(value: Candidates): string {
  switch (value.kind) {
    case 'choices':
      return `-a ${fishQuoted(value.choices.join(' '))}`
    case 'topics':
    case 'groups':
      return `-a '(__rookery_names ${value.kind})'`
    case 'files':
      return '-F'
    case 'nothing':
      return ''
  }
}

/** `topics create --partitions`: those whose next word is their value. */
function valuedOptions(commands: readonly CompletedCommand[]): string[] {
  return commands.flatMap(({ path, options }) =>
    options.filter(({ value }) => value !== undefined).flatMap(({ names }) => names.map((name) => `${path} ${name}`)),
  )
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
