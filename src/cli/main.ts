import { CommanderError } from 'commander'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Context } from './context.js'
import { createOutput } from './output.js'
import { createProgram } from './program.js'

/**
 * Runs one command line and resolves with the exit code; the one place where a failure becomes a code.
 * Never rejects.
 */
export async function main(argv: readonly string[], context: Context): Promise<number> {
  const json = argv.includes('--json')
  try {
    await createProgram(context, { json }).parseAsync(argv, { from: 'user' })
    return 0
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) return report(toRelayError(thrown), json, context)
    if (thrown.exitCode === 0) return 0 // help and the version were asked for
    // Commander has told a person by now.
    return json ? report(usageError(thrown), json, context) : usageError(thrown).exitCode
  }
}

function report(error: RelayError, json: boolean, context: Context): number {
  const { message, kind, cause = error, exitCode } = error
  if (json) {
    context.stderr.write(`${JSON.stringify({ v: 1, type: 'error', code: kind, error: message })}\n`)
  } else {
    createOutput(context, { color: 'auto', quiet: false, verbose: false }).log.error(message, cause)
  }
  return exitCode
}

function usageError({ message }: CommanderError): RelayError {
  return new RelayError('usage', message.replace(/^error: /, ''))
}
