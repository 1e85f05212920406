import type { Command } from 'commander'
import { shellWord } from '../../../base/shell-word.js'
import { wordsOf, type CommandWords, type Flag, type Values } from './tree.js'

/** The completion script for zsh: to be sourced after compinit, or saved as `_relay` in a folder of fpath. */
export function zshCompletion(program: Command): string {
  const { own, commands } = wordsOf(program)
  return `#compdef relay
# zsh completion for relay. Load it with: source <(relay completion zsh)
_relay() {
  local curcontext=$curcontext state line
  local -a typed=(\${words[1,CURRENT-1]})
  local profile=\${\${typed[(r)--profile=*]}#--profile=}
  [[ -n $profile ]] || profile=\${typed[\${typed[(i)--profile]}+1]}
  local -a commands
  typeset -A opt_args
  _arguments -C ${specs(own.flags)} \\
    '(-)1:command:->command' '(-)*::argument:->argument' && return
  case $state in
    command)
      commands=(
${commands.map(({ name, help }) => `        ${shellWord(`${name}:${help}`)}`).join('\n')}
      )
      _describe -t commands command commands
      ;;
    argument)
      case $line[1] in
${commands.map((command) => `        ${command.name}) ${argumentsOf(command, own)} ;;`).join('\n')}
      esac
      ;;
  esac
}
_relay_words() {
  relay completion zsh --words $1 \${profile:+--profile=$profile} 2>/dev/null
}
if [[ $funcstack[1] == _relay ]]; then _relay "$@"; else compdef _relay relay; fi
`
}

function argumentsOf({ flags, positions, subcommands }: CommandWords, own: CommandWords): string {
  const known = new Set(flags.map(({ long }) => long))
  const all = [...flags, ...own.flags.filter(({ long }) => !known.has(long))]
  const places = positions.map((values, index) => shellWord(`${index + 1}${action(values)}`))
  if (subcommands.length === 0) return ['_arguments', specs(all), ...places].join(' ')
  const cases = subcommands.map((one) => `${shellWord(one.name)}) ${argumentsOf(one, own)} ;;`)
  const name = subcommands[0]?.name.split(' ')[0]
  const [place = ''] = positions.map((values) => shellWord(`(-)1${action(values)}`))
  return `_arguments -C ${specs(all)} ${place} '(-)*::argument:->subcommand' && return
          case "${name} $line[1]" in ${cases.join(' ')} esac`
}

function specs(flags: readonly Flag[]): string {
  return flags.map(spec).join(' ')
}

function spec({ short, long, help, values }: Flag): string {
  const text = shellWord(`[${help.replaceAll(/[[\]:\\]/g, String.raw`\$&`)}]${values ? action(values) : ''}`)
  const name = values ? `${long}=` : long
  return short === undefined ? `${name}${text}` : `'(${short} ${long})'{${short},${name}}${text}`
}

function action({ label, choices, words, files }: Values): string {
  const known = words ? `compadd - \${(f)"$(_relay_words ${words})"}` : undefined
  if (known !== undefined) return `:${label}:{${files ? '_files; ' : ''}${known}}`
  return `:${label}:${files ? '_files' : choices.length > 0 ? `(${choices.join(' ')})` : ' '}`
}
