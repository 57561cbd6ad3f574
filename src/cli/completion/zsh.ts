import type { CompletedCommand } from './model.ts'
import { candidatesText, quoted } from './shell-text.ts'

/** As for bash, with the descriptions that zsh shows. */
export function zshCompletion(commands: readonly CompletedCommand[]): string {
  return `#compdef rookery
# Completion of rookery for zsh: source <(rookery completion zsh), or a file _rookery in a folder of $fpath
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
  local word option takes kind server= rookery_path= current=\${words[CURRENT]}
  local -i i count=0
  local variadic
  local -a commands options arguments offered
  _rookery_takes ''
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $option ]]; then
      [[ $option == -b || $option == --bootstrap-server ]] && server=$word
      option=
    elif [[ $word == --bootstrap-server=* ]]; then server=\${word#*=}
    elif [[ $word == -* ]]; then _rookery_value "$rookery_path $word" > /dev/null && option=$word
    elif [[ -n \${commands[(r)$word:*]} ]]; then
      rookery_path="\${rookery_path:+$rookery_path }$word"
      count=0
      _rookery_takes "$rookery_path"
    else count+=1
    fi
  done
  if [[ -n $option ]]; then takes=$(_rookery_value "$rookery_path $option")
  elif [[ $current == --*=* ]]; then
    takes=$(_rookery_value "$rookery_path \${current%%=*}") || return
    compset -P '*='
  elif [[ $current == -* ]]; then
    _describe -o option options
    return
  elif ((\${#commands})); then
    _describe command commands
    return
  else
    [[ -n $variadic && $count -ge \${#arguments} ]] && count=$((\${#arguments} - 1))
    takes=\${arguments[count + 1]:-nothing}
  fi
  case "$takes" in
  choices*) compadd -- \${=takes#choices} ;;
  topics | groups)
    offered=(\${(f)"$(rookery completion --names "$takes" \${server:+-b} \${server:+$server} 2> /dev/null)"})
    compadd -- $offered
    ;;
  files) _files ;;
  esac
}
compdef _rookery rookery
`
}

function commandCase(command: CompletedCommand): string {
  const list = (entries: readonly string[]) => `(${entries.map(quoted).join(' ')})`
  // A colon ends the name: none has one.
  const commands = command.subcommands.map(({ name, description }) => `${name}:${description}`)
  const options = command.options.flatMap(({ names, description }) => names.map((name) => `${name}:${description}`))
  const parts = [
    `commands=${list(commands)}`,
    `options=${list(options)}`,
    `arguments=${list(command.arguments.map(candidatesText))}`,
    `variadic=${command.isVariadic ? 'yes' : ''}`,
  ]
  return `  ${quoted(command.path)}) ${parts.join(' ')} ;;\n`
}

function optionCases({ path, options }: CompletedCommand): string {
  return options
    .map(({ names, value }) => {
      if (value === undefined) return ''
      const patterns = names.map((name) => quoted(`${path} ${name}`)).join(' | ')
      return `  ${patterns}) echo ${quoted(candidatesText(value))} ;;\n`
    })
    .join('')
}
