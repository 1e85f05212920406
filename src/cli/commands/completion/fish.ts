import type { Command } from 'commander'
import {
  flagsWithValue,
  wordsOf,
  type CommandWords,
  type Flag,
  type Values,
  fishQuoted,
  wordsCommand,
} from './tree.js'

/** The completion script for fish 3 and later. */
export function fishCompletion(program: Command): string {
  const tree = wordsOf(program)
  const { own, commands } = tree
  return `# fish completion for relay. Load it with: relay completion fish | source
function __relay_at --description 'Whether this command was typed, with this number of arguments'
    set -l words
    set -l value no
    for word in (commandline -opc)[2..]
        if test $value = yes
            set value no
            continue
        end
        switch $word
            case ${flagsWithValue(tree).join(' ')}
                set value yes
            case '-*'
            case '*'
                set -a words $word
        end
    end
    test "$words[1]" = "$argv[1]"; or return 1
    set -q argv[2]; or return 0
    test (count $words) -eq (math $argv[2] + 1)
end
complete -c relay -f
${[
  ...own.flags.map((flag) => `complete -c relay ${flagSpec(flag)}`),
  ...commands.map(({ name, help }) => complete("__relay_at ''", `-a ${name} -d ${fishQuoted(help)}`)),
  ...commands.flatMap((command) => commandLines(command, own)),
].join('\n')}
`
}

function commandLines({ name, flags, positions }: CommandWords, own: CommandWords): string[] {
  const common = new Set(own.flags.map(({ long }) => long))
  return [
    ...flags
      .filter(({ long }) => !common.has(long))
      .map((flag) => complete(`__relay_at ${name}`, flagSpec(flag))),
    ...positions.flatMap((values, index) =>
      offered(values) === '' ? [] : [complete(`__relay_at ${name} ${index}`, offered(values))],
    ),
  ]
}

function complete(condition: string, rest: string): string {
  return `complete -c relay -n ${fishQuoted(condition)} ${rest}`
}

function flagSpec({ short, long, help, values }: Flag): string {
  const names = [...(short === undefined ? [] : [`-s ${short.slice(1)}`]), `-l ${long.slice(2)}`]
  const value = values ? [values.files ? '-r' : '-x', offered(values)].filter(Boolean) : []
  return [...names, ...value, `-d ${fishQuoted(help)}`].join(' ')
}

function offered({ choices, words, files }: Values): string {
  const known = words ? `(${wordsCommand(words, 'fish')})` : choices.join(' ')
  return [...(files ? ['-F'] : []), ...(known === '' ? [] : [`-a ${fishQuoted(known)}`])].join(' ')
}
