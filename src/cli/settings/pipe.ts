import { closeSync, readSync } from 'node:fs'
import { errorCode, RelayError } from '../../base/errors.js'
import { sleep } from '../../base/wait.js'

/** Time to wait for a writer: a program that waits for a reader opens the pipe at once. Milliseconds. */
const NO_WRITER_MS = 5000
/** Time limit: as long as a person may need to confirm a vault's question. Milliseconds. */
const LIMIT_MS = 30_000
/** Time that relay waits without a message. Milliseconds. */
const SILENT_MS = 2000
const POLL_MS = 2
/** Time of the first reading without a pause: a writer that waited for a reader writes at once. Milliseconds. */
const SPIN_MS = 10
const CHUNK_BYTES = 65_536

export interface PipeOptions {
  /** Limit in bytes. */
  readonly limit: number
  /**
   * True if a writer may still open the pipe. False for a pipe without a name in a file system, such as that of `<(…)`.
   */
  readonly mayOpen: boolean
  readonly signal: AbortSignal
  /** Called once if the program at the other end takes long. */
  readonly onSlow: () => void
}

/**
 * Reads the text of one writer from a pipe, and closes it. Blocks no thread, so that it ends in time, and at Ctrl-C.
 * @param fd opened with O_NONBLOCK, which waits for no writer
 * @returns one byte more than `limit` if there is more
 * @throws RelayError `settings` if nothing arrives in time, whose message completes "<file> …"; the system's error;
 * AbortError
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
 * Reads everything that arrives without a pause, since some writers write the same again for as long as the pipe is
 * open for reading, as for another reader.
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
