// Connects relay to the process: arguments, signals and exit code. The only place that handles signals.
import { isatty } from 'node:tty'
import envPaths from 'env-paths'
import type { Context } from '../src/cli/context.js'
import { main, report } from '../src/old/main.js'
import { RelayError } from '../src/base/errors.js'
import { isInForeground, readKeys } from './keys.js'
import { openStdio } from './stdio.js'
import { watchUncaught } from './uncaught.js'

const root = new AbortController()

/**
 * The first signal lets everything finish. The second is left to the system, which ends the process at once: process.exit() would
 * wait for a thread that waits for the disk (measured).
 */
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const other of ['SIGINT', 'SIGTERM'] as const) process.removeAllListeners(other)
    root.abort(new RelayError('cancelled', 'Interrupted'))
  })
}

/** Errors of writing to a pipe, a socket or a terminal that nothing reads any more. */
const READER_GONE = new Set(['EPIPE', 'ECONNRESET', 'EIO'])

/** The reader of the output has closed its end. */
let isUnread = false
/** Exit code of a failure to write the output; 0 if there is none. */
let outputExitCode = 0
/** Exit code of the command, once it has ended. */
let commandExitCode = 0
/** Set by a service, which continues without its output; called for the first failure of standard output. See decision 024. */
let onOutputLost: ((error: Error) => void) | undefined

function onStdoutError(error: NodeJS.ErrnoException): void {
  const listener = onOutputLost
  if (!listener) return endWithoutOutput(error)
  onOutputLost = () => {}
  listener(error)
}

function onStderrError(error: NodeJS.ErrnoException): void {
  if (!onOutputLost) endWithoutOutput(error)
}

/** A closed pipe (`relay … | head -1`) is not a failure, and the command ends quietly. A full disk is a failure. */
function endWithoutOutput(error: NodeJS.ErrnoException): void {
  if (isUnread || outputExitCode) return
  isUnread = READER_GONE.has(error.code ?? '')
  if (!isUnread) {
    const failure = new RelayError('storage', `The output could not be written: ${error.message}`)
    // Set first, since reporting the failure may fail in the same way.
    outputExitCode = failure.exitCode
    report(failure, argv, context)
  }
  settle()
  root.abort(new RelayError('broken_pipe', 'The reader of the output closed its end'))
}

function settle(): void {
  process.exitCode = isUnread ? 0 : commandExitCode || outputExitCode
}

const argv = process.argv.slice(2)
const context: Context = {
  env: process.env,
  cwd: process.cwd(),
  configFolder: envPaths('relay', { suffix: '' }).config,
  // Opened when it is first used.
  get stdin() {
    return process.stdin
  },
  stdout: openStdio(1, onStdoutError),
  stderr: openStdio(2, onStderrError),
  signal: root.signal,
  continueWithoutOutput(listener) {
    onOutputLost = listener
  },
  onHangup(listener) {
    const hadTerminal = isatty(0)
    const onSignal = (): void => {
      // A closed terminal is no longer a terminal; a request to reload leaves it open.
      if (hadTerminal && !isatty(0)) root.abort(new RelayError('broken_pipe', 'The terminal was closed'))
      else listener()
    }
    process.on('SIGHUP', onSignal)
    return () => void process.off('SIGHUP', onSignal)
  },
  onKey: (listener) => readKeys(process.stdin, listener),
  isInForeground,
  onConnectionError: watchUncaught((failure) => process.exit(report(failure, argv, context))),
}

void run()

async function run(): Promise<void> {
  commandExitCode = await main(argv, context)
  settle()
}
