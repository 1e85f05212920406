import { randomBytes } from 'node:crypto'
import { deadline, type Cancellable } from '../base/abort.js'
import { ask, type Ask } from '../base/ask.js'
import { isProof, type InstanceRow } from './row.js'

/** How long an instance may take to prove itself, in milliseconds; it is on this machine. */
const PROBE_LIMIT = 2000

export interface ProbeOptions extends Cancellable {
  /** Has the proof given on the connection on which more is to be asked. Default: one of its own. */
  readonly ask?: Ask | undefined
}

/** Whether a process with this id runs. It may be another than the one that wrote the row. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // Anything but "no such process" means that there is one, of another user.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}

/**
 * Whether the row's address is served by the instance that wrote the row. The request carries a random challenge and
 * nothing else: whoever listens there learns nothing.
 * @throws the signal's reason when the caller aborts.
 */
export async function isProven(
  row: InstanceRow,
  { signal, ask: asking = ask }: ProbeOptions,
): Promise<boolean> {
  const challenge = randomBytes(32).toString('base64url')
  try {
    const question = { method: 'GET', headers: { 'X-Relay-Challenge': challenge } } as const
    const answer = await asking(new URL('/health', row.url), question, {
      signal: deadline(PROBE_LIMIT, signal),
    })
    return isProof(row, challenge, answer.header('X-Relay-Instance'))
  } catch {
    signal?.throwIfAborted()
    return false
  }
}
