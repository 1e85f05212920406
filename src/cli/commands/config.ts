import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Context } from '../context.js'
import { createOutputFor, environmentHelp, exitCodesHelp, type RawOptions } from '../globals.js'
import { didYouMean, plain } from '../nearest.js'
import { OPTION_NAMES, OPTIONS, type OptionName, type OptionRow } from '../options.js'
import { printable } from '../output.js'
import { tilde } from '../place.js'
import type { Described } from '../settings/describe.js'
import { keysOf } from '../settings/file.js'
import { readOptions, userFile } from '../settings/read.js'
import { table } from '../table.js'

type ConfigFlags = RawOptions & { readonly reveal?: string }

/** Declares `relay config`. */
export function declareConfig(command: Command, context: Context, run = runConfig): void {
  command
    .description(
      `Shows every setting, its value, and where that comes from. A flag wins over the environment, which wins over .env in
the working folder, the project's relay.json, your own config.json, and the default. Secrets are masked.

Examples:
  relay config
  relay config --json | jq .settings.port
  relay config --reveal webhookSecret    the secret to enter at the code host`,
    )
    .option('--reveal <name>', 'print the value of this setting alone, also of a secret')
    .addHelpText('after', () => help(context))
    .action((_: unknown, command: Command) => run(context, command.optsWithGlobals()))
}

function help(context: Context): string {
  const files = [
    ['.env', 'in the working folder: variables, also secrets'],
    ['relay.json', `in the working folder or above it in its checkout: ${keysOf('project').join(', ')}`],
    [tilde(userFile(context)), 'every setting, secrets as <name>File; and "profiles": {"<profile>": {…}}'],
  ]
  return `
Files:
${table(files)
  .map((line) => `  ${line}`)
  .join('\n')}
${environmentHelp(OPTION_NAMES)}
${exitCodesHelp([0, 2])}`
}

async function runConfig(context: Context, flags: ConfigFlags): Promise<void> {
  const output = createOutputFor(context, flags)
  const { describeSettings } = await import('../settings/describe.js')
  const name = flags.reveal === undefined ? undefined : optionCalled(flags.reveal)
  const settings = describeSettings(readOptions(context, flags, output.log))
  if (name !== undefined) {
    const value = revealed(settings, name)
    if (flags.json) output.object({ name, value })
    else output.result(text(value))
  } else if (flags.json) {
    output.object({ settings: Object.fromEntries(settings.map((one) => [one.name, asObject(one)])) })
  } else {
    for (const line of table([['name', 'value', 'origin'], ...settings.map(asRow)])) output.result(line)
  }
}

/**
 * The setting of that name, or of that flag or variable.
 * @throws RelayError `usage` naming the nearest.
 */
function optionCalled(word: string): OptionName {
  const found = OPTION_NAMES.find((name) =>
    [name, OPTIONS[name].env].some((known) => plain(known) === plain(word)),
  )
  if (found === undefined)
    throw new RelayError('usage', `--reveal: no setting is called ${word}${didYouMean(word, OPTION_NAMES)}`)
  return found
}

/** @throws RelayError `settings` when it has none. */
function revealed(settings: readonly Described[], name: OptionName): NonNullable<Described['value']> {
  const { value, otherwise } = settings.find((one) => one.name === name) ?? {}
  if (value !== undefined) return value
  throw new RelayError(
    'settings',
    `${name} is not set${otherwise === undefined ? '' : ` (default: ${otherwise})`}`,
  )
}

function asObject({ name, value, origin, secret }: Described): Record<string, unknown> {
  return secret ? { set: value !== undefined, origin } : { value: masked(name, value) ?? null, origin }
}

/** Only `--reveal` shows a password. */
function masked(name: OptionName, value: Described['value']): Described['value'] {
  const { mask }: OptionRow<unknown> = OPTIONS[name]
  return mask && typeof value === 'object' ? value.map(mask) : value
}

function asRow({ name, value, origin, secret, otherwise = '-' }: Described): string[] {
  const open = masked(name, value)
  const shown = open === undefined ? otherwise : secret ? 'set' : text(open)
  return [name, printable(shown), printable(tilde(origin))]
}

function text(value: NonNullable<Described['value']>): string {
  return typeof value === 'object' ? value.join(',') : String(value)
}
