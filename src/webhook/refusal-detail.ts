import { RelayError } from '../base/errors.js'
import type { Header } from '../http/headers.js'
import type { WebhookScheme } from '../providers/provider.js'
import { indexHeaders, only } from './headers.js'
import { claimedIdentity } from './identity.js'

export interface RefusalDetailParts {
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly scheme: WebhookScheme
}

/**
 * Adds a detail for the log to the error of a delivery that is too large or malformed. Code hosts send a delivery only
 * once, so the user needs to know which one it was and what to do. Returns any other error unchanged.
 */
export function withRefusalDetail(
  error: unknown,
  headers: readonly Header[],
  parts: RefusalDetailParts,
): unknown {
  if (!(error instanceof RelayError)) return error
  const { kind, message, cause } = error
  const lines = indexHeaders(headers)
  const reason =
    kind === 'too_large' ? sizeReason(only(lines, 'content-length'), parts.maxBody) : invalidReason(error)
  if (reason === undefined) return error
  return new RelayError(kind, message, {
    cause,
    detail: `${reason} (${claimedIdentity(lines, parts.scheme)})`,
  })
}

function sizeReason(declared: string | undefined, maxBody: number): string {
  const size = declared === undefined ? `over ${bytes(maxBody)}` : bytes(Number(declared))
  return `${size}, the limit is ${bytes(maxBody)}. Raise --max-body, then redeliver it at the code host`
}

function bytes(count: number): string {
  return `${count.toLocaleString('en-US')} byte${count === 1 ? '' : 's'}`
}

function invalidReason({ kind, cause }: RelayError): string | undefined {
  if (kind !== 'invalid_event') return undefined
  return cause instanceof Error ? cause.message : 'the body is not a form with a payload'
}
