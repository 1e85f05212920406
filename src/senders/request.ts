import type { Header } from '../http/headers.js'

/** A request with a delivery: all header lines, and the body's exact bytes. */
export interface WebhookRequest {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
  /** Query exactly as sent, without its question mark. */
  readonly query?: string | undefined
  /** Path behind the source's address, with its slash. It may hold a secret, and is not stored. */
  readonly path?: string | undefined
  /** Address that the sender was given for the source, without a query. Undefined: unknown. */
  readonly payloadUrl?: string | undefined
}

/** Part to corrupt after signing. */
export type Tamper = 'signature' | 'body'
