import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { errorCode } from '../../base/errno.js'
import { RelayError } from '../../base/errors.js'

/** 1 MiB: hundreds of times the size of settings or a secret; of an endless device, soon read. */
const MAX_BYTES = 1_048_576
const CHUNK_BYTES = 65_536

/** 30 s: a password manager that writes the secret into a pipe can ask for a passphrase first. */
const PIPE_TIMEOUT_MS = 30_000
/** 1 s for a pipe's writer to open it: until then, the pipe reads as ended. */
const WRITER_TIMEOUT_MS = 1_000
const POLL_MS = 10

export interface SmallFileOptions {
  /** Whether the file can be a pipe or a device (default: no), which has to end within 30 s. */
  readonly streams?: boolean
}

/**
 * The text of a file of at most 1 MiB; undefined if there is none. Opening does not block: a pipe can have no writer, and a
 * device no end. `accept` checks the open file before it is read.
 * @throws RelayError `settings` when it cannot be read, is not a regular file, too large, or endless; the error of `accept`.
 */
export function readSmallFile(
  file: string,
  { streams = false }: SmallFileOptions = {},
  accept: (opened: Stats) => void = () => {},
): string | undefined {
  try {
    return read(file, streams, accept)
  } catch (cause) {
    const code = errorCode(cause)
    if (code === undefined) throw cause
    if (code === 'ENOENT') return undefined
    throw new RelayError('settings', `${file} cannot be read`, { cause })
  }
}

function read(file: string, streams: boolean, accept: (opened: Stats) => void): string {
  // Windows has no O_NONBLOCK, and no pipes with a path.
  const opened = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const stats = fstatSync(opened)
    accept(stats)
    if (!streams && !stats.isFile())
      throw wrong(`${file} is not a regular file. Replace it with a file of at most 1 MiB`)
    return readAll(file, opened, stats.isFIFO())
  } finally {
    closeSync(opened)
  }
}

function readAll(file: string, opened: number, isPipe: boolean): string {
  const chunks: Buffer[] = []
  const start = performance.now()
  let size = 0
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    const read = readSome(opened, chunk)
    const waited = performance.now() - start
    const mayBegin = isPipe && size === 0 && waited < WRITER_TIMEOUT_MS
    if (read === 0 && !mayBegin) return Buffer.concat(chunks).toString()
    if (!read) {
      if (waited > PIPE_TIMEOUT_MS) throw wrong(`${file} had no end within ${PIPE_TIMEOUT_MS / 1000} s`)
      wait(POLL_MS)
      continue
    }
    size += read
    if (size > MAX_BYTES) throw wrong(`${file} is larger than 1 MiB`)
    chunks.push(chunk.subarray(0, read))
  }
}

/** How many bytes were read: 0 at the end, undefined when there are none yet. */
function readSome(opened: number, chunk: Buffer): number | undefined {
  try {
    return readSync(opened, chunk)
  } catch (error) {
    if (errorCode(error) === 'EAGAIN') return undefined
    throw error
  }
}

/** Blocks the thread: at a start nothing else runs yet; at a reload, everything waits for a secret's pipe. */
function wait(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function wrong(why: string): RelayError {
  return new RelayError('settings', why)
}
