// Connects relay to the process: arguments, signals and exit code. The only place that handles signals.
import { fstatSync, writeFileSync } from 'node:fs'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { isatty } from 'node:tty'
import envPaths from 'env-paths'
import { errorCode, RelayError } from '../src/base/errors.js'
import { trustCaller } from '../src/base/trust.js'
import type { Context, TextStream } from '../src/cli/context.js'
import { main, report } from '../src/cli/main.js'
import { readKeys } from './keys.js'

/**
 * Time that one address of a host may take to connect before the next is tried. Milliseconds: two seconds of delay, as
 * over a satellite, and the first repeat of a lost packet, after one more (RFC 6298). Node's own 250 ms never reach a
 * host with two addresses that is further away. Set for every connection of the process, whichever library opens it.
 */
const CONNECT_ATTEMPT_MS = 3000
setDefaultAutoSelectFamilyAttemptTimeout(CONNECT_ATTEMPT_MS)

const argv = process.argv.slice(2)
const root = new AbortController()
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/**
 * Removes relay's handlers, so that the system ends the process at a signal. `process.exit()` would wait for a thread
 * that waits for the disk.
 */
function endAtSignal(): void {
  for (const signal of SIGNALS) process.removeAllListeners(signal)
}

function interrupt(): void {
  endAtSignal()
  root.abort(new RelayError('cancelled', 'Interrupted'))
}

// The first signal lets everything finish.
for (const signal of SIGNALS) process.once(signal, interrupt)

/** Errors of writing to a pipe, a socket or a terminal whose reader is gone. */
const READER_GONE = new Set(['EPIPE', 'ECONNRESET', 'EIO'])

/** Exit code for output that cannot be written. 0 if the reader closed its end. */
let lostExitCode: number | undefined
let commandExitCode = 0
/** Set by a service, which continues without its output; called for the first failure of standard output. See decision 016. */
let onOutputLost: ((error: Error) => void) | undefined
/** Time that a service waits at its end for a slow reader. Milliseconds. */
const UNREAD_MS = 2000

function onStdoutError(error: NodeJS.ErrnoException): void {
  const listener = onOutputLost
  if (!listener) return endWithoutOutput(error)
  onOutputLost = () => {}
  listener(error)
}

/** A closed pipe (`relay … | head -1`) is not a failure, and the command ends quietly. A full disk is a failure. */
function endWithoutOutput(error: NodeJS.ErrnoException): void {
  if (lostExitCode !== undefined) return
  const failure = new RelayError('storage', `The output could not be written: ${error.message}`)
  // Set first, since reporting the failure may fail in the same way.
  lostExitCode = READER_GONE.has(error.code ?? '') ? 0 : failure.exitCode
  if (lostExitCode > 0) void report(failure, argv, context)
  settle()
  root.abort(new RelayError('broken_pipe', 'The reader of the output closed its end'))
}

/**
 * Opens standard output (1) or standard error (2). A file is written with `writeFileSync`: on a full disk, Node 20's stream for
 * files writes part of the text and silently loses the rest (measured).
 */
function openStdio(fd: 1 | 2, onError: (error: NodeJS.ErrnoException) => void): TextStream {
  if (!fstatSync(fd).isFile()) return (fd === 1 ? process.stdout : process.stderr).on('error', onError)
  return {
    write(text) {
      try {
        writeFileSync(fd, text)
      } catch (error) {
        onError(error instanceof Error ? error : new Error(String(error)))
      }
    },
  }
}

/** The system's errors for a broken connection (connect(2), read(2), write(2)). */
const BROKEN = /^(?:ECONNABORTED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTCONN|EPIPE|ETIMEDOUT)$/
/** System calls of an open socket. `connect` belongs to a request whose caller handles the error. */
const CALLS = new Set(['read', 'write', 'shutdown'])
const MAX_FRAMES = 5

/** Set by a service. Called for failed connections that no part of relay listens to. */
let onConnectionError: ((error: Error) => void) | undefined

/**
 * In a service, a failed connection ends only that connection: its socket has closed itself, and nothing else depends on it.
 * Anything else is a defect, after which the state is unknown, so that the process ends.
 */
process.on('uncaughtException', (error: unknown, origin) => {
  const { syscall = '' }: NodeJS.ErrnoException = Object(error)
  const isConnection = BROKEN.test(errorCode(error) ?? '') && CALLS.has(syscall)
  if (onConnectionError && origin === 'uncaughtException' && isConnection)
    onConnectionError(error instanceof Error ? error : new Error(syscall))
  else void endByDefect(error)
})

/** True while a defect is reported. A second one is not reported, since the report may have caused it. */
let isEnding = false

async function endByDefect(thrown: unknown): Promise<void> {
  if (isEnding) process.exit(1)
  isEnding = true
  const failure = defect(thrown)
  try {
    process.exit(await report(failure, argv, context))
  } catch {
    // `report` may itself be broken, or not loaded yet.
    writeFileSync(2, `error: ${failure.message}\n`)
    process.exit(failure.exitCode)
  }
}

/** Makes the error of a defect. It leaves out the error's own text, which may contain anything. */
function defect(error: unknown): RelayError {
  const { name, stack = '' } = error instanceof Error ? error : { name: typeof error }
  const frames = stack.split('\n').flatMap((line) => /^ +(at .+)$/.exec(line)?.[1] ?? [])
  const place = [name, ...frames.slice(0, MAX_FRAMES)].join(' ')
  return new RelayError(
    'internal',
    `relay stopped because of a defect: ${place}. Acknowledged deliveries are in the journal: start relay again. RELAY_DEBUG=1 shows the whole error`,
    { cause: error },
  )
}

trustCaller(process.env)

/** Returns the working folder. @throws RelayError `usage` if the folder is gone */
function workingFolder(): string {
  try {
    return process.cwd()
  } catch (cause) {
    const why = errorCode(cause) === 'ENOENT' ? 'has been removed' : `cannot be read (${errorCode(cause)})`
    throw new RelayError('usage', `The working folder ${why}. Change to another one, for example with cd ~`)
  }
}

const context: Context = {
  env: process.env,
  get cwd() {
    return workingFolder()
  },
  configFolder: envPaths('relay', { suffix: '' }).config,
  // Opened on first use.
  get stdin() {
    return process.stdin
  },
  stdout: openStdio(1, onStdoutError),
  stderr: openStdio(2, (error) => {
    if (!onOutputLost) endWithoutOutput(error)
  }),
  signal: root.signal,
  endAtSignal,
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
  onConnectionError(listener) {
    onConnectionError = listener
    return () => (onConnectionError = undefined)
  },
}

void run()

async function run(): Promise<void> {
  commandExitCode = await main(argv, context)
  settle()
  if (onOutputLost) setTimeout(() => process.exit(), UNREAD_MS).unref()
}

function settle(): void {
  process.exitCode = lostExitCode === 0 ? 0 : commandExitCode || lostExitCode
}
