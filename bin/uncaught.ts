import { errorCode } from '../src/base/errno.js'
import { RelayError } from '../src/base/errors.js'
import type { Context } from '../src/cli/context.js'

/** The system's errors for a broken connection (connect(2), read(2), write(2)). */
const BROKEN = new Set([
  'ECONNABORTED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTCONN',
  'EPIPE',
  'ETIMEDOUT',
])
/** System calls of an open socket. `connect` belongs to a request whose caller handles the error. */
const CALLS = new Set(['read', 'write', 'shutdown'])

/** Number of stack frames in a failure's message. */
const MAX_FRAMES = 5

/**
 * Handles uncaught exceptions. While a listener is set, a connection failure that no part of relay handles ends only that
 * connection: its socket has closed itself, and nothing else depends on it. Anything else is a defect, after which the state is
 * unknown, so `end` ends the process.
 */
export function watchUncaught(end: (failure: RelayError) => void): Context['onConnectionError'] {
  const listeners = new Set<(error: Error) => void>()
  process.on('uncaughtException', (error: unknown, origin) => {
    if (listeners.size === 0 || origin !== 'uncaughtException' || !isConnectionError(error))
      return end(describe(error))
    for (const listener of listeners) listener(error)
  })
  return (listener) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
}

function isConnectionError(error: unknown): error is Error {
  const { syscall }: NodeJS.ErrnoException = Object(error)
  return BROKEN.has(errorCode(error) ?? '') && CALLS.has(syscall ?? '')
}

/** Leaves out the error's own text, which may contain anything. */
function describe(error: unknown): RelayError {
  const { name, stack = '' } = error instanceof Error ? error : { name: typeof error }
  const frames = stack.split('\n').flatMap((line) => /^ +(at .+)$/.exec(line)?.[1] ?? [])
  const place = [name, ...frames.slice(0, MAX_FRAMES)].join(' ')
  return new RelayError(
    'internal',
    `relay stopped because of a defect: ${place}. Acknowledged deliveries are in the journal: start relay again. RELAY_DEBUG=1 shows the whole error`,
    { cause: error },
  )
}
