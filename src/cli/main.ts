import { CommanderError } from 'commander'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Flags, Shell } from './command.js'
import type { Context } from './context.js'
import { createProgram, overview } from './help.js'
import { Output } from './output/output.js'
import { settingOf } from './settings/table.js'

/**
 * Runs one command line and resolves with the exit code. The only place where a failure becomes a code. Never rejects.
 */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const { json, jsonLog } = formatsOf(argv, context)
  const program = createProgram(
    context,
    async (load, flags, args) => {
      const shell = openShell(context, flags, jsonLog)
      const run = await load()
      await run(shell, flags, ...args)
    },
    { argv, isSilent: json || jsonLog },
  )
  try {
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (thrown) {
    const { color } = program.opts<Flags>()
    if (!(thrown instanceof CommanderError)) {
      const error = toRelayError(thrown)
      // Nothing can be reported to a reader that has closed its end.
      return error.kind === 'broken_pipe' ? error.exitCode : report(error, argv, context, { color })
    }
    if (thrown.exitCode === 0) return 0 // --help or --version
    const [group] = program.args
    const isHelp = thrown.code === 'commander.help'
    if (isHelp && group === undefined) {
      context.stdout.write(overview(context.stdout))
      return 0
    }
    const why = isHelp
      ? `relay ${group} needs a command. relay ${group} --help lists them`
      : thrown.message.replace(/^error: /, '')
    // Commander has already printed the error, or the help, as text.
    const error = new RelayError('usage', why)
    return json || jsonLog ? report(error, argv, context) : error.exitCode
  }
}

function openShell(context: Context, flags: Flags, jsonLog: boolean): Shell {
  const { env, cwd, configFolder, stdout, stderr, seams, signal } = context
  return {
    env,
    cwd,
    configFolder,
    // Opened when it is first used: that alone changes a terminal.
    get stdin() {
      return context.stdin
    },
    stdout,
    stderr,
    seams,
    signal,
    endAtSignal: () => context.endAtSignal(),
    continueWithoutOutput: (listener) => context.continueWithoutOutput(listener),
    onHangup: (listener) => context.onHangup(listener),
    onKey: (listener) => context.onKey(listener),
    isInForeground: () => context.isInForeground(),
    onConnectionError: (listener) => context.onConnectionError(listener),
    out: new Output(context, { ...flags, jsonLog }),
    json: flags.json === true,
  }
}

/** Prints a failure on stderr, as an object where programs read it, and returns its exit code. */
export function report(
  error: RelayError,
  argv: readonly string[],
  context: Context,
  { color }: Pick<Flags, 'color'> = {},
): number {
  new Output(context, { color, ...formatsOf(argv, context) }).failure(error)
  return error.exitCode
}

/**
 * Whether results, and whether messages of `serve` are JSON. Read from the arguments themselves, since what is wrong can be anything in
 * them.
 */
function formatsOf(argv: readonly string[], { env }: Pick<Context, 'env'>) {
  // What comes after `--` is no option.
  const own = argv.slice(0, [...argv, '--'].indexOf('--'))
  const { flag = '', env: variable } = settingOf('logFormat')
  const [name = ''] = flag.split(' ')
  const at = own.lastIndexOf(name)
  const assigned = own.findLast((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const format = (at === -1 ? assigned : own[at + 1]) ?? env[variable]
  return { json: own.includes('--json'), jsonLog: own.includes('serve') && format === 'json' }
}
