import { closeSync, constants, openSync, readSync, realpathSync, type Stats, statSync } from 'node:fs'
import { decodeText, NotText } from '../../base/decode.js'
import { errorCode, RelayError } from '../../base/errors.js'
import { processOf, type Shell } from '../command.js'
import { readPipe } from './pipe.js'

/** Largest file: 1 MiB, hundreds of times the size of settings or a secret, and soon read from an endless device. */
const MAX_BYTES = 1_048_576

/** Allowed kinds of a file besides a regular one: a vault's pipe; for a secret also a device such as /dev/stdin. */
export type Kind = 'regular' | 'pipe' | 'device'

/**
 * Reads the text in a file of at most 1 MiB. Undefined if there is none. @throws RelayError `settings` that names file
 * and cause; AbortError
 */
export async function readText(shell: Shell, file: string, allowed: Kind): Promise<string | undefined> {
  const stats = attempt(file, () => statSync(file, { throwIfNoEntry: false }))
  if (!stats) return undefined
  const kind = kindOf(stats)
  // Determined without opening it, since that would take a pipe from its writer.
  if (kind === undefined || KINDS.indexOf(kind) > KINDS.indexOf(allowed))
    throw new RelayError('settings', `${file} is not a regular file. Replace it with a file of at most 1 MiB`)
  const bytes = kind === 'pipe' ? await readOnce(shell, file) : readStart(file)
  if (bytes.length > MAX_BYTES) throw new RelayError('settings', `${file} is larger than 1 MiB`)
  try {
    return decodeText(bytes)
  } catch (cause) {
    if (!(cause instanceof NotText)) throw cause
    throw new RelayError('settings', `${file} ${cause.message}`)
  }
}

const KINDS: readonly Kind[] = ['regular', 'pipe', 'device']

function kindOf(stats: Stats): Kind | undefined {
  if (stats.isFile()) return 'regular'
  if (stats.isFIFO()) return 'pipe'
  return stats.isCharacterDevice() ? 'device' : undefined
}

/**
 * Contents that this process has read from pipes, by file: a pipe gives its bytes once, and a second reader would wait
 * for another writer.
 */
const pipes = new WeakMap<object, Map<string, Promise<Buffer>>>()

function readOnce(shell: Shell, file: string): Promise<Buffer> {
  const known = pipes.get(processOf(shell)) ?? new Map<string, Promise<Buffer>>()
  pipes.set(processOf(shell), known)
  const reading = known.get(file) ?? readNamedPipe(shell, file)
  known.set(file, reading)
  reading.catch(() => known.delete(file))
  return reading
}

async function readNamedPipe({ out, signal }: Shell, file: string): Promise<Buffer> {
  const fd = attempt(file, () => openSync(file, constants.O_RDONLY | constants.O_NONBLOCK))
  const onSlow = (): void => out.log.info(`Waiting for the program that writes to the pipe ${file}`)
  try {
    return await readPipe(fd, { limit: MAX_BYTES, mayOpen: hasName(file), signal, onSlow })
  } catch (cause) {
    if (cause instanceof RelayError) throw new RelayError('settings', `${file} ${cause.message}`)
    if (signal.aborted) throw cause
    throw unreadable(file, cause)
  }
}

/** True if another program can open it. False for the pipe that a shell makes for `<(…)`. */
function hasName(file: string): boolean {
  try {
    // The native function is needed, since that of JavaScript resolves names that exist only in /proc, too.
    return realpathSync.native(file) !== ''
  } catch {
    return false
  }
}

/** Reads at most one byte more than the limit. */
function readStart(file: string): Buffer {
  return attempt(file, () => {
    const bytes = Buffer.alloc(MAX_BYTES + 1)
    let size = 0
    // Opened without blocking, since a terminal has nothing to read until somebody types.
    const opened = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      for (let read = -1; read !== 0; size += read)
        read = readSync(opened, bytes, size, bytes.length - size, null)
    } finally {
      closeSync(opened)
    }
    return bytes.subarray(0, size)
  })
}

export function attempt<Result>(file: string, read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'you have no permission to read it',
  EPERM: 'you have no permission to read it',
  ELOOP: 'it is a link that leads to itself',
  EAGAIN: 'it is a terminal, or has nothing to read. Name a file or a pipe',
}

function unreadable(file: string, cause: unknown): RelayError {
  const why = REASONS[errorCode(cause) ?? '']
  return new RelayError('settings', `${file} cannot be read${why === undefined ? '' : `: ${why}`}`, { cause })
}
