import { closeSync, readSync } from 'node:fs'
import { errorCode, RelayError } from '../../base/errors.js'
import { sleep } from '../../base/wait.js'

/** A program that waits for a reader opens the pipe at once. Milliseconds. */
const NO_WRITER_MS = 5000
/** As long as a person may need to agree to what a vault asks. Milliseconds. */
const LIMIT_MS = 30_000
/** How long relay waits without a word. Milliseconds. */
const SILENT_MS = 2000
const POLL_MS = 2
/** A writer that waited for a reader writes at once. Milliseconds. */
const SPIN_MS = 10
const CHUNK_BYTES = 65_536

export interface PipeOptions {
  /** In bytes. */
  readonly limit: number
  /** Whether a writer may still come: not to a pipe that has no name in a file system, as of `<(…)`. */
  readonly mayOpen: boolean
  readonly signal: AbortSignal
  /** Called once where the program at its other end takes long. */
  readonly onSlow: () => void
}

/**
 * Reads what one writer puts into a pipe, and closes it. Blocks no thread, so that it ends in time, and at Ctrl-C.
 * @param fd opened with O_NONBLOCK, which waits for no writer
 * @returns one byte more than `limit` where there is more
 * @throws RelayError `settings` where nothing comes in time, its message completes "<file> …"; the system's error; AbortError
 */
export async function readPipe(fd: number, options: PipeOptions): Promise<Buffer> {
  const { signal, onSlow } = options
  const chunks: Buffer[] = []
  const start = performance.now()
  let isSlow = false
  try {
    for (let isFirst = true; ; isFirst = false) {
      const found = readNow(fd, chunks, options, isFirst)
      if (found === 'end') return Buffer.concat(chunks)
      const waited = performance.now() - start
      if (found === 'no writer' && waited > NO_WRITER_MS)
        throw new RelayError(
          'settings',
          `is a pipe, and no program has opened it to write in ${NO_WRITER_MS / 1000} s. Start or unlock what writes to it, or replace it with a file`,
        )
      if (waited > LIMIT_MS)
        throw new RelayError(
          'settings',
          `is a pipe, and the program that writes to it did not finish in ${LIMIT_MS / 1000} s. Unlock or restart that program, or replace the pipe with a file`,
        )
      const isSlowNow = found === 'waits' && waited > SILENT_MS
      if (isSlowNow && !isSlow) onSlow()
      isSlow ||= isSlowNow
      await sleep(POLL_MS, { signal })
    }
  } finally {
    closeSync(fd)
  }
}

type Found = 'end' | 'no writer' | 'waits'
type Limits = Pick<PipeOptions, 'limit' | 'mayOpen'>

/**
 * Reads what is there, and what comes at once: without a pause, since some writers write the same again for as long as the pipe is open for
 * reading, as for another reader.
 */
function readNow(fd: number, chunks: Buffer[], limits: Limits, isFirst: boolean): Found {
  let until = isFirst ? performance.now() + SPIN_MS : 0
  const chunk = Buffer.alloc(CHUNK_BYTES)
  for (;;) {
    const found = readOnce(fd, chunk, chunks, limits)
    if (found === 'end') return found
    if (found === 'more') until = performance.now() + SPIN_MS
    else if (performance.now() >= until) return found
  }
}

function readOnce(fd: number, chunk: Buffer, chunks: Buffer[], { limit, mayOpen }: Limits): Found | 'more' {
  const size = chunks.reduce((sum, each) => sum + each.length, 0)
  try {
    const read = readSync(fd, chunk, 0, Math.min(chunk.length, limit + 1 - size), null)
    if (read === 0) return size === 0 && mayOpen ? 'no writer' : 'end'
    chunks.push(Buffer.from(chunk.subarray(0, read)))
    return size + read > limit ? 'end' : 'more'
  } catch (cause) {
    if (errorCode(cause) === 'EAGAIN') return 'waits'
    throw cause
  }
}
