import { createHmac } from 'node:crypto'
import { Secret } from '../../src/base/secret.js'

/** The value of `X-Hub-Signature-256`, without the code under test. */
export function sign(secret: Secret | string, bytes: Uint8Array): string {
  const key = typeof secret === 'string' ? secret : secret.reveal()
  return `sha256=${createHmac('sha256', key).update(bytes).digest('hex')}`
}

/** Which of the secrets made a signature. */
export function verify(
  signature: string | undefined,
  bytes: Uint8Array,
  { current, previous }: { readonly current: Secret; readonly previous?: Secret | undefined },
): 'current' | 'previous' | undefined {
  if (signature === sign(current, bytes)) return 'current'
  return previous && signature === sign(previous, bytes) ? 'previous' : undefined
}
