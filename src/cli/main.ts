import { CommanderError } from 'commander'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Flags, Shell } from './command.js'
import type { Context } from './context.js'
import { createProgram, overview } from './help.js'
import type { Output, OutputOptions } from './output/output.js'
import { settingOf } from './settings/table.js'

/**
 * Runs one command line and resolves with the exit code. The only place where a failure becomes a code. Never rejects.
 */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const { json, jsonLog } = formatsOf(argv, context)
  const program = createProgram(
    context,
    async (load, flags, args) => {
      const [run, out] = await Promise.all([load(), openOutput(context, { ...flags, jsonLog })])
      // It inherits the context, whose standard input is opened when it is first used: that alone changes a terminal.
      const shell: Shell = Object.create(context, {
        out: { value: out },
        json: { value: flags.json === true },
      })
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
      return error.kind === 'broken_pipe' ? error.exitCode : await report(error, argv, context, { color })
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
    return json || jsonLog ? await report(error, argv, context) : error.exitCode
  }
}

/** Loaded late: help has neither styles nor messages. */
async function openOutput(context: Context, options: OutputOptions): Promise<Output> {
  const { Output } = await import('./output/output.js')
  return new Output(context, options)
}

/** Prints a failure on stderr, as an object where programs read it, and returns its exit code. */
export async function report(
  error: RelayError,
  argv: readonly string[],
  context: Context,
  { color }: Pick<Flags, 'color'> = {},
): Promise<number> {
  const out = await openOutput(context, { color, ...formatsOf(argv, context) })
  out.failure(error)
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
