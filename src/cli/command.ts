import type { Context, HelpContext } from './context.js'
import type { ColorMode, CommandMessages, Output } from './output/output.js'
import type { MarkedObject } from './output/outside.js'
import type { SettingName } from './settings/table.js'

/** What a command works with: the process, and where its results and messages go. */
export interface Shell extends Context {
  readonly out: CommandMessages
  /** Whether results are for a program. */
  readonly json: boolean
}

/** The shell of a service, which prints while it runs. */
export interface PrintingShell extends Shell {
  readonly out: Output
}

/** The same shell but for these parts. Not a copy, which would open standard input: that alone changes a terminal. */
export function shellWith<Base extends Context, Parts extends Partial<Shell>>(
  shell: Base,
  parts: Parts,
): Omit<Base, keyof Parts> & Parts {
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

/** What a command gives: a value, or a stream of values that it makes while it runs. A failure may come after some of them. */
export type CommandResult = Promise<unknown> | AsyncIterable<unknown>

export function isStream(result: CommandResult): result is AsyncIterable<unknown> {
  return Symbol.asyncIterator in result
}

/** The values of a result, one after the other. */
export function itemsOf<R extends CommandResult>(result: R): AsyncGenerator<ResultItem<R>>
export async function* itemsOf(result: CommandResult): AsyncGenerator {
  if (isStream(result)) yield* result
  else yield await result
}

/** One value of a result. */
export type ResultItem<R extends CommandResult> = R extends AsyncIterable<infer One> ? One : Awaited<R>

/** The same as `print` gets it: the value itself, or the stream. */
export type Printable<R extends CommandResult> = R extends AsyncIterable<unknown> ? R : Awaited<R>

/** What a program gets of a value: objects, one per line, or the text that the value is. */
export type Programmatic = object | string | Uint8Array | undefined | readonly object[]

/** The same where it is marked what came from outside: a tool of an agent shows nothing else. */
export type MarkedProgrammatic = MarkedObject | string | Uint8Array | undefined | readonly MarkedObject[]

/**
 * One command, for any caller. The command line (`main.ts`) and coding agents (`mcp/`) are two adapters over it: each makes the input, and
 * makes what it shows of what `run` gives. Its declaration is what help, completion and the schemas of tools are made of.
 */
export interface RelayCommand<
  Input extends Flags = Flags,
  R extends CommandResult = CommandResult,
  Json extends Programmatic = Programmatic,
> extends Declaration {
  /** Makes the input of flags and arguments, as commander passes them. Default: the flags, and each argument by its name. */
  input?(flags: Flags, ...args: unknown[]): Input
  /** Does the work. It writes messages to `shell.out`, and no result. */
  run(shell: Shell, input: Input): R
  /** Prints the result for a person. */
  print(result: Printable<R>, out: Output): void | Promise<void>
  /** What `--json` prints of a value. Default: the value itself. */
  json?(item: ResultItem<R>): Json
}

/** Commands under one name, which alone does nothing. */
export interface CommandGroup extends Declaration {
  readonly run?: undefined
}

export type AnyCommand = RelayCommand | CommandGroup

/** Gives a command the types of its input and its result. */
export function define<Input extends Flags, R extends CommandResult, Json extends Programmatic>(
  command: RelayCommand<Input, R, Json>,
): RelayCommand<Input, R, Json> {
  return command
}

/** How a stream is printed whose values stand alone. */
export function printEach<Value>(print: (value: Value, out: Output) => void) {
  return async (values: AsyncIterable<Value>, out: Output): Promise<void> => {
    for await (const value of values) print(value, out)
  }
}

/** The words of a command: what it takes, and its help. */
export interface Declaration {
  /** One paragraph, which may be broken in the source. */
  readonly description: string
  /** Command lines; a comment follows after two spaces or more. */
  readonly examples: string
  /** A further part of the help, after the examples. */
  readonly details?: (context: HelpContext) => HelpSection
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
  readonly subcommands?: Readonly<Record<string, AnyCommand & { readonly summary: string }>>
}

export type HelpRow = readonly [string, string]
export type HelpSection = readonly [heading: string, rows: readonly HelpRow[]]

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

export function exitCodes(codes: Declaration['exits'] = []): [ExitCode, string][] {
  const all = new Map<ExitCode, string>()
  for (const code of [0, 1, 2, ...codes] as const) {
    if (typeof code === 'number') all.set(code, EXIT_CODES[code])
    else all.set(...code)
  }
  return [...all].toSorted(([one], [other]) => one - other)
}
