import { RelayError } from '../base/errors.js'
import { refusalError, TokenError } from './token-error.js'

/**
 * Why a sign-in failed, as sent to the browser.
 * `invalid_state`: missing, unknown, used, expired, or of another browser or provider ·
 * `access_denied`: the user refused · `provider_unavailable`: the provider failed, or gave no usable response in time ·
 * `storage_failed`: the store failed · `exchange_failed`: everything else.
 */
export const REASONS = [
  'invalid_state',
  'access_denied',
  'provider_unavailable',
  'exchange_failed',
  'storage_failed',
] as const
export type Reason = (typeof REASONS)[number]

/** How a sign-in ended. */
export type Outcome =
  | { readonly auth: 'success'; readonly userId: string }
  | { readonly auth: 'error'; readonly reason: Reason }

/**
 * Error that ends a sign-in with a reason. The message is one log line without code, token or secret. It has a `cause` only
 * for errors of relay itself, because an error from the exchange may quote the request.
 */
export class SignInError extends Error {
  override readonly name = 'SignInError'
  readonly reason: Reason

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/** Converts anything thrown during a sign-in to a {@link SignInError}. */
export function toSignInError(thrown: unknown): SignInError {
  if (thrown instanceof SignInError) return thrown
  if (thrown instanceof TokenError) return new SignInError(reasonOf(thrown), thrown.message)
  if (thrown instanceof RelayError && thrown.kind === 'storage') {
    return new SignInError('storage_failed', thrown.message, { cause: thrown })
  }
  return new SignInError('exchange_failed', 'internal error', { cause: thrown })
}

/** Error for the callback's `error` parameter (RFC 6749 section 4.1.2.1). */
export function providerRefusal(error: string): SignInError {
  return toSignInError(refusalError(error))
}

function reasonOf({ failure, code = '' }: TokenError): Reason {
  if (failure === 'unavailable' || failure === 'timeout') return 'provider_unavailable'
  return BY_CODE.get(code) ?? 'exchange_failed'
}

const BY_CODE: ReadonlyMap<string, Reason> = new Map([
  ['access_denied', 'access_denied'],
  ['server_error', 'provider_unavailable'],
  ['temporarily_unavailable', 'provider_unavailable'],
])
