import type { Context } from './context.js'
import type { ExitCode } from './exit-codes.js'
import type { OptionName } from './settings/options.js'
import type { CommonFlags } from './settings/prepare.js'

/** The headings under which `relay --help` lists the commands. */
type Group = 'Service:' | 'Journal:' | 'Signing in:' | 'Actions:' | 'Setup:'

/**
 * A command, as help, completion and the command reference show it. Importing a declaration loads nothing else of the
 * command: `load` imports what it runs.
 */
export interface CommandSpec {
  readonly name: string
  readonly group?: Group
  readonly summary: string
  readonly description: string
  /** Command lines; a comment follows after two spaces or more. */
  readonly examples: readonly string[]
  /** A further part of the help, after the examples. */
  readonly details?: (context: Context) => string
  readonly arguments?: readonly ArgumentSpec[]
  readonly options?: readonly FlagSpec[]
  /** The settings that have a flag here. */
  readonly settings?: readonly OptionName[]
  /** The settings that are read, but have no flag here. */
  readonly environment?: readonly OptionName[]
  /** The codes besides 0, 1 and 2, and what any of them means for this command in particular. */
  readonly exitCodes?: readonly (ExitCode | readonly [ExitCode, string])[]
  readonly load?: () => Promise<Run>
  readonly subcommands?: readonly CommandSpec[]
}

export interface ArgumentSpec {
  /** `<target>`, `[text]`, `<file...>` */
  readonly name: string
  readonly help: string
  readonly choices?: readonly string[]
}

/** A flag that is not a setting. */
export interface FlagSpec {
  /** `--out <file>` */
  readonly flags: string
  readonly help: string
  readonly choices?: readonly string[]
  readonly default?: string
  /** The default in words, where the command has no fixed value for it. */
  readonly defaultText?: string
  readonly repeatable?: true
}

/**
 * Runs a command with its flags and then its arguments. It is declared as a method, since only methods can have parameters of
 * narrower types than these.
 */
export type Run = { run(context: Context, flags: CommonFlags, ...args: unknown[]): Promise<void> }['run']
