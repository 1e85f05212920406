#!/usr/bin/env node
// The edge of the process: arguments in, exit code out, and the only place that touches signals.
import { main } from '../src/cli/main.js'
import { RelayError } from '../src/base/errors.js'

// lmdb prints a stack of its own when the disk is full; relay says that in its own words.
// oxlint-disable-next-line no-console
if (!process.env['RELAY_DEBUG']) console.error = () => {}

const root = new AbortController()

// The first signal asks everything to finish, the second does not ask. 128 + signal number is the shell's convention.
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const) {
  process.on(signal, () => {
    if (root.signal.aborted) process.exit(128 + number)
    root.abort(new RelayError('cancelled', 'Interrupted'))
  })
}

// A reader that has seen enough (`relay … | head -1`) is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1)
  })
}

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: process.stdout,
  stderr: process.stderr,
  signal: root.signal,
})
