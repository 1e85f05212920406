import type { Argument, Command, Option } from 'commander'
import { REACTIONS } from '../../../providers/provider.js'
import { OPTION_NAMES, isOptionName, specOf } from '../../settings/options.js'

/** The words that a shell can offer in one place. */
export interface Values {
  /** The name of the place, e.g. `name` for `--profile <name>`. */
  readonly label: string
  readonly choices: readonly string[]
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
  readonly name: string
  readonly help: string
  readonly flags: readonly Flag[]
  readonly positions: readonly Values[]
}

/** relay's own flags, and its commands. */
export function wordsOf(program: Command): { readonly own: CommandWords; readonly commands: CommandWords[] } {
  return { own: commandWords(program), commands: program.commands.map(commandWords) }
}

/** The flags, of any command, that are followed by a value. */
export function flagsWithValue({ own, commands }: ReturnType<typeof wordsOf>): string[] {
  const flags = [own, ...commands].flatMap((command) => command.flags)
  return [...new Set(flags.filter(({ values }) => values).map(({ long }) => long))]
}

function commandWords(command: Command): CommandWords {
  return {
    name: command.name(),
    help: command.summary(),
    flags: [
      ...command.options.filter(({ hidden }) => !hidden).map(flagOf),
      { short: '-h', long: '--help', help: 'print this help', values: undefined },
    ],
    positions: command.registeredArguments.map((argument) => valuesOf(argument.name(), argument)),
  }
}

function flagOf(option: Option): Flag {
  const { short, long = '', description, required, optional, flags } = option
  const label = /[<[]([^>\]]+)[>\]]/.exec(flags)?.[1] ?? 'value'
  return {
    short,
    long,
    help: description.replace(/ \((?:repeatable|env: |default: ).*/, ''),
    values: required || optional ? valuesOf(label, option, option.attributeName()) : undefined,
  }
}

/** Places that accept other words too. */
const KNOWN: Readonly<Record<string, readonly string[]>> = { reveal: OPTION_NAMES, reaction: REACTIONS }

function valuesOf(label: string, { argChoices }: Option | Argument, name = label): Values {
  const spec = isOptionName(name) ? specOf(name) : undefined
  return { label, choices: argChoices ?? spec?.choices ?? KNOWN[name] ?? [], files: /\bfile\b/.test(label) }
}

/** Text as one word of bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Text as one word of fish. */
export function fishQuoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`
}
