import { createHash } from 'node:crypto'
import type { Clock } from '../../base/time.js'
import { Once } from './once.js'

/** Lifetime of a code and of a consent page: 10 minutes, like GitHub's. */
const LIFETIME_MS = 600_000

/** A valid authorization request, ready for the user. */
export interface AuthorizeRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly state: string | undefined
  readonly scopes: readonly string[]
  /** PKCE S256 challenge; like GitHub, the sandbox does not require one. */
  readonly challenge: string | undefined
}

export interface Redemption {
  readonly clientId: string
  readonly code: string
  /** Optional, as at GitHub. If given, it must be the one that received the code. */
  readonly redirectUri: string | undefined
  readonly verifier: string | undefined
}

export type RedeemError = 'bad_verification_code' | 'redirect_uri_mismatch'

/** Open consent pages and issued codes. Each works once, for 10 minutes. */
export class Codes {
  readonly #consents: Once<AuthorizeRequest>
  readonly #codes: Once<AuthorizeRequest>

  constructor(clock: Clock) {
    this.#consents = new Once(clock, LIFETIME_MS)
    this.#codes = new Once(clock, LIFETIME_MS)
  }

  /** Creates the anti-forgery token for a consent page with this request. */
  openConsent(request: AuthorizeRequest): string {
    return this.#consents.put(request)
  }

  /** Takes the request of the consent page with this anti-forgery token. */
  takeConsent(token: string): AuthorizeRequest | undefined {
    return this.#consents.take(token)
  }

  issue(request: AuthorizeRequest): string {
    return this.#codes.put(request)
  }

  /** Returns the request that the user agreed to. Uses the code up, even on an error. */
  redeem({ clientId, code, redirectUri, verifier }: Redemption): AuthorizeRequest | RedeemError {
    const request = this.#codes.take(code)
    if (!request || request.clientId !== clientId) return 'bad_verification_code'
    if (redirectUri !== undefined && redirectUri !== request.redirectUri) return 'redirect_uri_mismatch'
    return verifies(verifier, request.challenge) ? request : 'bad_verification_code'
  }
}

/** Checks a verifier (RFC 7636 section 4.6). One without a challenge fails too: an attacker removed the challenge. */
function verifies(verifier: string | undefined, challenge: string | undefined): boolean {
  if (verifier === undefined || challenge === undefined) return verifier === challenge
  const wellFormed = /^[A-Za-z0-9._~-]{43,128}$/.test(verifier)
  return wellFormed && createHash('sha256').update(verifier).digest('base64url') === challenge
}
