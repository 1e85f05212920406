import { Command, Option } from 'commander'
import { addComment } from './commands/comment.js'
import { addCompletion } from './commands/completion.js'
import { addConfig } from './commands/config.js'
import { addDoctor } from './commands/doctor.js'
import { addExport } from './commands/export.js'
import { addLog } from './commands/log.js'
import { addLogin } from './commands/login.js'
import { addMerge } from './commands/merge.js'
import { addReact } from './commands/react.js'
import { addReplay } from './commands/replay.js'
import { addRevoke } from './commands/revoke.js'
import { addRoutes } from './commands/routes.js'
import { addServe } from './commands/serve.js'
import { addShow } from './commands/show.js'
import { addToken } from './commands/token.js'
import { addTrigger } from './commands/trigger.js'
import { addVerify } from './commands/verify.js'
import { addWait } from './commands/wait.js'
import { addWhoami } from './commands/whoami.js'
import type { Context, TextStream } from './context.js'
import { addOptions, environmentHelp, exitCodesHelp } from './globals.js'
import { packageVersion } from './version.js'
import { fit, joinParagraphs } from './wrap.js'

type Add = (program: Command, context: Context) => void

/** Every command under its name, in the groups in which help shows them. */
const COMMANDS: Readonly<Record<string, Readonly<Record<string, Add>>>> = {
  'Service:': { serve: addServe },
  'Journal:': {
    log: addLog,
    show: addShow,
    export: addExport,
    wait: addWait,
    replay: addReplay,
    trigger: addTrigger,
    verify: addVerify,
    routes: addRoutes,
  },
  'Signing in:': { login: addLogin, revoke: addRevoke, token: addToken, whoami: addWhoami },
  'Acting:': { comment: addComment, merge: addMerge, react: addReact },
  'relay itself:': { completion: addCompletion, config: addConfig, doctor: addDoctor },
}

/** The one command that speaks of all others. */
const OF_ALL = 'completion'

/**
 * The command that a command line begins with. To declare the others takes milliseconds that a short one has no use for;
 * without a name to go by, or for what is told of all, they are needed.
 */
export function commandOf([first = '']: readonly string[]): string | undefined {
  const isCommand = Object.values(COMMANDS).some((commands) => Object.hasOwn(commands, first))
  return isCommand && first !== OF_ALL ? first : undefined
}

export interface ProgramOptions {
  readonly json?: boolean
  /** The one command to declare. Default: all. */
  readonly only?: string | undefined
}

/** The command tree, with the options every command takes. Nothing heavy is loaded before a command runs. */
export function createProgram(context: Context, { json = false, only }: ProgramOptions = {}): Command {
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
    })
    .configureHelp({
      showGlobalOptions: true,
      commandDescription: (command) => joinParagraphs(command.description()),
      boxWrap: fit,
    })
    .exitOverride()
  program.addHelpText('after', help)
  for (const [group, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(group)
    for (const [name, add] of Object.entries<Add>(commands)) if (!only || name === only) add(program, context)
  }
  return program
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
