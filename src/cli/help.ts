import { Argument, Command, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { printableText, suggest } from '../base/text.js'
import {
  type CommandGroup,
  type CommandSpec,
  exitCodes,
  type Flags,
  type FlagSpec,
  type Run,
} from './command.js'
import type { Context, TextStream } from './context.js'
import { ACTIONS } from './declarations/actions.js'
import { JOURNAL } from './declarations/journal.js'
import { SERVICE } from './declarations/service.js'
import { SETUP } from './declarations/setup.js'
import { SIGNING_IN } from './declarations/signing-in.js'
import { table } from './output/text.js'
import { defaultText, SETTING_NAMES, type SettingName, settingOf } from './settings/table.js'

// The command line as commander knows it, and its help.

/** Every command, in the order of help. */
export const GROUPS: readonly CommandGroup[] = [SERVICE, JOURNAL, SETUP, SIGNING_IN, ACTIONS]
export const COMMANDS: readonly CommandSpec[] = GROUPS.flatMap(({ commands }) => commands)

/** relay itself: its options are those of every command. */
export const RELAY: Omit<CommandSpec, 'name' | 'summary'> & {
  readonly variables: readonly (readonly [string, string])[]
} = {
  description: `Receives a code host's webhooks on this machine, durably, and acts on the code host from your shell.`,
  examples: [
    'relay serve --sandbox          run the service with an emulated code host',
    'relay login --profile sandbox  sign in there',
    'relay comment octo/demo#1 "Hello" --profile sandbox',
  ],
  settings: ['profile'],
  options: [
    ['--json', 'print results as JSON, one object per line'],
    [
      '--color <when>',
      'use colors: auto, always, never',
      { choices: ['auto', 'always', 'never'], default: 'auto' },
    ],
    ['-q, --quiet', 'print only results, warnings and errors'],
    ['-v, --verbose', 'print debug messages'],
  ],
  env: ['home'],
  variables: [
    ['NO_COLOR', 'turn off colors, unless --color is given'],
    ['FORCE_COLOR', 'turn on colors, even if the output is not a terminal'],
    ['RELAY_DEBUG', 'print the stack of an error'],
  ],
  exits: [[0, 'success, also after Ctrl-C in serve and log --follow'], 3, 4, 5, 6, 7, 8, 130],
}

/** Runs what a command loads, with its flags and then its arguments. */
export type Start = (load: () => Promise<Run>, flags: Flags, args: readonly unknown[]) => Promise<void>

export interface ProgramOptions {
  /** The command line. A command that it does not name is only listed: to declare them all takes milliseconds. All are declared without it. */
  readonly argv?: readonly string[]
  /** The caller reports usage errors, as objects. */
  readonly isSilent?: boolean
}

/** The command tree as commander knows it, with the options that every command takes. */
export function createProgram(
  context: Context,
  start: Start,
  { argv, isSilent = false }: ProgramOptions = {},
): Command {
  const { stdout, stderr } = context
  const program = new Command('relay')
    .description(introduction(RELAY, context))
    .version(packageJson.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .showHelpAfterError('(relay --help lists the commands)')
    .configureOutput({
      writeOut: (text) => void stdout.write(fit(text, helpWidth(stdout))),
      writeErr: (text) => void (isSilent || stderr.write(fit(printableText(text), helpWidth(stderr)))),
      outputError: (text) => void (isSilent || stderr.write(printableText(text))),
      getOutHelpWidth: () => helpWidth(stdout),
      getErrHelpWidth: () => helpWidth(stderr),
      // Help has no colors; to ask would open the terminal.
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({
      showGlobalOptions: true,
      optionDescription: ({ description }) => description,
      argumentDescription: ({ description }) => description,
      boxWrap: fit,
    })
    .exitOverride()
    .addHelpText('after', ({ error }) => (error ? '' : conclusion(RELAY)))
    .on('command:*', ([word = '']: string[]) => program.error(unknownCommand(word)))
  for (const option of optionsOf(RELAY)) program.addOption(toOption(option))
  const full = program.helpInformation.bind(program)
  // Without a command, commander prints the help as an error; `main` prints the overview.
  program.helpInformation = (options) => (options?.error ? '' : full(options))
  for (const { heading, commands } of GROUPS)
    for (const spec of commands) {
      const command = program.command(spec.name).helpCommand(false).summary(spec.summary).helpGroup(heading)
      if (argv?.includes(spec.name) !== false) declare(command, spec, context, start)
    }
  return program
}

/** Declares a command to commander. What the command runs is imported when it runs. */
function declare(command: Command, spec: CommandSpec, context: Context, start: Start): void {
  command.description(introduction(spec, context)).addHelpText('after', () => conclusion(spec))
  command.allowExcessArguments(spec.takesMore === true)
  for (const [name, help, choices] of spec.args ?? []) {
    const argument = new Argument(name, help)
    command.addArgument(choices ? argument.choices(choices) : argument)
  }
  for (const option of optionsOf(spec)) command.addOption(toOption(option))
  for (const sub of spec.subcommands ?? [])
    declare(command.command(sub.name).helpCommand(false).summary(sub.summary), sub, context, start)
  const usage = command.createHelp().commandUsage(command)
  command.showHelpAfterError(`Usage: ${usage}\n(${usage.replace(/ (?:\[|<).*/, '')} --help says more)`)
  const { load } = spec
  if (load) command.action((...args) => start(load, command.optsWithGlobals(), args))
}

/** An option as help shows it: a flag of one command, or the flag of a setting. */
export interface OptionEntry {
  readonly flags: string
  readonly help: string
  readonly choices?: readonly string[] | undefined
  readonly default?: string | undefined
  /** The default in words. */
  readonly defaultText?: string | undefined
  readonly repeatable?: true | undefined
  readonly env?: string
  /** The value of the flag without one. */
  readonly bare?: string | undefined
}

/** The options of a command, in the order of its help. */
export function optionsOf({
  options = [],
  settings = [],
}: Pick<CommandSpec, 'options' | 'settings'>): readonly OptionEntry[] {
  const flags = options.map(([name, help, more]: FlagSpec) => ({ flags: name, help, ...more }))
  return [
    ...flags,
    ...settings.map((name) => {
      const { flag = '', help, env, bare, list } = settingOf(name)
      return { flags: flag, help, env, bare, repeatable: list, defaultText: defaultText(name) }
    }),
  ]
}

/** With `port to listen on (env: RELAY_PORT) (default: 8787)` as its help. */
function toOption(entry: OptionEntry): Option {
  const { flags, help, choices, repeatable, env, bare, default: value, defaultText: words = value } = entry
  const notes = [
    ...(repeatable ? ['repeatable'] : []),
    ...(env === undefined ? [] : [`env: ${env}`]),
    ...(words === undefined ? [] : [`default: ${words}`]),
  ]
  const option = new Option(flags, [help, ...notes.map((note) => `(${note})`)].join(' ')).preset(bare)
  if (value !== undefined) option.default(value)
  if (choices) option.choices(choices)
  if (repeatable) option.argParser<readonly string[] | undefined>((text, before) => [...(before ?? []), text])
  return option
}

/** The variables of settings: name and description of each. */
export function variableRows(names: readonly SettingName[]): [string, string][] {
  return names.map((name) => {
    const { env, help, list } = settingOf(name)
    const text = defaultText(name)
    return [env, `${help}${list ? ' (one per line)' : ''}${text === undefined ? '' : ` (default: ${text})`}`]
  })
}

export const SECRET_FILES = 'A secret can be in a file: set its name with _FILE added to the path.'

/** The first part of a command's help: what it does, with examples. */
function introduction(
  { description, examples, details }: Pick<CommandSpec, 'description' | 'examples' | 'details'>,
  context: Context,
): string {
  const parts = [joinParagraphs(description), ['Examples:', ...indented(examples)].join('\n')]
  return [...parts, ...(details ? [details(context)] : [])].join('\n\n')
}

/** The last part of a command's help. */
function conclusion({
  env = [],
  exits,
  variables = [],
}: Pick<CommandSpec, 'env' | 'exits'> & { readonly variables?: (typeof RELAY)['variables'] }): string {
  const rows = table([...variableRows(env), ...variables]).map(String)
  const codes = exitCodes(exits).map(([code, text]) => [String(code).padStart(3), text])
  return [
    ...(rows.length > 0 ? ['', 'Environment:', ...indented(rows)] : []),
    ...(env.some((name) => settingOf(name).secret) ? indented([SECRET_FILES]) : []),
    '',
    'Exit codes:',
    ...indented(table(codes).map(String)),
  ].join('\n')
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}

/** The commands that most people need, in the order in which they need them. */
const FIRST = ['serve', 'trigger', 'log', 'show', 'login', 'comment']

/** What `relay` alone prints: the first commands with what they do, the names of the others, and where to read on. */
export function overview({ columns = 80 }: TextStream): string {
  const first = FIRST.flatMap((name) => COMMANDS.find((spec) => spec.name === name) ?? [])
  const others = GROUPS.flatMap(({ heading, commands }) => {
    const names = commands.filter((spec) => !first.includes(spec)).map(({ name }) => name)
    return names.length === 0 ? [] : [[heading, names.join(', ')]]
  })
  const lines = [
    'Usage: relay <command> [options]',
    '',
    "Receives a code host's webhooks on this machine, durably,",
    'and acts on the code host from your shell.',
    '',
    'First steps, without an account or a network: relay serve --sandbox',
    '',
    'Most used:',
    ...table(first.map(({ name, summary }) => [`  ${name}`, summary])),
    '',
    ...table(others),
    '',
    'relay help <command> explains a command, relay help settings lists the settings.',
    '',
  ]
  return fit(lines.join('\n'), columns)
}

/** `relay help settings`: every setting, as a table as wide as its terminal. */
export function settingsHelp({ columns = 80 }: TextStream): string {
  const rows = SETTING_NAMES.map((name) => {
    const { env, flag = '', help } = settingOf(name)
    const text = defaultText(name)
    const names = [env, flag.split(' ')[0]].filter(Boolean).join(', ')
    return [`  ${names}`, `${help}${text === undefined ? '' : ` (default: ${text})`}`]
  })
  const end =
    'relay config shows the settings in force, and where each comes from. docs/settings.md says where they can be set.'
  return fit(['Settings, by variable and flag:', ...table(rows), '', end, ''].join('\n'), columns)
}

/** What other programs call things, and the command line that does it here. */
const MEANINGS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    comment: 'reply answer say',
    config: 'settings configure env environment set get options',
    doctor: 'check diagnose health status info debug',
    export: 'save dump record download fixture',
    log: 'list ls history deliveries events entries requests ps',
    'log --follow': 'tail follow watch stream logs',
    login: 'signin auth authorize authenticate connect',
    react: 'reaction emoji like',
    replay: 'resend redeliver retry repeat',
    revoke: 'logout signout disconnect unauthorize',
    routes: 'targets forwards',
    serve: 'start run up listen server receive',
    'serve --forward': 'forward proxy',
    'serve --sandbox': 'sandbox demo',
    'serve --tunnel': 'tunnel expose smee',
    setup: 'init register install',
    show: 'view inspect cat describe open',
    trigger: 'send fire emit simulate fake test ping',
    verify: 'validate signature',
    wait: 'await expect',
    whoami: 'who me user account',
  }).flatMap(([line, words]) => words.split(' ').map((word) => [word, line])),
)

/** The command line that was probably meant by an unknown command, by its meaning or its spelling. */
export function meantCommand(word: string): string | undefined {
  const line = Object.hasOwn(MEANINGS, word)
    ? MEANINGS[word]
    : suggest(
        word,
        COMMANDS.map(({ name }) => name),
      )
  return line === undefined ? undefined : `relay ${line}`
}

function unknownCommand(word: string): string {
  const meant = meantCommand(word)
  return `error: unknown command '${word}'${meant === undefined ? '' : `\n(Did you mean ${meant}?)`}`
}

/** Longer lines are hard to read, however wide the terminal. */
const MAX_HELP_WIDTH = 100

function helpWidth({ columns = 80 }: TextStream): number {
  return Math.min(columns, MAX_HELP_WIDTH)
}

/** Joins the lines of a paragraph, which are broken only in the source. Indented lines stay. */
export function joinParagraphs(text: string): string {
  return text.replaceAll(/(?<=\S)\n(?=\S)/g, ' ')
}

/** Indentation of the rest of a wrapped line. */
const HANGING = 4

/**
 * Wraps lines longer than `width` at spaces. The rest of a line is placed under its second column (the text after two spaces
 * or more), or indented; a second column that starts too far right gets its own lines.
 */
export function fit(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => (line.length <= width ? line : broken(line, width)))
    .join('\n')
}

function broken(line: string, width: number): string[] {
  const [, indent = '', first = '', gap = '', second = ''] =
    /^(\s*)(\S+(?: \S+)*)(\s{2,})?(.*)$/.exec(line) ?? []
  if (second === '') return fill(first, indent, `${indent}${' '.repeat(indent === '' ? 0 : HANGING)}`, width)
  const column = indent.length + first.length + gap.length
  if (column <= width / 2) return fill(second, `${indent}${first}${gap}`, ' '.repeat(column), width)
  const below = `${indent}${' '.repeat(HANGING)}`
  return [...fill(first, indent, below, width), ...fill(second, below, below, width)]
}

/** Not the space in `(env: NAME)` or `(default: value)`, which is easier to read on one line. */
const SPACE = /(?<!\((?:env|default):)\s+/

function fill(text: string, start: string, next: string, width: number): string[] {
  const lines: string[] = []
  let line = start
  let isEmpty = true
  for (const word of text.split(SPACE)) {
    if (!isEmpty && line.length + 1 + word.length > width) {
      lines.push(line)
      line = next
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, line]
}
