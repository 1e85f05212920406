import type { Command } from 'commander'
import { shellWord } from '../../../base/shell-word.js'
import {
  flagsWithValue,
  wordsOf,
  type CommandWords,
  type Values,
  isOffered,
  withSubcommands,
} from './tree.js'

/** The completion script for bash 3.2 and later; it needs nothing else. */
export function bashCompletion(program: Command): string {
  const tree = wordsOf(program)
  const { own, commands } = tree
  const all = withSubcommands(commands)
  const parents = commands.filter(({ subcommands }) => subcommands.length > 0).map(({ name }) => name)
  return `# bash completion for relay. Load it with: source <(relay completion bash)
_relay() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command= position=0 profile= word i
  COMPREPLY=()
  # bash makes a word of the sign in --flag=value.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case $word in
      ${flagsWithValue(tree).join('|')})
        if [[ \${COMP_WORDS[i+1]} == = ]]; then ((i += 2)); else ((i++)); fi
        if [[ $word == --profile && i -lt COMP_CWORD ]]; then profile=\${COMP_WORDS[i]}; fi ;;
      -*) ;;
      *) case $command in
          '') command=$word ;;
          ${parents.join('|')}) command+=" $word" ;;
          *) ((position++)) ;;
        esac ;;
    esac
  done
  case "$command $prev" in
${[...all, { ...own, name: '*' }].flatMap(flagCases).join('\n')}
  esac
  if [[ $cur == -* ]]; then
    case $command in
${all.map((command) => `      ${shellWord(command.name)}) _relay_offer ${shellWord(flagList(command, own))}; return ;;`).join('\n')}
      *) _relay_offer ${shellWord(flagList(own))}; return ;;
    esac
  fi
  case "$command $position" in
    ' 0') _relay_offer ${shellWord(commands.map(({ name }) => name).join(' '))} ;;
${all.flatMap(positionCases).join('\n')}
  esac
}
_relay_offer() {
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}
_relay_offer_more() {
  COMPREPLY+=($(compgen -W "$1" -- "$cur"))
}
_relay_words() {
  relay completion bash --words "$1" \${profile:+"--profile=$profile"} 2>/dev/null
}
_relay_files() {
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _relay relay
`
}

function flagCases({ name, flags }: CommandWords): string[] {
  return flags.flatMap(({ long, values }) => {
    const pattern = name === '*' ? `*' ${long}'` : shellWord(`${name} ${long}`)
    return values ? [`    ${pattern}) ${offer(values)}; return ;;`] : []
  })
}

function positionCases({ name, positions }: CommandWords): string[] {
  return positions.flatMap((values, position) =>
    isOffered(values) ? [`    ${shellWord(`${name} ${position}`)}) ${offer(values)} ;;`] : [],
  )
}

function offer({ choices, words, files }: Values): string {
  const known = words ? `"$(_relay_words ${words})"` : shellWord(choices.join(' '))
  if (files) return words ? `_relay_files; _relay_offer_more ${known}` : '_relay_files'
  return words || choices.length > 0 ? `_relay_offer ${known}` : ':'
}

function flagList(...commands: CommandWords[]): string {
  return [...new Set(commands.flatMap(({ flags }) => flags.map(({ long }) => long)))].join(' ')
}
