import { RelayError } from '../base/errors.js'
import { refusedWith, TokenError } from './token-error.js'

/**
 * Why a sign-in failed, as the browser is told:
 * `invalid_state`: missing, unknown, used or expired, or it belongs to another browser or provider ·
 * `access_denied`: the user said no · `provider_unavailable`: the provider failed, or gave no usable answer in time ·
 * `storage_failed`: the store did · `exchange_failed`: everything else.
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
 * Ends a sign-in with a reason. The message is for the log: one line that holds no code, token or secret. There is a
 * `cause` only where the fault is ours: an error from the exchange may quote what was sent.
 */
export class SignInError extends Error {
  override readonly name = 'SignInError'
  readonly reason: Reason

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/** Turns anything thrown during a sign-in into a {@link SignInError}. */
export function toSignInError(thrown: unknown): SignInError {
  if (thrown instanceof SignInError) return thrown
  if (thrown instanceof TokenError) return new SignInError(reasonOf(thrown), thrown.message)
  if (thrown instanceof RelayError && thrown.kind === 'storage') {
    return new SignInError('storage_failed', thrown.message, { cause: thrown })
  }
  return new SignInError('exchange_failed', 'internal error', { cause: thrown })
}

/** The failure behind the callback's `error` (RFC 6749 section 4.1.2.1). */
export function providerRefusal(error: string): SignInError {
  return toSignInError(refusedWith(error))
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
