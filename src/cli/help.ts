import { Argument, Command, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { printableText, suggest } from '../base/text.js'
import {
  columns,
  type CommandGroup,
  type CommandSpec,
  exitCodes,
  type Flags,
  type FlagSpec,
  type Row,
  type Run,
} from './command.js'
import type { Context, TextStream } from './context.js'
import { ACTIONS } from './declarations/actions.js'
import { JOURNAL } from './declarations/journal.js'
import { SERVICE } from './declarations/service.js'
import { SETUP } from './declarations/setup.js'
import { SIGNING_IN } from './declarations/signing-in.js'
import { defaultText, SETTING_NAMES, type SettingName, settingOf } from './settings/table.js'

// The command line as commander knows it, and its help.

/** Every command, in the order of help. */
export const GROUPS: readonly CommandGroup[] = [SERVICE, JOURNAL, SETUP, SIGNING_IN, ACTIONS]
export const COMMANDS: readonly CommandSpec[] = GROUPS.flatMap(({ commands }) => commands)

/** relay itself: its options are those of every command. */
export const RELAY: Omit<CommandSpec, 'name' | 'summary'> & {
  readonly variables: readonly Row[]
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
  /** The command line. A command that it does not name is left out: to declare them all takes milliseconds. All are declared without it. */
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
    .version(packageJson.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .showHelpAfterError('(relay --help lists the commands)')
    .configureOutput({
      writeOut: (text) => void stdout.write(fit(text, helpWidth(stdout))),
      writeErr: (text) => void (isSilent || stderr.write(fit(printableText(text), helpWidth(stderr)))),
      outputError: (text) => void (isSilent || stderr.write(printableText(text))),
      // Help has no colors; to ask would open the terminal.
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride()
    .on('command:*', ([word = '']: string[]) => program.error(unknownCommand(word)))
  for (const option of optionsOf(RELAY)) program.addOption(toOption(option))
  // Without a command, commander prints the help as an error; `main` prints the overview.
  program.helpInformation = (options) => (options?.error ? '' : helpPage(program, RELAY, context))
  for (const { commands } of GROUPS)
    for (const spec of commands) {
      const isNamed = argv?.includes(spec.name) !== false
      // Completion offers the others. One has to be known, or commander does not miss it.
      if (!isNamed && spec.name !== 'help' && !argv?.includes('completion')) continue
      const command = program.command(spec.name).helpCommand(false).summary(spec.summary)
      if (isNamed) declare(command, spec, context, start)
    }
  return program
}

/** Declares a command to commander. What the command runs is imported when it runs. */
function declare(command: Command, spec: CommandSpec, context: Context, start: Start): void {
  command.allowExcessArguments(spec.takesMore === true)
  for (const [name, help, choices] of spec.args ?? []) {
    const argument = new Argument(name, help)
    command.addArgument(choices ? argument.choices(choices) : argument)
  }
  for (const option of optionsOf(spec)) command.addOption(toOption(option))
  for (const sub of spec.subcommands ?? [])
    declare(command.command(sub.name).helpCommand(false).summary(sub.summary), sub, context, start)
  command.helpInformation = () => helpPage(command, spec, context)
  const usage = command.createHelp().commandUsage(command)
  command.showHelpAfterError(`Usage: ${usage}\n(${usage.replace(/ (?:\[|<).*/, '')} --help says more)`)
  const { load } = spec
  if (load) command.action((...args) => start(load, command.optsWithGlobals(), args))
}

/** The options of a command, in the order of its help. */
export function optionsOf({
  options = [],
  settings = [],
}: Pick<CommandSpec, 'options' | 'settings'>): readonly FlagSpec[] {
  const flags = settings.map((name): FlagSpec => {
    const { flag = '', help, env, bare, list } = settingOf(name)
    return [flag, help, { env, bare, repeatable: list, defaultText: defaultText(name) }]
  })
  return [...options, ...flags]
}

/** With `port to listen on (env: RELAY_PORT) (default: 8787)` as its help. */
function toOption([flags, help, more = {}]: FlagSpec): Option {
  const { choices, repeatable, env, bare, default: value, defaultText: words = value } = more
  const notes = [
    ...(repeatable ? ['(repeatable)'] : []),
    ...(env === undefined ? [] : [`(env: ${env})`]),
    ...(words === undefined ? [] : [`(default: ${words})`]),
  ]
  const option = new Option(flags, [help, ...notes].join(' ')).preset(bare)
  if (value !== undefined) option.default(value)
  if (choices) option.choices(choices)
  if (repeatable) option.argParser<readonly string[] | undefined>((text, before) => [...(before ?? []), text])
  return option
}

/** The variables of settings: name and description of each. */
export function variableRows(names: readonly SettingName[]): Row[] {
  return names.map((name): Row => {
    const { env, help, list } = settingOf(name)
    const text = defaultText(name)
    return [env, `${help}${list ? ' (one per line)' : ''}${text === undefined ? '' : ` (default: ${text})`}`]
  })
}

export const SECRET_FILES = 'A secret can be in a file: set its name with _FILE added to the path.'

type Section = readonly [heading: string, rows: readonly Row[]]

/** The help of a command, before it is fitted to a terminal. */
function helpPage(command: Command, spec: typeof RELAY | CommandSpec, context: Context): string {
  const { description, examples, details, env = [], exits } = spec
  const { parent } = command
  const isRoot = spec === RELAY
  const options = ({ options }: Command): Row[] =>
    options.map(({ flags, description }) => [flags, description])
  const commands: readonly Section[] = isRoot
    ? GROUPS.map(({ heading, commands }) => [heading, commands.map(({ name, summary }) => [name, summary])])
    : [['Commands:', command.commands.map((each) => [`${each.name()} ${each.usage()}`, each.summary()])]]
  const sections: readonly Section[] = [
    ['Arguments:', command.registeredArguments.map((each) => [each.name(), each.description])],
    ['Options:', [...options(command), ['-h, --help', 'print this help']]],
    ['Global Options:', parent ? options(parent.parent ?? parent) : []],
    ...commands,
  ]
  const width = Math.max(...sections.flatMap(([, rows]) => rows.map(([term]) => term.length)))
  const section = (heading: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [[heading, ...lines].join('\n')]
  const secrets = env.some((name) => settingOf(name).secret) ? [`  ${SECRET_FILES}`] : []
  const codes = exitCodes(exits).map(([code, text]): Row => [String(code).padStart(3), text])
  const parts = [
    `Usage: ${command.createHelp().commandUsage(command)}`,
    joinParagraphs(description),
    ...section(
      'Examples:',
      examples.map((line) => `  ${line}`),
    ),
    ...(details ? [details(context)] : []),
    ...sections.flatMap(([heading, rows]) => section(heading, columns(rows, width))),
    ...section('Environment:', [
      ...columns([...variableRows(env), ...(isRoot ? RELAY.variables : [])]),
      ...secrets,
    ]),
    ...section('Exit codes:', columns(codes)),
  ]
  return `${parts.join('\n\n')}\n`
}

/** The commands that most people need, in the order in which they need them. */
const FIRST = ['serve', 'trigger', 'log', 'show', 'login', 'comment']

/** The longest heading, and two spaces. */
const OTHERS = Math.max(...GROUPS.map(({ heading }) => heading.length)) + 2

/** What `relay` alone prints: the first commands with what they do, the names of the others, and where to read on. */
export function overview({ columns: width = 80 }: TextStream): string {
  const first = FIRST.flatMap((name) => COMMANDS.find((spec) => spec.name === name) ?? [])
  const others = GROUPS.flatMap(({ heading, commands }) => {
    const names = commands.filter((spec) => !first.includes(spec)).map(({ name }) => name)
    return names.length === 0 ? [] : [`${heading.padEnd(OTHERS)}${names.join(', ')}`]
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
    ...columns(first.map(({ name, summary }) => [name, summary])),
    '',
    ...others,
    '',
    'relay help <command> explains a command, relay help settings lists the settings.',
    '',
  ]
  return fit(lines.join('\n'), width)
}

/** `relay help settings`: every setting, as a table as wide as its terminal. */
export function settingsHelp({ columns: width = 80 }: TextStream): string {
  const rows = SETTING_NAMES.map((name): Row => {
    const { env, flag = '', help } = settingOf(name)
    const text = defaultText(name)
    const names = [env, flag.split(' ')[0]].filter(Boolean).join(', ')
    return [names, `${help}${text === undefined ? '' : ` (default: ${text})`}`]
  })
  const end =
    'relay config shows the settings in force, and where each comes from. docs/settings.md says where they can be set.'
  return fit(['Settings, by variable and flag:', ...columns(rows), '', end, ''].join('\n'), width)
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
  const lines = text.split('\n')
  return lines.flatMap((line) => (line.length <= width ? line : broken(line, width))).join('\n')
}

function broken(line: string, width: number): string[] {
  const [, indent = '', first = '', gap = '', second = ''] =
    /^(\s*)(\S+(?: \S+)*)(\s{2,})?(.*)$/.exec(line) ?? []
  const below = indent === '' && second === '' ? '' : indent + ' '.repeat(HANGING)
  const column = indent.length + first.length + gap.length
  if (second !== '' && column <= width / 2)
    return fill(second, line.slice(0, column), ' '.repeat(column), width)
  return [...fill(first, indent, below, width), ...(second === '' ? [] : fill(second, below, below, width))]
}

/** Not the space in `(env: NAME)` or `(default: value)`, which is easier to read on one line. */
const SPACE = /(?<!\((?:env|default):)\s+/

function fill(text: string, start: string, next: string, width: number): string[] {
  const [first = '', ...others] = text.split(SPACE)
  const lines = [start + first]
  for (const word of others) {
    const line = `${lines.at(-1)} ${word}`
    if (line.length > width) lines.push(next + word)
    else lines.splice(-1, 1, line)
  }
  return lines
}
