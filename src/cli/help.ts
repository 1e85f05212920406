import type { Command } from 'commander'
import { wrap } from './output/wrap.js'
import { CATALOG, SUMMARIES } from './catalog.js'
import { type Declaration, exitCodes, type FlagSpec, type HelpRow, type HelpSection } from './command.js'
import type { HelpContext, TextStream } from './context.js'
import { defaultText, SETTING_NAMES, type SettingName, settingOf } from './settings/table.js'

/** Declaration of relay itself. Every command has its options. */
export const RELAY = {
  description: `Receives a code host's webhooks on this machine, durably, and acts on the code host from your shell.`,
  examples: `relay serve --sandbox          run the service with an emulated code host
relay login --profile sandbox  sign in there
relay comment octo/demo#1 "Hello" --profile sandbox`,
  settings: ['profile'],
  options: [
    ['--json', 'print results as JSON, one object per line'],
    ['--color <when>', 'use colors', { choices: ['auto', 'always', 'never'], default: 'auto' }],
    ['-q, --quiet', 'print only results, warnings and errors'],
    ['-v, --verbose', 'print debug messages'],
  ],
  env: ['home'],
  exits: [[0, 'success, also after Ctrl-C in serve and log --follow'], 3, 4, 5, 6, 7, 8, 130],
} as const satisfies Declaration

export const VARIABLES: readonly HelpRow[] = [
  ['NO_COLOR', 'turn off colors, unless --color is given'],
  ['FORCE_COLOR', 'turn on colors, even if the output is not a terminal'],
  ['RELAY_DEBUG', 'print the stack of an error'],
]

/** Lists the options of a command in the order of its help, with their possible words. */
export function optionsOf({ options = [], settings = [] }: Declaration): FlagSpec[] {
  const own = options.map(([flags, help, more = {}]): FlagSpec => {
    const choices = more.choices ? `: ${more.choices.join(', ')}` : ''
    return [flags, help + choices, more]
  })
  const flags = settings.map((name): FlagSpec => {
    const { flag = '', help, env, bare, list } = settingOf(name)
    return [flag, help, { setting: name, env, bare, repeatable: list, defaultText: defaultText(name) }]
  })
  return [...own, ...flags]
}

/** Lists the variables of settings, with their descriptions. */
export function variableRows(names: readonly SettingName[]): HelpRow[] {
  return names.map((name) => {
    const { env, help, list } = settingOf(name)
    return [env, `${help}${list ? ' (one per line)' : ''}${defaultNote(defaultText(name))}`]
  })
}

/** Formats ` (default: …)`, whose second space help does not break. Empty without a default. */
function defaultNote(text: string | undefined): string {
  return text === undefined ? '' : ` (default:\u00a0${text})`
}

/** Formats the help of an option, with notes about its value. */
export function helpOf([, help, more = {}]: FlagSpec): string {
  const { repeatable, env, default: value, defaultText = value } = more
  const notes = `${repeatable ? ' (repeatable)' : ''}${env === undefined ? '' : ` (env:\u00a0${env})`}`
  return help + notes + defaultNote(defaultText)
}

export const SECRET_FILES = 'A secret can be in a file: set its name with _FILE added to the path.'

/** Formats the help of a command, before it is fitted to a terminal. */
export function helpPage(command: Command, spec: Declaration, context: HelpContext): string {
  const { examples, details, env = [] } = spec
  const { parent } = command
  const optionRows = ({ options }: Command): HelpRow[] =>
    options.map(({ flags, description }) => [flags, description])
  const commands: readonly HelpSection[] = parent
    ? [['Commands:', command.commands.map((each) => [`${each.name()} ${each.usage()}`, each.summary()])]]
    : Object.entries(CATALOG).map(([heading, summaries]) => [heading, Object.entries(summaries)])
  const lists: readonly HelpSection[] = [
    ['Arguments:', command.registeredArguments.map((each) => [each.name(), each.description])],
    ['Options:', [...optionRows(command), ['-h, --help', 'print this help']]],
    ['Global Options:', parent ? optionRows(parent.parent ?? parent) : []],
    ...commands,
  ]
  const width = Math.max(...lists.flatMap(([, rows]) => rows.map(([name]) => name.length)))
  const secrets = env.some((name) => settingOf(name).secret) ? [[SECRET_FILES, ''] as const] : []
  const codes = exitCodes(spec.exits).map(([code, text]): HelpRow => [String(code).padStart(3), text])
  const parts = [
    `Usage: ${command.createHelp().commandUsage(command)}`,
    joinLines(spec.description),
    `Examples:\n${examples.replaceAll(/^/gm, '  ')}`,
    ...(details ? listOf(details(context)) : []),
    ...lists.flatMap((list) => listOf(list, width)),
    ...listOf(['Environment:', [...variableRows(env), ...(parent ? [] : VARIABLES), ...secrets]]),
    ...listOf(['Exit codes:', codes]),
  ]
  return `${parts.join('\n\n')}\n`
}

/** Formats a list under its heading, with names in a column. Empty for an empty list. */
export function listOf([heading, rows]: HelpSection, width = nameWidth(rows)): string[] {
  const lines = rows.map(([name, text]) => `  ${text === '' ? name : `${name.padEnd(width)}  ${text}`}`)
  return lines.length === 0 ? [] : [[heading, ...lines].join('\n')]
}

function nameWidth(rows: readonly HelpRow[]): number {
  return Math.max(...rows.map(([name, text]) => (text === '' ? 0 : name.length)))
}

/** Commands that most people need, in the order in which they need them. */
const FIRST = ['serve', 'trigger', 'log', 'show', 'login', 'comment'] as const

/**
 * Formats the output of `relay` alone: the first commands with summaries, the names of the others, and where to read
 * on.
 */
export function overview(stream: TextStream): string {
  const first = FIRST.map((name): HelpRow => [name, SUMMARIES[name]])
  const width = nameWidth(Object.keys(CATALOG).map((heading) => [heading, heading]))
  const others = Object.entries(CATALOG).flatMap(([heading, summaries]) => {
    const names = Object.keys(summaries).filter((name) => !FIRST.some((first) => first === name))
    return names.length === 0 ? [] : `${heading.padEnd(width)}  ${names.join(', ')}`
  })
  const parts = [
    'Usage: relay <command> [options]',
    "Receives a code host's webhooks on this machine, durably,\nand acts on the code host from your shell.",
    'First steps, without an account or a network: relay serve --sandbox',
    ...listOf(['Most used:', first]),
    others.join('\n'),
    'relay help <command> explains a command, relay help settings lists the settings.\n',
  ]
  return fit(parts.join('\n\n'), stream)
}

/** Formats `relay help settings`: every setting, as a table as wide as the terminal. */
export function settingsHelp(stream: TextStream): string {
  const rows = SETTING_NAMES.map((name): HelpRow => {
    const { env, flag, help } = settingOf(name)
    return [flag === undefined ? env : `${env}, ${flag.split(' ')[0]}`, help + defaultNote(defaultText(name))]
  })
  const end =
    'relay config shows the settings in force, and where each comes from. docs/settings.md says where they can be set.\n'
  return fit([...listOf(['Settings, by variable and flag:', rows]), end].join('\n\n'), stream, Infinity)
}

export function joinLines(text: string): string {
  return text.replaceAll('\n', ' ')
}

/** Maximum line length, since longer lines are hard to read on any terminal. Columns. */
const MAX_WIDTH = 100
/** Additional indentation for the rest of a line. */
const HANGING = 4

/**
 * Wraps long lines. The rest goes under the second column (after two spaces or more), or on a less indented line if
 * that is too far right.
 */
export function fit(text: string, { columns = 80 }: TextStream, max = MAX_WIDTH): string {
  const width = Math.min(columns, max)
  const lines = text.split('\n').flatMap((line) => {
    if (line.length <= width) return line
    const [, first = ''] = /^( *\S+(?: \S+)* {2,})\S/.exec(line) ?? []
    const indent = line.search(/\S/)
    const hanging = indent === 0 && first === '' ? 0 : indent + HANGING
    if (first === '') return wrap(line, width, hanging)
    if (first.length <= width / 2) return wrap(line, width, first.length)
    const second = ' '.repeat(hanging) + line.slice(first.length)
    return [...wrap(first.trimEnd(), width, hanging), ...wrap(second, width, hanging)]
  })
  return lines.join('\n').replaceAll('\u00a0', ' ')
}
