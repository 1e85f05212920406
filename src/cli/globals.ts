import { Option, type Command } from 'commander'
import type { Context } from './context.js'
import { OPTIONS, optionHelp, type OptionName, type OptionRow } from './options.js'
import { createOutput, type ColorMode, type Output } from './output.js'
import { checkSecretsPlace, readOptions, type Flags, type Reading } from './settings/read.js'
import { table } from './table.js'

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
    const { flag, list, bare }: OptionRow<unknown> = OPTIONS[name]
    if (!flag) continue
    const option = new Option(flag, optionHelp(name)).preset(bare)
    command.addOption(list ? option.argParser(another) : option)
  }
  return command
}

function another(text: string, given: readonly string[] | undefined): readonly string[] {
  return [...(given ?? []), text]
}

/** What a command runs with. */
export interface Prepared extends Reading {
  readonly output: Output
}

/**
 * The output and the settings a command runs with. Called once, as it may warn.
 * @throws RelayError `settings`
 */
export function prepare(context: Context, raw: RawOptions): Prepared {
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

/** The `Environment:` part of a command's help, made from the options it reads, and further rows. */
export function environmentHelp(
  names: readonly OptionName[],
  more: readonly (readonly [string, string])[] = [],
): string {
  const secrets = names.filter((name) => 'secret' in OPTIONS[name])
  const rows = [...names.map((name) => [OPTIONS[name].env, optionHelp(name)] as const), ...more]
  return [
    '',
    'Environment:',
    ...columns(rows.length > 0 ? rows : [['none']]),
    ...(secrets.length > 0 ? ['  A secret may also lie in the file that <NAME>_FILE names.'] : []),
  ].join('\n')
}

const EXIT_CODES = {
  0: 'ok',
  1: 'failure',
  2: 'usage or settings',
  3: 'a target or an expectation failed',
  4: 'sign-in needed',
  5: 'signature invalid',
  6: 'nothing matched',
  7: 'timed out',
  8: 'code host or network refused',
  130: 'interrupted',
} as const

/** The `Exit codes:` part of a command's help. `words` says what one means for this command in particular. */
export function exitCodesHelp(
  codes: readonly (keyof typeof EXIT_CODES)[],
  words: { readonly [Code in keyof typeof EXIT_CODES]?: string } = {},
): string {
  return [
    '',
    'Exit codes:',
    ...columns(codes.map((code) => [String(code).padStart(3), words[code] ?? EXIT_CODES[code]])),
  ].join('\n')
}

function columns(rows: readonly (readonly string[])[]): string[] {
  return table(rows).map((line) => `  ${line}`)
}
