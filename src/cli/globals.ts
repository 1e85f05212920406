import { Option, type Command } from 'commander'
import type { Context } from './context.js'
import { OPTIONS, optionHelp, type OptionName, type OptionRow } from './options.js'
import { createOutput, type ColorMode, type Output } from './output.js'
import { checkSecretsPlace, readOptions, type Flags, type Reading } from './settings/read.js'

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
    const { flag }: OptionRow<unknown> = OPTIONS[name]
    if (flag) command.addOption(new Option(flag, optionHelp(name)))
  }
  return command
}

/**
 * The output and the settings a command runs with.
 * @throws RelayError `settings`
 */
export function prepare(context: Context, raw: RawOptions): Reading & { readonly output: Output } {
  const output = createOutputFor(context, raw)
  const reading = readOptions(context, raw, output.log)
  if (!raw.sandbox) checkSecretsPlace(reading.origins)
  return { output, ...reading }
}

export function createOutputFor(
  context: Context,
  { color, quiet = false, verbose = false }: RawOptions,
): Output {
  return createOutput(context, { color, quiet, verbose })
}

/** The `Environment:` part of a command's help, made from the options it reads. */
export function environmentHelp(names: readonly OptionName[]): string {
  const rows = names.map((name) => OPTIONS[name])
  const width = Math.max(...rows.map(({ env }) => env.length))
  return [
    '',
    'Environment:',
    ...names.map((name, i) => `  ${rows[i]?.env.padEnd(width)}  ${optionHelp(name)}`),
  ].join('\n')
}
