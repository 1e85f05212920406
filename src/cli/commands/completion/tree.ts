import type { Argument, Command, Option } from 'commander'
import { REACTIONS } from '../../../codehost/host.js'
import type { WordKind } from './word-kinds.js'
import { OPTION_NAMES, isOptionName, specOf } from '../../settings/options.js'

/** The words that a shell can offer in one place. */
export interface Values {
  /** The name of the place, e.g. `name` for `--profile <name>`. */
  readonly label: string
  readonly choices: readonly string[]
  /** Further words, which the script asks relay for when they are needed. */
  readonly words: WordKind | undefined
  readonly files: boolean
}

export interface Flag {
  readonly short: string | undefined
  readonly long: string
  readonly help: string
  /** Undefined for a switch. */
  readonly values: Values | undefined
}

/** A command as completion sees it; relay itself has the flags that every command takes. */
export interface CommandWords {
  /** Of a subcommand with that of its command: `routes test`. */
  readonly name: string
  readonly help: string
  readonly flags: readonly Flag[]
  readonly positions: readonly Values[]
  readonly subcommands: readonly CommandWords[]
}

/** relay's own flags, and its commands. */
export function wordsOf(program: Command): { readonly own: CommandWords; readonly commands: CommandWords[] } {
  return {
    own: { ...commandWords(program), subcommands: [] },
    commands: program.commands.map((command) => commandWords(command)),
  }
}

/** The commands, each followed by its subcommands. */
export function withSubcommands(commands: readonly CommandWords[]): CommandWords[] {
  return commands.flatMap((command) => [command, ...command.subcommands])
}

/** The flags, of any command, that are followed by a value. */
export function flagsWithValue({ own, commands }: ReturnType<typeof wordsOf>): string[] {
  const flags = [own, ...withSubcommands(commands)].flatMap((command) => command.flags)
  return [...new Set(flags.filter(({ values }) => values).map(({ long }) => long))]
}

function commandWords(command: Command, parent = ''): CommandWords {
  const name = parent + command.name()
  return {
    name,
    help: command.summary(),
    flags: [
      ...command.options.filter(({ hidden }) => !hidden).map(flagOf),
      { short: '-h', long: '--help', help: 'print this help', values: undefined },
    ],
    positions:
      command.commands.length > 0
        ? [
            {
              label: 'command',
              choices: command.commands.map((one) => one.name()),
              words: undefined,
              files: false,
            },
          ]
        : command.registeredArguments.map((argument) => valuesOf(argument.name(), argument)),
    subcommands: command.commands.map((one) => commandWords(one, `${name} `)),
  }
}

function flagOf(option: Option): Flag {
  const { short, long = '', description, required, optional, flags } = option
  const label = /(?:<|\[)(.+)(?:>|\])$/.exec(flags)?.[1] ?? 'value'
  return {
    short,
    long,
    help: description.replace(/ \((?:repeatable|env: |default: ).*/, ''),
    values: required || optional ? valuesOf(label, option, option.attributeName()) : undefined,
  }
}

/** Places that accept other words too. */
const KNOWN: Readonly<Record<string, readonly string[]>> = { reveal: OPTION_NAMES, reaction: REACTIONS }

/** By the name of an argument. */
const ARGUMENT_WORDS: Readonly<Record<string, WordKind>> = {
  entry: 'entries',
  file: 'entries',
  event: 'triggers',
  match: 'events',
}
/** By the name of a flag. */
const FLAG_WORDS: Readonly<Record<string, WordKind>> = {
  event: 'events',
  ignore: 'events',
  profile: 'profiles',
}

function valuesOf(label: string, { argChoices }: Option | Argument, name?: string): Values {
  const key = name ?? label
  const spec = isOptionName(key) ? specOf(key) : undefined
  const words = name === undefined ? ARGUMENT_WORDS[label] : FLAG_WORDS[name]
  const choices = argChoices ?? spec?.choices ?? KNOWN[key] ?? []
  return { label, choices, words, files: /\bfile\b/.test(label) }
}

/** Whether anything is offered there. */
export function isOffered({ choices, words, files }: Values): boolean {
  return choices.length > 0 || words !== undefined || files
}

/** Text as one word of fish. */
export function fishQuoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`
}
