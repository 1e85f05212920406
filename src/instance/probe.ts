import { randomBytes } from 'node:crypto'
import { deadline, type Cancellable } from '../base/abort.js'
import { errorCode } from '../base/errno.js'
import { createLoopbackClient, type SendRequest } from '../net/loopback-client.js'
import { isProof, type InstanceRecord } from './record.js'

/** Time limit for a proof. The instance is on this machine. */
const PROBE_TIMEOUT_MS = 2000

export interface ProbeOptions extends Cancellable {
  /** Sends the challenge, so that the proof comes on the connection that later requests use. Default: a new one. */
  readonly send?: SendRequest | undefined
}

/** Whether a process with this id runs. It may not be the one that wrote the record. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // Any error but "no such process" means that it exists and belongs to another user.
    return errorCode(error) !== 'ESRCH'
  }
}

/**
 * Whether the record's address is served by the instance that wrote the record. The request carries a random challenge
 * and nothing else, so another program at this address learns nothing.
 * @throws the signal's reason when the caller aborts.
 */
export async function isProven(record: InstanceRecord, { signal, send }: ProbeOptions): Promise<boolean> {
  const challenge = randomBytes(32).toString('base64url')
  using client = createLoopbackClient()
  try {
    const request = { method: 'GET', headers: { 'X-Relay-Challenge': challenge } } as const
    const limited = { signal: deadline(PROBE_TIMEOUT_MS, signal) }
    const response = await (send ?? client.send)(new URL('/health', record.url), request, limited)
    return isProof(record, challenge, response.header('X-Relay-Instance'))
  } catch {
    signal?.throwIfAborted()
    return false
  }
}
