import type { Context, HelpContext } from './context.js'
import type { ColorMode, CommandMessages, Output } from './output/output.js'
import type { MarkedObject } from './output/outside.js'
import type { SettingName } from './settings/table.js'

/** Environment of a command: the process, and its outputs. */
export interface Shell extends Context {
  readonly out: CommandMessages
  /** True if results are for a program. */
  readonly json: boolean
}

/**
 * Returns a shell with some parts replaced. It is not a copy, since copying would open standard input, which alone
 * changes a terminal.
 */
export function shellWith<Base extends Context, Parts extends Partial<Shell>>(
  shell: Base,
  parts: Parts,
): Omit<Base, keyof Parts> & Parts {
  return Object.create(shell, Object.getOwnPropertyDescriptors(parts))
}

/** Returns the object that all shells of one process derive from. */
export function processOf(shell: object): object {
  const parent: unknown = Object.getPrototypeOf(shell)
  const isShell = typeof parent === 'object' && parent !== null && parent !== Object.prototype
  return isShell ? processOf(parent) : shell
}

/** Flags as commander passes them: settings by name, as text, or true for a flag without a value. */
export type Flags = Partial<Record<SettingName, string | readonly string[] | true>> & {
  readonly json?: boolean
  readonly color?: ColorMode | undefined
  readonly quiet?: boolean
  readonly verbose?: boolean
  readonly sandbox?: boolean
  /** True for the profile of a hub, unless another is named. */
  readonly hub?: boolean
  /**
   * False to leave out commands that only a file of the working folder names, because no person sees the list. Default:
   * true.
   */
  readonly projectExec?: boolean
}

/**
 * Result of a command: a value, or a stream of values that are made while it runs. A stream may fail after some of
 * them.
 */
export type CommandResult = Promise<unknown> | AsyncIterable<unknown>

export function isStream(result: CommandResult): result is AsyncIterable<unknown> {
  return Symbol.asyncIterator in result
}

/** Yields the values of a result. */
export function itemsOf<R extends CommandResult>(result: R): AsyncGenerator<ResultItem<R>>
export async function* itemsOf(result: CommandResult): AsyncGenerator {
  if (isStream(result)) yield* result
  else yield await result
}

/** One value of a result. */
export type ResultItem<R extends CommandResult> = R extends AsyncIterable<infer One> ? One : Awaited<R>

/** Argument of `print`: the value itself, or the stream. */
export type Printable<R extends CommandResult> = R extends AsyncIterable<unknown> ? R : Awaited<R>

/** Output for a program: objects, one per line, or the text of the value. */
export type Programmatic = object | string | Uint8Array | undefined | readonly object[]

/** Output for a program in which text from outside is marked. A tool of an agent shows nothing else. */
export type MarkedProgrammatic = MarkedObject | string | Uint8Array | undefined | readonly MarkedObject[]

/**
 * One command, for any caller. The command line (`main.ts`) and coding agents (`mcp/`) are two adapters: each makes the
 * input, and formats the result of `run`. Help, completion and the schemas of tools are generated from its declaration.
 */
export interface RelayCommand<
  Input extends Flags = Flags,
  R extends CommandResult = CommandResult,
  Json extends Programmatic = Programmatic,
> extends Declaration {
  /**
   * Makes the input from flags and arguments, as commander passes them. Default: the flags, and each argument by its
   * name.
   */
  input?(flags: Flags, ...args: unknown[]): Input
  /** Does the work. It writes messages to `shell.out`, but no result. */
  run(shell: Shell, input: Input): R
  /** Prints the result for a person. A service prints messages only. */
  print(result: Printable<R>, out: Output): void | Promise<void>
  /**
   * True for a service, which runs until it is stopped: its stream is printed as messages on standard error, with
   * `--json` too, whose objects then go to standard output besides. Default: false.
   */
  readonly isService?: boolean
  /** Formats a value for `--json`. Default: the value itself. */
  json?(item: ResultItem<R>): Json
}

/** Name of several commands, which does nothing alone. */
export interface CommandGroup extends Declaration {
  readonly run?: undefined
}

export type AnyCommand = RelayCommand | CommandGroup

/** Infers the types of a command's input and result. */
export function define<Input extends Flags, R extends CommandResult, Json extends Programmatic>(
  command: RelayCommand<Input, R, Json>,
): RelayCommand<Input, R, Json> {
  return command
}

/** Makes a `print` for a stream whose values are printed one by one. */
export function printEach<Value>(print: (value: Value, out: Output) => void) {
  return async (values: AsyncIterable<Value>, out: Output): Promise<void> => {
    for await (const value of values) print(value, out)
  }
}

/** Declaration of a command: its arguments, options and help. */
export interface Declaration {
  /** One paragraph. It may contain line breaks. */
  readonly description: string
  /** Command lines. A comment follows after two spaces or more. */
  readonly examples: string
  /** Makes a further part of the help, after the examples. */
  readonly details?: (context: HelpContext) => HelpSection
  readonly args?: readonly ArgumentSpec[]
  readonly options?: readonly FlagSpec[]
  /** Settings that have a flag here. */
  readonly settings?: readonly SettingName[]
  /** Settings that are read, but have no flag here. */
  readonly env?: readonly SettingName[]
  /** Exit codes besides 0, 1 and 2, and special meanings of any code for this command. */
  readonly exits?: readonly (ExitCode | readonly [ExitCode, string])[]
  /** Accepts further arguments, which usage does not show. */
  readonly takesMore?: true
  readonly subcommands?: Readonly<Record<string, AnyCommand & { readonly summary: string }>>
}

export type HelpRow = readonly [string, string]
export type HelpSection = readonly [heading: string, rows: readonly HelpRow[]]

/** An argument: `<target>`, `[text]`, `<file...>`, its help, and its possible words. */
export type ArgumentSpec = readonly [name: string, help: string, choices?: readonly string[]]

export type FlagSpec = readonly [flags: string, help: string, more?: FlagDetails]

interface FlagDetails {
  /** Possible words of its value, which help lists. */
  readonly choices?: readonly string[]
  readonly default?: string
  /** Description of the default, if it is no fixed value. */
  readonly defaultText?: string | undefined
  readonly repeatable?: true | undefined
  readonly setting?: SettingName
  readonly env?: string
  /** Value of the flag without one. */
  readonly bare?: string | undefined
}

/** Exit codes of relay. `base/errors.ts` assigns one to each failure. */
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
