import { anywhere } from '../base/command-line.js'
import { Argument, Command, CommanderError, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { RelayError, toRelayError } from '../base/errors.js'
import { printableText } from '../base/text.js'
import { type CommandSpec, type Flags, type FlagSpec, type Run, shellWith } from './command.js'
import type { Context, HelpContext } from './context.js'
import { COMMANDS, defaultNote, fit, helpPage, optionsOf, overview, RELAY } from './help.js'
import { meantLine, meantOption } from './meant.js'
import type { Output, OutputOptions } from './output/output.js'
import { settingOf } from './settings/table.js'

/** Runs one command line and resolves with the exit code. The only place where a failure becomes a code. Never rejects. */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const { json, jsonLog } = formatsOf(argv, context)
  let opened: Output | undefined
  const start: Start = async (load, flags, args) => {
    const [run, out] = await Promise.all([load(), openOutput(context, { ...flags, jsonLog })])
    opened = out
    await run(shellWith(context, { out, json: flags.json === true }), flags, ...args)
  }
  const program = createProgram(context, start, { argv, isSilent: json || jsonLog })
  try {
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (thrown) {
    const { color } = program.opts<Flags>()
    if (!(thrown instanceof CommanderError)) {
      const error = toRelayError(thrown)
      // Nothing can be reported to a reader that has closed its end.
      return error.kind === 'broken_pipe'
        ? error.exitCode
        : await report(error, argv, context, { color, out: opened })
    }
    if (thrown.exitCode === 0) return 0 // --help or --version
    const [group] = program.args
    const isHelp = thrown.code === 'commander.help'
    if (isHelp && group === undefined) {
      context.stdout.write(overview(context.stdout))
      return 0
    }
    const why = isHelp
      ? `relay ${group} needs a command. ${anywhere(`${group} --help`)} lists them`
      : thrown.message.replace(/^error: /, '')
    // Commander has already printed the error, or the help, as text.
    const error = new RelayError('usage', why)
    return json || jsonLog ? await report(error, argv, context) : error.exitCode
  }
}

/** Loaded late: help has neither styles nor messages. */
async function openOutput(context: Context, options: OutputOptions): Promise<Output> {
  const { Output } = await import('./output/output.js')
  return new Output(context, options)
}

/** Prints a failure on stderr, as an object where programs read it, or gives it to the caller. Returns its exit code. */
export async function report(
  error: RelayError,
  argv: readonly string[],
  context: Context,
  { color, out }: Pick<Flags, 'color'> & { readonly out?: Output | undefined } = {},
): Promise<number> {
  if (context.onFailure) context.onFailure(error)
  else (out ?? (await openOutput(context, { color, ...formatsOf(argv, context) }))).failure(error)
  return error.exitCode
}

/** Whether results, and whether messages of `serve` are JSON. Read before parsing, since a usage error is an object, too. */
function formatsOf(argv: readonly string[], { env }: Pick<Context, 'env'>) {
  // What comes after `--` is no option.
  const own = argv.slice(0, [...argv, '--'].indexOf('--'))
  const words = own.flatMap((word) => (word.startsWith('--log-format=') ? word.split('=', 2) : word))
  const at = words.lastIndexOf('--log-format')
  const format = at === -1 ? env[settingOf('logFormat').env] : words[at + 1]
  return { json: own.includes('--json'), jsonLog: own.includes('serve') && format === 'json' }
}

type Start = (load: () => Promise<Run>, flags: Flags, args: readonly unknown[]) => Promise<void>

interface ProgramOptions {
  /** The command line. A command that it does not name is left out: to declare them all takes milliseconds. All are declared without it. */
  readonly argv?: readonly string[]
  readonly isSilent?: boolean
}

/** A command that suggests what was probably meant by a word that it does not know. Commander knows spellings alone. */
class RelayCommand extends Command {
  override createCommand(name?: string): RelayCommand {
    return new RelayCommand(name)
  }

  override error(message: string, options?: Parameters<Command['error']>[1]): never {
    const [, word = ''] = /'(.*)'$/s.exec(message) ?? []
    const meant = this.#meant(word, options?.code)
    return super.error(meant === undefined ? message : `${message}\n(Did you mean ${meant}?)`, options)
  }

  #meant(word: string, code: string | undefined): string | undefined {
    if (code === 'commander.unknownCommand') return meantLine(word, this.parent ? this.name() : undefined)
    if (code !== 'commander.unknownOption') return undefined
    const options = [
      ...this.options,
      ...(this.parent?.parent?.options ?? []),
      ...(this.parent?.options ?? []),
    ]
    return meantOption(word, this.args[this.args.indexOf(word) + 1], options)
  }
}

/** The command tree as commander knows it, with the options that every command takes. */
export function createProgram(
  context: HelpContext,
  start: Start,
  { argv, isSilent = false }: ProgramOptions = {},
): Command {
  const { stdout, stderr } = context
  const program = new RelayCommand('relay')
    .version(packageJson.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .showHelpAfterError(`(${anywhere('--help')} lists the commands)`)
    .showSuggestionAfterError(false)
    .configureOutput({
      writeOut: (text) => void stdout.write(fit(text, stdout)),
      writeErr: (text) => void (isSilent || stderr.write(fit(printableText(text), stderr))),
      outputError: (text) => void (isSilent || stderr.write(printableText(text))),
      // Help has no colors; to ask would open the terminal.
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride()
  for (const option of optionsOf(RELAY)) program.addOption(toOption(option))
  // Without a command, commander prints the help as an error; `main` prints the overview.
  program.helpInformation = (options) => (options?.error ? '' : helpPage(program, RELAY, context))
  for (const [name, spec] of Object.entries(COMMANDS)) {
    const isNamed = argv?.includes(name) !== false
    // Completion offers the others. One has to be known, or commander does not miss it.
    if (!isNamed && name !== 'help' && !argv?.includes('completion')) continue
    const command = program.command(name).helpCommand(false).summary(spec.summary)
    if (isNamed) declare(command, spec, context, start)
  }
  return program
}

/** Declares a command to commander. What the command runs is imported when it runs. */
function declare(command: Command, spec: CommandSpec, context: HelpContext, start: Start): void {
  const { load, args = [], subcommands = {} } = spec
  command.allowExcessArguments(spec.takesMore === true)
  for (const [name, help, choices] of args) {
    const argument = new Argument(name, help)
    command.addArgument(choices ? argument.choices(choices) : argument)
  }
  for (const option of optionsOf(spec)) command.addOption(toOption(option))
  for (const [name, sub] of Object.entries(subcommands))
    declare(command.command(name).helpCommand(false).summary(sub.summary), sub, context, start)
  command.helpInformation = () => helpPage(command, spec, context)
  const usage = command.createHelp().commandUsage(command)
  command.showHelpAfterError(`Usage: ${usage}\n(${usage.replace(/ (?:\[|<).*/, '')} --help says more)`)
  if (load) command.action((...values) => start(load, command.optsWithGlobals(), values))
}

/** With `port to listen on (env: RELAY_PORT) (default: 8787)` as its help. */
export function toOption([flags, help, more = {}]: FlagSpec): Option {
  const { choices, repeatable, setting, env, bare, default: value, defaultText = value } = more
  const notes = `${repeatable ? ' (repeatable)' : ''}${env === undefined ? '' : ` (env:\u00a0${env})`}`
  const option = new Option(flags, help + notes + defaultNote(defaultText)).preset(bare)
  if (value !== undefined) option.default(value)
  if (choices) option.choices(choices)
  // A flag that is repeated, as `--source`, and its setting have different names.
  if (setting !== undefined) option.attributeName = () => setting
  if (repeatable) option.argParser<readonly string[] | undefined>((text, before) => [...(before ?? []), text])
  return option
}
