import { Command } from 'commander'
import { printableText } from '../base/printable.js'
import type { CommandSpec } from './command.js'
import { catchUp } from './commands/catch-up/declaration.js'
import { comment } from './commands/comment/declaration.js'
import { completion } from './commands/completion/declaration.js'
import { config } from './commands/config/declaration.js'
import { doctor } from './commands/doctor/declaration.js'
import { exportCommand } from './commands/export/declaration.js'
import { help } from './commands/help/declaration.js'
import { hook } from './commands/hook/declaration.js'
import { inspect } from './commands/inspect/declaration.js'
import { log } from './commands/log/declaration.js'
import { login } from './commands/login/declaration.js'
import { merge } from './commands/merge/declaration.js'
import { profiles } from './commands/profiles/declaration.js'
import { react } from './commands/react/declaration.js'
import { replay } from './commands/replay/declaration.js'
import { reset } from './commands/reset/declaration.js'
import { revoke } from './commands/revoke/declaration.js'
import { routes } from './commands/routes/declaration.js'
import { serve } from './commands/serve/declaration.js'
import { setup } from './commands/setup/declaration.js'
import { show } from './commands/show/declaration.js'
import { token } from './commands/token/declaration.js'
import { trigger } from './commands/trigger/declaration.js'
import { verify } from './commands/verify/declaration.js'
import { version } from './commands/version/declaration.js'
import { wait } from './commands/wait/declaration.js'
import { whoami } from './commands/whoami/declaration.js'
import type { Context, TextStream } from './context.js'
import { declare, toOption } from './declare.js'
import { conclusion, introduction, optionsOf } from './help.js'
import { meantCommand } from './meanings.js'
import { fit } from './output/wrap.js'
import { overview } from './overview.js'
import { packageVersion } from './version.js'

/** Every command, in the order of help. */
export const COMMANDS: readonly CommandSpec[] = [
  serve,
  inspect,
  log,
  show,
  exportCommand,
  wait,
  replay,
  trigger,
  verify,
  routes,
  catchUp,
  setup,
  hook,
  login,
  revoke,
  token,
  whoami,
  comment,
  merge,
  react,
  config,
  profiles,
  reset,
  doctor,
  completion,
  help,
  version,
]

/** relay itself: its options are those of every command. */
export const RELAY = {
  description: `Receives a code host's webhooks on this machine, durably, and acts on the code host from your shell.`,
  examples: [
    'relay serve --sandbox          run the service with an emulated code host',
    'relay login --profile sandbox  sign in there',
    'relay comment octo/demo#1 "Hello" --profile sandbox',
  ],
  settings: ['profile'],
  options: [
    { flags: '--json', help: 'print results as JSON, one object per line' },
    {
      flags: '--color <when>',
      help: 'use colors: auto, always, never',
      choices: ['auto', 'always', 'never'],
      default: 'auto',
    },
    { flags: '-q, --quiet', help: 'print only results, warnings and errors' },
    { flags: '-v, --verbose', help: 'print debug messages' },
  ],
  environment: ['home'],
  variables: [
    ['NO_COLOR', 'turn off colors, unless --color is given'],
    ['FORCE_COLOR', 'turn on colors, even if the output is not a terminal'],
    ['RELAY_DEBUG', 'print the stack of an error'],
  ],
  exitCodes: [[0, 'success, also after Ctrl-C in serve and log --follow'], 3, 4, 5, 6, 7, 8, 130],
} as const

export interface ProgramOptions {
  readonly json?: boolean
}

/** The command tree as commander knows it, with the options that every command takes. */
export function createProgram(context: Context, { json = false }: ProgramOptions = {}): Command {
  const { stdout, stderr } = context
  const program = new Command('relay')
    .description(introduction(RELAY, context))
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .showHelpAfterError('(relay --help lists the commands)')
    .configureOutput({
      writeOut: (text) => void stdout.write(fit(text, helpWidth(stdout))),
      // Under --json, main reports the failure, as an object.
      writeErr: (text) => void (json || stderr.write(fit(printableText(text), helpWidth(stderr)))),
      outputError: (text) => void (json || stderr.write(printableText(text))),
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
    .addHelpText('after', ({ error }) => (error ? '' : conclusion(RELAY, RELAY.variables)))
    .on('command:*', ([word = '']: string[]) => program.error(unknownCommand(word)))
  for (const option of optionsOf(RELAY)) program.addOption(toOption(option))
  for (const spec of COMMANDS) declare(program, spec, context)
  const full = program.helpInformation.bind(program)
  // Without a command, commander prints the help as an error.
  program.helpInformation = (options) => (options?.error ? overview(COMMANDS) : full(options))
  return program
}

function unknownCommand(word: string): string {
  const meant = meantCommand(
    word,
    COMMANDS.map(({ name }) => name),
  )
  return `error: unknown command '${word}'${meant === undefined ? '' : `\n(Did you mean ${meant}?)`}`
}

/** Longer lines are hard to read, however wide the terminal. */
const MAX_HELP_WIDTH = 100

function helpWidth({ columns = 80 }: TextStream): number {
  return Math.min(columns, MAX_HELP_WIDTH)
}
