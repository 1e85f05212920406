import { parseArgs } from 'node:util'
import { CommanderError } from 'commander'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Context } from './context.js'
import { jsonLine } from './output/json-line.js'
import { createJsonLog } from './output/json-log.js'
import { type ColorMode, createOutput, type OutputOptions } from './output/output.js'
import { createProgram } from './program.js'
import { OPTIONS } from './settings/options.js'

/**
 * Runs one command line and resolves with the exit code. The only place where a failure becomes a code. Never rejects.
 */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const json = isJson(argv) || logsJson(argv, context)
  const program = createProgram(context, { json })
  try {
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) {
      const error = toRelayError(thrown)
      // Nothing can be reported to a reader that has closed its end.
      if (error.kind === 'broken_pipe') return error.exitCode
      return report(error, argv, context, program.opts<OutputOptions>().color)
    }
    if (thrown.exitCode === 0) return 0 // --help or --version
    // Commander has already printed the error as text.
    return json ? report(usageError(thrown), argv, context) : usageError(thrown).exitCode
  }
}

/** Prints a failure on stderr, as an object where programs read it, and returns its exit code. */
export function report(
  error: RelayError,
  argv: readonly string[],
  context: Context,
  color?: ColorMode,
): number {
  if (logsJson(argv, context)) return reportMessage(error, context)
  return isJson(argv) ? reportObject(error, context) : reportText(error, context, color)
}

function isJson(argv: readonly string[]): boolean {
  return ownArguments(argv).includes('--json')
}

/** Whether messages are JSON: of `serve`, where that is set. Read from the arguments, since they may be what is wrong. */
function logsJson(argv: readonly string[], { env }: Pick<Context, 'env'>): boolean {
  const args = [...ownArguments(argv)]
  if (!args.includes('serve')) return false
  const { values } = parseArgs({ args, options: { 'log-format': { type: 'string' } }, strict: false })
  return (values['log-format'] ?? env[OPTIONS.logFormat.env]) === 'json'
}

/** What comes after `--` is no option. */
function ownArguments(argv: readonly string[]): readonly string[] {
  return argv.slice(0, [...argv, '--'].indexOf('--'))
}

function reportObject({ message, kind, exitCode }: RelayError, context: Context): number {
  context.stderr.write(jsonLine({ type: 'error', code: kind, error: message }))
  return exitCode
}

/** As a message, with the fields of the object. */
function reportMessage(error: RelayError, { stderr, env }: Context): number {
  const { message, kind, cause = error, exitCode } = error
  const log = createJsonLog(stderr, { debug: Boolean(env['RELAY_DEBUG']) })
  log.error(message, cause, { type: 'error', code: kind, error: message })
  return exitCode
}

function reportText(error: RelayError, context: Context, color: ColorMode = 'auto'): number {
  const { message, cause = error, exitCode } = error
  createOutput(context, { color }).log.error(message, cause)
  return exitCode
}

function usageError({ message }: CommanderError): RelayError {
  return new RelayError('usage', message.replace(/^error: /, ''))
}
