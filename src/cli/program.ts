import { Command, Help, Option } from 'commander'
import { type CommandRow, COMMANDS } from './commands.js'
import type { Context, TextStream } from './context.js'
import { addOptions, environmentHelp, exitCodesHelp } from './globals.js'
import { packageVersion } from './version.js'
import { fit, joinParagraphs } from './wrap.js'

/** The one command that speaks of all others. */
const OF_ALL = 'completion'

export interface ProgramOptions {
  readonly json?: boolean
  /** The command line that is to be read, for which only what it may mean is declared. Default: every command is. */
  readonly argv?: readonly string[] | undefined
}

/** The command tree, with the options every command takes. Nothing heavy is loaded before a command runs. */
export async function createProgram(
  context: Context,
  { json = false, argv = [OF_ALL] }: ProgramOptions = {},
): Promise<Command> {
  const program = addOptions(new Command('relay'), ['profile'])
    .description(
      `Receives a code host's webhooks on this machine, durably, and acts on the code host from your shell.

Examples:
  relay serve --sandbox          the service, with a code host of its own
  relay login --profile sandbox  sign in there
  relay comment octo/demo#1 "Hello" --profile sandbox`,
    )
    .version(packageVersion(), '-V, --version')
    .option('--json', 'results as JSON on stdout, one object a line')
    .addOption(new Option('--color <when>', 'colour').choices(['auto', 'always', 'never']).default('auto'))
    .option('-q, --quiet', 'say nothing but warnings and errors')
    .option('-v, --verbose', 'say more')
    .helpCommand(false)
    .showHelpAfterError('(relay --help lists the commands)')
    .configureOutput({
      writeOut: (text) => void context.stdout.write(fit(text, helpWidth(context.stdout))),
      // Under --json the one who reports a failure is main, as an object.
      writeErr: (text) => void (json || context.stderr.write(fit(text, helpWidth(context.stderr)))),
      outputError: (text) => void (json || context.stderr.write(text)),
      getOutHelpWidth: () => helpWidth(context.stdout),
      getErrHelpWidth: () => helpWidth(context.stderr),
      // Nothing in it is coloured; to ask would open the terminal.
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({
      showGlobalOptions: true,
      commandDescription: (command) => joinParagraphs(command.description()),
      subcommandTerm: term,
      boxWrap: fit,
    })
    .exitOverride()
  program.addHelpText('after', help)
  await addCommands(program, context, argv)
  return program
}

/**
 * To load and declare a command takes time that another has no use for: of one that the command line does not name there is
 * no more than the list of all shows, and nothing where the command line begins with another.
 */
async function addCommands(program: Command, context: Context, argv: readonly string[]): Promise<void> {
  const only = commandOf(argv)
  for (const [group, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(group)
    for (const [name, { summary, load }] of Object.entries(commands)) {
      if (only !== undefined && name !== only) continue
      const command = program.command(name).summary(summary)
      if (argv.includes(name) || argv.includes(OF_ALL)) (await load())(command, context)
    }
  }
}

/** The command that a command line begins with, but for the one that speaks of all. */
function commandOf([first = '']: readonly string[]): string | undefined {
  return first !== OF_ALL && rowOf(first) ? first : undefined
}

/** A command in the list of all; those of commands are always declared. */
function term(command: Command): string {
  const row = command.parent?.parent ? undefined : rowOf(command.name())
  return row ? `${command.name()} ${row.usage}`.trimEnd() : new Help().subcommandTerm(command)
}

function rowOf(name: string): CommandRow | undefined {
  return Object.values(COMMANDS).find((commands) => Object.hasOwn(commands, name))?.[name]
}

/** Lines longer than this are hard to read, however wide the terminal. */
const WIDEST_HELP = 100

function helpWidth({ columns = 80 }: TextStream): number {
  return Math.min(columns, WIDEST_HELP)
}

const VARIABLES = [
  ['NO_COLOR', 'no colour, where --color does not say'],
  ['FORCE_COLOR', 'colour also where no person is looking'],
  ['RELAY_DEBUG', 'show where a failure came from'],
] as const

const help = (): string => `${environmentHelp(['profile', 'home'], VARIABLES)}
${exitCodesHelp([0, 1, 2, 3, 4, 5, 6, 7, 8, 130], { 0: 'ok, also after Ctrl-C in serve and log --follow' })}`
