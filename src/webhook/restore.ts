import type { WebhookSecrets } from '../base/settings.js'
import type { HeaderLines } from '../http/headers.js'
import type { WebhookScheme } from '../providers/provider.js'
import { restore as restoreText } from './restore/restore.js'

/** The body of a request as a tunnel's message carries it. */
export interface MessageBody {
  /** The message's `body`, parsed; undefined if it has none. */
  readonly value: unknown
  /** The body's exact bytes, if the server sends them too. Then only they count. */
  readonly raw?: Uint8Array | undefined
}

export interface RestoreOptions {
  readonly secrets: WebhookSecrets
  readonly scheme: WebhookScheme
  /** Bytes. Bounds memory: nothing larger is written. */
  readonly maxBody: number
}

/** The bytes that the sender signed, and in a word or two how they were restored. */
export interface RestoredBody {
  readonly body: Uint8Array
  readonly how: string
}

/**
 * Restores the body of a request that a tunnel's server parsed and wrote again: the first way to write it that the signature
 * matches. Undefined if none does, so that nothing is restored that the HMAC does not prove. Without a well-formed signature it costs
 * nothing. Lets the event loop run after each way.
 * @throws RelayError `too_large` if every way is larger than `maxBody`.
 */
export async function restore(
  { value, raw }: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
): Promise<RestoredBody | undefined> {
  return restoreText({ json: value === undefined ? undefined : JSON.stringify(value), raw }, lines, options)
}
