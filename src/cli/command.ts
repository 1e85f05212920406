import type { Context, HelpContext } from './context.js'
import type { ColorMode, Output } from './output/output.js'
import type { SettingName } from './settings/table.js'

/** What a command works with: the process, and where its results and messages go. */
export interface Shell extends Context {
  readonly out: Output
  readonly json: boolean
}

/** The same shell but for these parts. Not a copy, which would open standard input: that alone changes a terminal. */
export function shellWith(shell: Context, parts: Partial<Shell>): Shell {
  return Object.create(shell, Object.getOwnPropertyDescriptors(parts))
}

/** What all shells of one process have in common, however they were made of one another. */
export function processOf(shell: object): object {
  const parent: unknown = Object.getPrototypeOf(shell)
  const isShell = typeof parent === 'object' && parent !== null && parent !== Object.prototype
  return isShell ? processOf(parent) : shell
}

/** Flags as commander gives them: those of settings by their names, as text, or true for one without a value. */
export type Flags = Partial<Record<SettingName, string | readonly string[] | true>> & {
  readonly json?: boolean
  readonly color?: ColorMode | undefined
  readonly quiet?: boolean
  readonly verbose?: boolean
  readonly sandbox?: boolean
  /** False: commands that only a file of the working folder names are left out, where no person sees the list. Default: true. */
  readonly projectExec?: boolean
}

/** Runs a command with its flags and then its arguments. A method, since only methods can have parameters of narrower types. */
export type Run = { run(shell: Shell, flags: Flags, ...args: unknown[]): Promise<void> }['run']

export type Commands = Readonly<Record<string, CommandSpec>>

export interface CommandSpec {
  readonly summary: string
  /** One paragraph, which may be broken in the source. */
  readonly description: string
  /** Command lines; a comment follows after two spaces or more. */
  readonly examples: string
  /** A further part of the help, after the examples. */
  readonly details?: (context: HelpContext) => Section
  readonly args?: readonly ArgumentSpec[]
  readonly options?: readonly FlagSpec[]
  /** The settings that have a flag here. */
  readonly settings?: readonly SettingName[]
  /** The settings that are read, but have no flag here. */
  readonly env?: readonly SettingName[]
  /** The codes besides 0, 1 and 2, and what any of them means for this command in particular. */
  readonly exits?: readonly (ExitCode | readonly [ExitCode, string])[]
  /** Further arguments are no error; usage does not show them. */
  readonly takesMore?: true
  /** Imports what the command runs; until then, nothing but this declaration is loaded. */
  readonly load?: () => Promise<Run>
  readonly subcommands?: Commands
}

export type Row = readonly [string, string]
export type Section = readonly [heading: string, rows: readonly Row[]]

/** `<target>`, `[text]`, `<file...>`, its help, and the words that it can be. */
export type ArgumentSpec = readonly [name: string, help: string, choices?: readonly string[]]

export type FlagSpec = readonly [flags: string, help: string, more?: FlagDetails]

interface FlagDetails {
  /** The words that its value can be; help names them. */
  readonly choices?: readonly string[]
  readonly default?: string
  /** The default in words, where the command has no fixed value for it. */
  readonly defaultText?: string | undefined
  readonly repeatable?: true | undefined
  readonly setting?: SettingName
  readonly env?: string
  /** The value of the flag without one. */
  readonly bare?: string | undefined
}

/** The codes that relay exits with. `base/errors.ts` says which failure has which. */
const EXIT_CODES = {
  0: 'success',
  1: 'failure',
  2: 'usage or settings error, also a profile that does not exist',
  3: 'a target or an expectation failed',
  4: 'sign-in needed',
  5: 'signature invalid',
  6: 'nothing matched',
  7: 'timed out',
  8: 'code host or network refused',
  130: 'interrupted',
} as const

type ExitCode = keyof typeof EXIT_CODES

export function exitCodes(codes: CommandSpec['exits'] = []): [ExitCode, string][] {
  const all = new Map<ExitCode, string>()
  for (const code of [0, 1, 2, ...codes] as const) {
    if (typeof code === 'number') all.set(code, EXIT_CODES[code])
    else all.set(...code)
  }
  return [...all].toSorted(([one], [other]) => one - other)
}
