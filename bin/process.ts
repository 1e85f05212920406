// The edge of the process: arguments in, exit code out, and the only place that touches signals.
import { isatty } from 'node:tty'
import envPaths from 'env-paths'
import type { Context } from '../src/cli/context.js'
import { gathered } from '../src/cli/gathered.js'
import { main } from '../src/cli/main.js'
import { RelayError } from '../src/base/errors.js'
import { openStandard } from './standard.js'

// lmdb prints a stack of its own when the disk is full; relay says that in its own words.
/* oxlint-disable no-console */
/** A stack that leads through lmdb's files, or through the one that is made of them. */
const LMDB = /[/\\]lmdb(?:[/\\]|\.js:)/
const print = console.error
console.error = (...values: unknown[]) => {
  const byLmdb = values.some((value) => value instanceof Error && LMDB.test(value.stack ?? ''))
  if (!byLmdb || process.env['RELAY_DEBUG']) print(...values)
}

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

// A reader that has seen enough (`relay … | head -1`) is no failure: what is under way ends quietly.
let pipeClosed = false
const onUnread = (): void => {
  pipeClosed = true
  root.abort(new RelayError('unread', 'Nobody reads the output any more'))
}

void run({
  env: process.env,
  cwd: process.cwd(),
  configFolder: envPaths('relay', { suffix: '' }).config,
  // Only who reads it opens it.
  get stdin() {
    return process.stdin
  },
  ...gathered(openStandard(1, onUnread), openStandard(2, onUnread)),
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
})

async function run(context: Context): Promise<void> {
  const code = await main(process.argv.slice(2), context)
  process.exitCode = pipeClosed ? 0 : code
}
