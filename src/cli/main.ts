import { CommanderError } from 'commander'
import { toRelayError } from '../base/errors.js'
import type { Context } from './context.js'
import { createOutput, printable } from './output.js'
import { createProgram } from './program.js'

/**
 * Runs one command line and resolves with the exit code; the one place where a failure becomes a code.
 * Never rejects.
 */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  try {
    await createProgram(context).parseAsync(argv, { from: 'user' })
    return 0
  } catch (thrown) {
    // Commander has said what is wrong by now; asking for help or the version is no failure.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
    return report(thrown, argv, context)
  }
}

function report(thrown: unknown, argv: readonly string[], context: Context): number {
  const error = toRelayError(thrown)
  if (argv.includes('--json')) {
    context.stderr.write(
      `${JSON.stringify({ v: 1, type: 'error', code: error.kind, error: printable(error.message) })}\n`,
    )
  } else {
    createOutput(context, { json: false, color: 'auto', quiet: false, verbose: false }).log.error(
      error.message,
      error.cause ?? error,
    )
  }
  return error.exitCode
}
