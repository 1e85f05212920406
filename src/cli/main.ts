import { CommanderError } from 'commander'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Context } from './context.js'
import type { RawOptions } from './globals.js'
import { createOutput, jsonLine, type ColorMode } from './output.js'
import { createProgram } from './program.js'

/**
 * Runs one command line and resolves with the exit code; the one place where a failure becomes a code.
 * Never rejects.
 */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const json = isJson(argv)
  const program = await createProgram(context, { json, argv })
  try {
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) {
      const error = toRelayError(thrown)
      // Whoever read has seen enough, and is told nothing more.
      if (error.kind === 'unread') return error.exitCode
      return report(error, argv, context, program.opts<RawOptions>().color)
    }
    if (thrown.exitCode === 0) return 0 // help and the version were asked for
    // Commander has told a person by now.
    return json ? reportObject(usageError(thrown), context) : usageError(thrown).exitCode
  }
}

/** Tells of a failure on stderr, as the command line has it told, and gives its exit code. */
export function report(
  error: RelayError,
  argv: readonly string[],
  context: Context,
  color: ColorMode = 'auto',
): number {
  return isJson(argv) ? reportObject(error, context) : reportText(error, context, color)
}

/** Behind `--` it is a word like any other. */
function isJson(argv: readonly string[]): boolean {
  return argv.slice(0, [...argv, '--'].indexOf('--')).includes('--json')
}

function reportObject({ message, kind, exitCode }: RelayError, context: Context): number {
  context.stderr.write(jsonLine({ type: 'error', code: kind, error: message }))
  return exitCode
}

function reportText(error: RelayError, context: Context, color: ColorMode): number {
  const { message, cause = error, exitCode } = error
  createOutput(context, { color, quiet: false, verbose: false }).log.error(message, cause)
  return exitCode
}

function usageError({ message }: CommanderError): RelayError {
  return new RelayError('usage', message.replace(/^error: /, ''))
}
