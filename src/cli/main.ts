import { Argument, Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { anywhere } from '../base/command-line.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { printableText } from '../base/text.js'
import { COMMAND_NAMES, SUMMARIES } from './catalog.js'
import {
  type AnyCommand,
  type ArgumentSpec,
  type RelayCommand,
  type Flags,
  isStream,
  itemsOf,
  type ResultItem,
  type CommandResult,
  type Shell,
  shellWith,
} from './command.js'
import { type Commands, loadCommands } from './commands/index.js'
import type { Context, HelpContext } from './context.js'
import { fit, helpPage, optionsOf, overview, RELAY } from './help.js'
import { toOption } from './option.js'
import { meantCommand, meantOption, meantSubcommand } from './meant.js'

import type { Output, OutputOptions } from './output/output.js'
import { settingOf } from './settings/table.js'

/** Runs one command line and resolves to the exit code. Only here does a failure become a code. Never rejects. */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const { json, jsonLog } = formatsOf(argv, context)
  let opened: Output | undefined
  const start: Start = async (command, flags, args) => {
    const out = (opened = await openOutput(context, { ...flags, jsonLog }))
    const shell = shellWith(context, { out, json: flags.json === true })
    await execute(command, shell, inputOf(command, flags, args), out)
  }
  let program: Command | undefined
  try {
    // Other commands cannot be named: an option can have any of these names as its value.
    const commands = await loadCommands(COMMAND_NAMES.filter((name) => argv.includes(name)))
    program = createProgram(context, start, commands, { isSilent: json || jsonLog })
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (thrown) {
    const { color } = program?.opts<Flags>() ?? {}
    if (!(thrown instanceof CommanderError)) {
      const error = toRelayError(thrown)
      // Not reported, since the reader has closed its end.
      return error.kind === 'broken_pipe'
        ? error.exitCode
        : await report(error, argv, context, { color, out: opened })
    }
    if (thrown.exitCode === 0) return 0 // exit of --help or --version
    const [group] = program?.args ?? []
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

/** Loaded late, since help has neither styles nor messages. */
async function openOutput(context: Context, options: OutputOptions): Promise<Output> {
  const { Output } = await import('./output/output.js')
  return new Output(context, options)
}

/** Prints a failure on stderr, as an object if programs read it. Returns its exit code. */
export async function report(
  error: RelayError,
  argv: readonly string[],
  context: Context,
  { color, out }: Pick<Flags, 'color'> & { readonly out?: Output | undefined } = {},
): Promise<number> {
  const output = out ?? (await openOutput(context, { color, ...formatsOf(argv, context) }))
  output.failure(error)
  return error.exitCode
}

/** Commands whose messages can be JSON. */
const SERVICES = ['serve', 'hub']

/** Finds the formats of results and of messages. Read before parsing, since a usage error can be an object, too. */
function formatsOf(argv: readonly string[], { env }: Context) {
  // Words after `--` are no options.
  const own = argv.slice(0, [...argv, '--'].indexOf('--'))
  const words = own.flatMap((word) => (word.startsWith('--log-format=') ? word.split('=', 2) : word))
  const at = words.lastIndexOf('--log-format')
  const format = at === -1 ? env[settingOf('logFormat').env] : words[at + 1]
  return {
    json: own.includes('--json'),
    jsonLog: SERVICES.some((name) => own.includes(name)) && format === 'json',
  }
}

/** Makes the input of a command: its flags, and each argument by its name, unless the command has its own `input`. */
function inputOf(command: RelayCommand, flags: Flags, values: readonly unknown[]): Flags {
  if (command.input) return command.input(flags, ...values)
  const { args = [] } = command
  return { ...flags, ...Object.fromEntries(args.map((arg, i) => [inputName(arg), values[i]])) }
}

/** Returns `file` for `[file...]`, `repo` for `<owner/repo>`. */
function inputName([name]: ArgumentSpec): string {
  return name.replaceAll(/^.*\/|[<>[\].]/g, '')
}

/** Runs a command, and prints its result for a person or for a program. */
async function execute(command: RelayCommand, shell: Shell, input: Flags, out: Output): Promise<void> {
  const result = command.run(shell, input)
  if (!shell.json) return command.print(isStream(result) ? result : await result, out)
  const items = printingObjects(command, itemsOf(result), out)
  if (command.isService) return command.print(items, out)
  for await (const _ of items);
}

/** Prints the objects of a result for a program, and yields each value once its objects are printed. */
async function* printingObjects(
  command: RelayCommand,
  items: AsyncIterable<ResultItem<CommandResult>>,
  out: Output,
): AsyncGenerator {
  for await (const item of items) {
    for (const part of [command.json ? command.json(item) : item].flat())
      if (typeof part === 'string' || part instanceof Uint8Array) out.exactly(part)
      else if (typeof part === 'object' && part !== null) out.object(part)
    yield item
  }
}

type Start = (command: RelayCommand, flags: Flags, args: readonly unknown[]) => Promise<void>

/** A command that suggests what was probably meant by an unknown word. Commander compares spellings only. */
class Program extends Command {
  override createCommand(name?: string): Program {
    return new Program(name)
  }

  override error(message: string, options?: Parameters<Command['error']>[1]): never {
    const [, word = ''] = /'(.*)'$/s.exec(message) ?? []
    const meant = this.#meant(word, options?.code)
    return super.error(meant === undefined ? message : `${message}\n(Did you mean ${meant}?)`, options)
  }

  #meant(word: string, code: string | undefined): string | undefined {
    if (code === 'commander.unknownCommand')
      return this.parent
        ? meantSubcommand(
            word,
            this.name(),
            this.commands.map((each) => each.name()),
          )
        : meantCommand(word)
    if (code !== 'commander.unknownOption') return undefined
    const options = [
      ...this.options,
      ...(this.parent?.parent?.options ?? []),
      ...(this.parent?.options ?? []),
    ]
    return meantOption(word, this.args[this.args.indexOf(word) + 1], options)
  }
}

/**
 * Declares the command tree to commander, with the options of every command. Commands that are not loaded have only
 * names, which completion offers.
 */
export function createProgram(
  context: HelpContext,
  start: Start,
  commands: Commands,
  { isSilent = false }: { readonly isSilent?: boolean } = {},
): Command {
  const { stdout, stderr } = context
  const program = new Program('relay')
    .version(packageJson.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .showHelpAfterError(`(${anywhere('--help')} lists the commands)`)
    .showSuggestionAfterError(false)
    .configureOutput({
      writeOut: (text) => void stdout.write(fit(text, stdout)),
      writeErr: (text) => void (isSilent || stderr.write(fit(printableText(text), stderr))),
      outputError: (text) => void (isSilent || stderr.write(printableText(text))),
      // Help has no colors, and asking would open the terminal.
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride()
  for (const option of optionsOf(RELAY)) program.addOption(toOption(option))
  // Without a command, commander prints the help as an error; `main` prints the overview.
  program.helpInformation = (options) => (options?.error ? '' : helpPage(program, RELAY, context))
  for (const name of COMMAND_NAMES) {
    const spec = commands[name]
    // Declaring all commands takes milliseconds. Commander needs at least one, to report an unknown command.
    if (!spec && name !== 'help' && !commands.completion) continue
    const command = program.command(name).helpCommand(false).summary(SUMMARIES[name])
    if (spec) declare(command, spec, context, start)
  }
  return program
}

/** Declares a command to commander. */
function declare(command: Command, spec: AnyCommand, context: HelpContext, start: Start): void {
  const { args = [], subcommands = {} } = spec
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
  if (spec.run) command.action((...values) => start(spec, command.optsWithGlobals(), values))
}
