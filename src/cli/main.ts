import { CommanderError } from 'commander'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Context } from './context.js'
import { type ColorMode, createOutput, jsonLine, type OutputOptions } from './output/output.js'
import { createProgram } from './program.js'

/**
 * Runs one command line and resolves with the exit code. The only place where a failure becomes a code. Never rejects.
 */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const json = isJson(argv)
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
    return json ? reportObject(usageError(thrown), context) : usageError(thrown).exitCode
  }
}

/** Prints a failure on stderr, as an object if the command line has `--json`, and returns its exit code. */
export function report(
  error: RelayError,
  argv: readonly string[],
  context: Context,
  color?: ColorMode,
): number {
  return isJson(argv) ? reportObject(error, context) : reportText(error, context, color)
}

/** After `--` it is an argument. */
function isJson(argv: readonly string[]): boolean {
  return argv.slice(0, [...argv, '--'].indexOf('--')).includes('--json')
}

function reportObject({ message, kind, exitCode }: RelayError, context: Context): number {
  context.stderr.write(jsonLine({ type: 'error', code: kind, error: message }))
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
