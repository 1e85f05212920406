import { Command, Option } from 'commander'
import { addComment } from './commands/comment.js'
import { addLogin } from './commands/login.js'
import { addMerge } from './commands/merge.js'
import { addReact } from './commands/react.js'
import type { Context } from './context.js'
import { addRevoke } from './commands/revoke.js'
import { addServe } from './commands/serve.js'
import { addToken } from './commands/token.js'
import { addWhoami } from './commands/whoami.js'
import { addOptions } from './globals.js'
import { packageVersion } from './version.js'

/** The whole command tree, with the options every command takes. Nothing heavy is loaded before a command runs. */
export function createProgram(context: Context, { json = false } = {}): Command {
  const program = addOptions(new Command('relay'), ['profile'])
    .description(
      "Receives a code host's webhooks on this machine, durably, and acts on the code host from your shell.",
    )
    .version(packageVersion(), '-V, --version')
    .option('--json', 'results as JSON on stdout, one object a line')
    .addOption(new Option('--color <when>', 'colour').choices(['auto', 'always', 'never']).default('auto'))
    .option('-q, --quiet', 'say nothing but warnings and errors')
    .option('-v, --verbose', 'say more')
    .helpCommand(false)
    .showHelpAfterError('(relay --help lists the commands)')
    .configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      // Under --json the one who reports a failure is main, as an object.
      writeErr: (text) => void (json || context.stderr.write(text)),
      getOutHelpWidth: () => Math.min(context.stdout.columns ?? 80, 100),
      getErrHelpWidth: () => Math.min(context.stderr.columns ?? 80, 100),
    })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
  program.addHelpText('after', EXIT_CODES)
  addComment(program, context)
  addLogin(program, context)
  addMerge(program, context)
  addReact(program, context)
  addRevoke(program, context)
  addServe(program, context)
  addToken(program, context)
  addWhoami(program, context)
  return program
}

const EXIT_CODES = `
Exit codes:
  0 ok, also after Ctrl-C in serve    4 sign-in needed
  1 failure                           8 code host or network refused
  2 usage or settings               130 interrupted`
