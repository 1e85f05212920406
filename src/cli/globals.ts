import { Option, type Command } from 'commander'
import type { Context } from './context.js'
import { OPTIONS, type OptionName, type OptionValues } from './options.js'
import { createOutput, type ColorMode, type Output } from './output.js'
import { readOptions, type Flags } from './settings.js'

/** What commander collected for a command: its own options and the program's. */
export type RawOptions = Flags & {
  readonly json?: boolean
  readonly color: ColorMode
  readonly quiet?: boolean
  readonly verbose?: boolean
}

/** Adds the flags of these settings to a command. */
export function addOptions(command: Command, names: readonly OptionName[]): Command {
  for (const name of names) {
    const { flag, help } = OPTIONS[name]
    if (flag) command.addOption(new Option(flag, help))
  }
  return command
}

/** The output and the settings a command runs with. */
export function prepare(context: Context, raw: RawOptions): { output: Output; options: OptionValues } {
  const { color, quiet = false, verbose = false } = raw
  const output = createOutput(context, { color, quiet, verbose })
  return { output, options: readOptions(context, raw, output.log) }
}

/** The `Environment:` part of a command's help, made from the options it reads. */
export function environmentHelp(names: readonly OptionName[]): string {
  const rows = names.map((name) => OPTIONS[name])
  const width = Math.max(...rows.map(({ env }) => env.length))
  return ['', 'Environment:', ...rows.map(({ env, help }) => `  ${env.padEnd(width)}  ${help}`)].join('\n')
}
