// The edge of the process: arguments in, exit code out, and the only place that touches signals.
import { isatty } from 'node:tty'
import envPaths from 'env-paths'
import type { Context } from '../src/cli/context.js'
import { gathered } from '../src/cli/gathered.js'
import { main, report } from '../src/cli/main.js'
import { RelayError } from '../src/base/errors.js'
import { openStandard } from './standard.js'

const root = new AbortController()

/**
 * The first signal asks everything to finish. The second is left to the system, which ends the process at once and on the
 * spot: process.exit() would wait for LMDB's thread, which waits for this one (measured).
 */
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const other of ['SIGINT', 'SIGTERM'] as const) process.removeAllListeners(other)
    root.abort(new RelayError('cancelled', 'Interrupted'))
  })
}

/** What is said of a pipe, a socket or a terminal at whose other end nobody is any more. */
const UNREAD = new Set(['EPIPE', 'ECONNRESET', 'EIO'])

/** Nobody reads the output any more. */
let isUnread = false
/** The exit code of a failure to write it, 0 as long as there is none. */
let lost = 0
/** That of the command, when it has ended. */
let ended = 0

/** A reader that has seen enough (`relay … | head -1`) is no failure: what is under way ends quietly. A full disk is one. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (isUnread || lost) return
  isUnread = UNREAD.has(error.code ?? '')
  if (!isUnread) {
    const failure = new RelayError('storage', `The output could not be written: ${error.message}`)
    // Before it is told, for which this may be called again.
    lost = failure.exitCode
    report(failure, argv, context)
  }
  settle()
  root.abort(new RelayError('unread', 'Nobody reads the output any more'))
}

function settle(): void {
  process.exitCode = isUnread ? 0 : ended || lost
}

const argv = process.argv.slice(2)
const context: Context = {
  env: process.env,
  cwd: process.cwd(),
  configFolder: envPaths('relay', { suffix: '' }).config,
  // Only who reads it opens it.
  get stdin() {
    return process.stdin
  },
  ...gathered(openStandard(1, onOutputError), openStandard(2, onOutputError)),
  signal: root.signal,
  onHangup(listener) {
    const hadTerminal = isatty(0)
    const hear = (): void => {
      // The terminal that was closed is gone by now; who asks for a reload has left it open.
      if (hadTerminal && !isatty(0)) root.abort(new RelayError('unread', 'The terminal was closed'))
      else listener()
    }
    process.on('SIGHUP', hear)
    return () => void process.off('SIGHUP', hear)
  },
}

void run()

async function run(): Promise<void> {
  ended = await main(argv, context)
  settle()
}
