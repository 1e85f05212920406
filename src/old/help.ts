import type { CommandSpec, FlagSpec } from './command.js'
import type { Context } from './context.js'
import { exitCodes } from './exit-codes.js'
import { table } from './output/table.js'
import { joinParagraphs } from './output/wrap.js'
import { defaultText, type OptionName, specOf } from './settings/options.js'

/** An option as help shows it: a flag of one command, or the flag of a setting. */
export interface OptionEntry extends FlagSpec {
  readonly env?: string | undefined
  /** The value of the flag without one. */
  readonly bare?: string | undefined
}

/** The options of a command, in the order of its help. */
export function optionsOf({
  options = [],
  settings = [],
}: Pick<CommandSpec, 'options' | 'settings'>): readonly OptionEntry[] {
  return [...options, ...settings.map(settingEntry)]
}

function settingEntry(name: OptionName): OptionEntry {
  const { flag: flags = '', help, env, bare, list } = specOf(name)
  const text = defaultText(name)
  return { flags, help, env, bare, ...(list && { repeatable: true }), ...(text && { defaultText: text }) }
}

/** `port to listen on (env: RELAY_PORT) (default: 8787)` */
export function describeOption(option: OptionEntry): string {
  const { help, repeatable, env, defaultText = option.default } = option
  const notes = [
    ...(repeatable ? ['repeatable'] : []),
    ...(env === undefined ? [] : [`env: ${env}`]),
    ...(defaultText === undefined ? [] : [`default: ${defaultText}`]),
  ]
  return [help, ...notes.map((note) => `(${note})`)].join(' ')
}

/** The variables of settings: name and description of each. */
export function variableRows(names: readonly OptionName[]): [string, string][] {
  return names.map((name) => {
    const { env, help, list } = specOf(name)
    const text = defaultText(name)
    return [env, `${help}${list ? ' (one per line)' : ''}${text === undefined ? '' : ` (default: ${text})`}`]
  })
}

/** The first part of a command's help: what it does, with examples. */
export function introduction(
  { description, examples, details }: Pick<CommandSpec, 'description' | 'examples' | 'details'>,
  context: Context,
): string {
  const parts = [
    joinParagraphs(description),
    ['Examples:', ...examples.map((line) => `  ${line}`)].join('\n'),
  ]
  return [...parts, ...(details ? [details(context)] : [])].join('\n\n')
}

/** The last part of a command's help. `more` are further variables. */
export function conclusion(
  { environment = [], exitCodes: codes }: Pick<CommandSpec, 'environment' | 'exitCodes'>,
  more: readonly (readonly [string, string])[] = [],
): string {
  const secrets = environment.some((name) => specOf(name).secret)
  const variables = table([...variableRows(environment), ...more])
  return [
    ...(variables.length > 0 ? ['', 'Environment:', ...indented(variables)] : []),
    ...(secrets ? [`  ${SECRET_FILES}`] : []),
    '',
    'Exit codes:',
    ...indented(table(exitCodes(codes).map(([code, text]) => [String(code).padStart(3), text]))),
  ].join('\n')
}

export const SECRET_FILES = 'A secret can be in a file: set its name with _FILE added to the path.'

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}
