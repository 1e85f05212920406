import type { Command } from 'commander'
import { flagsWithValue, wordsOf, type CommandWords, type Flag, type Values, fishQuoted } from './tree.js'

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
    set -l path (string split ' ' -- $argv[1])
    test "$words[1..$(count $path)]" = "$argv[1]"; or return 1
    set -q argv[2]; or return 0
    test (count $words) -eq (math $argv[2] + (count $path))
end
function __relay_words --description 'Words of the profile that was typed, or else is used'
    set -l typed (commandline -opc)
    set -l profile (string replace -rf -- '^--profile=' '' $typed)
    set -l at (contains -i -- --profile $typed); and set profile $typed[(math $at + 1)]
    relay completion fish --words $argv[1] --profile=$profile 2>/dev/null
end
complete -c relay -f
${[
  ...own.flags.map((flag) => `complete -c relay ${flagSpec(flag)}`),
  ...commands.map(({ name, help }) => complete("__relay_at ''", `-a ${name} -d ${fishQuoted(help)}`)),
  ...commands.flatMap((command) => commandLines(command, own)),
].join('\n')}
`
}

function commandLines(command: CommandWords, own: CommandWords): string[] {
  const { name, flags, positions, subcommands } = command
  const common = new Set(own.flags.map(({ long }) => long))
  return [
    ...flags.filter(({ long }) => !common.has(long)).map((flag) => complete(at(name), flagSpec(flag))),
    ...positions.flatMap((values, index) =>
      offered(values) === '' ? [] : [complete(`${at(name)} ${index}`, offered(values))],
    ),
    ...subcommands.flatMap((one) => commandLines(one, own)),
  ]
}

function at(name: string): string {
  return `__relay_at ${name.includes(' ') ? fishQuoted(name) : name}`
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
  const known = words ? `(__relay_words ${words})` : choices.join(' ')
  return [...(files ? ['-F'] : []), ...(known === '' ? [] : [`-a ${fishQuoted(known)}`])].join(' ')
}
