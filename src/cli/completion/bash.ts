import type { Candidates, CompletedCommand } from './model.ts'
import { candidatesText, quoted } from './shell-text.ts'

/**
 * A function that finds out which command the words before the cursor are, and two tables: of what a command takes, and of what an
 * option of it takes. bash cuts words at `:` and `=` before it asks, so the line is cut anew, and what bash sees as earlier words is
 * taken off the answers.
 */
export function bashCompletion(commands: readonly CompletedCommand[]): string {
  return `# Completion of rookery for bash: eval "$(rookery completion bash)"
_rookery_takes() {
  case "$1" in
${commands.map(commandCase).join('')}  esac
}
_rookery_value() {
  case "$1" in
${commands.map(optionCases).join('')}  *) return 1 ;;
  esac
}
_rookery() {
  local line=\${COMP_LINE:0:COMP_POINT} word path= option= server= count=0 i
  local commands= options= arguments= variadic= takes= offered=
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local last=$((\${#words[@]} - 1)) current=\${words[\${#words[@]}-1]}
  _rookery_takes ''
  for ((i = 1; i < last; i++)); do
    word=\${words[i]}
    if [[ -n $option ]]; then
      [[ $option == -b || $option == --bootstrap-server ]] && server=$word
      option=
    elif [[ $word == --bootstrap-server=* ]]; then server=\${word#*=}
    elif [[ $word == -* ]]; then _rookery_value "$path $word" > /dev/null && option=$word
    elif [[ " $commands " == *" $word "* ]]; then
      path="\${path:+$path }$word"
      count=0
      _rookery_takes "$path"
    else count=$((count + 1))
    fi
  done
  if [[ -n $option ]]; then takes=$(_rookery_value "$path $option")
  elif [[ $current == --*=* ]]; then
    takes=$(_rookery_value "$path \${current%%=*}") || return
    current=\${current#*=}
  elif [[ $current == -* ]]; then takes="choices $options"
  elif [[ -n $commands ]]; then takes="choices $commands"
  else
    local -a kinds
    IFS=';' read -ra kinds <<< "$arguments"
    [[ -n $variadic && $count -ge \${#kinds[@]} ]] && count=$((\${#kinds[@]} - 1))
    takes=\${kinds[count]:-nothing}
  fi
  case "$takes" in
  choices*) offered=\${takes#choices} ;;
  topics | groups) offered=$(rookery completion --names "$takes" \${server:+-b "$server"} 2> /dev/null) ;;
  files) compopt -o default 2> /dev/null; COMPREPLY=(); return ;;
  esac
  COMPREPLY=()
  while IFS= read -r word; do
    [[ -n $word && $word == "$current"* ]] && COMPREPLY+=("$word")
  done <<< "\${offered// /$'\\n'}"
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    local prefix=\${current%"\${current##*:}"}
    COMPREPLY=("\${COMPREPLY[@]#"$prefix"}")
  fi
}
complete -F _rookery rookery
`
}

function commandCase(command: CompletedCommand): string {
  const values = {
    commands: command.subcommands.map(({ name }) => name).join(' '),
    options: command.options.flatMap(({ names }) => names).join(' '),
    arguments: command.arguments.map(candidatesText).join(';'),
    variadic: command.isVariadic ? 'yes' : '',
  }
  const assignments = Object.entries(values).map(([name, value]) => `${name}=${quoted(value)}`)
  return `  ${quoted(command.path)}) ${assignments.join(' ')} ;;\n`
}

function optionCases({ path, options }: CompletedCommand): string {
  return options
    .filter((option): option is typeof option & { value: Candidates } => option.value !== undefined)
    .map(({ names, value }) => {
      const patterns = names.map((name) => quoted(`${path} ${name}`)).join(' | ')
      return `  ${patterns}) echo ${quoted(candidatesText(value))} ;;\n`
    })
    .join('')
}
