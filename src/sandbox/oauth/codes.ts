import { createHash } from 'node:crypto'
import type { Clock } from '../../base/time.js'
import { BoundedMap } from '../bounded.js'
import { unguessable } from './random.js'

/** A code, and a consent page, are good for 10 minutes, as GitHub's are. */
const LIFETIME_MS = 600_000
/** Open consent pages and unused codes; the oldest go first. */
const LIMIT = 1000

/** A request for authorization that has been checked and may be shown to the user. */
export interface AuthorizeRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly state: string | undefined
  readonly scopes: readonly string[]
  /** The PKCE S256 challenge; GitHub does not insist on one. */
  readonly challenge: string | undefined
}

export interface Redemption {
  readonly clientId: string
  readonly code: string
  /** GitHub lets it be left out; when sent it must be the one the code went to. */
  readonly redirectUri: string | undefined
  readonly verifier: string | undefined
}

export type RedeemError = 'bad_verification_code' | 'redirect_uri_mismatch'

/** What waits for the user (consents) and what waits for the client (codes): both work once, for 10 minutes. */
export class Codes {
  readonly #consents: Once<AuthorizeRequest>
  readonly #codes: Once<AuthorizeRequest>

  constructor(clock: Clock) {
    this.#consents = new Once(clock)
    this.#codes = new Once(clock)
  }

  /** The anti-forgery token of the consent page that shows this request. */
  openConsent(request: AuthorizeRequest): string {
    return this.#consents.put(request)
  }

  /** What the user was asked, given the page's anti-forgery token. */
  takeConsent(token: string): AuthorizeRequest | undefined {
    return this.#consents.take(token)
  }

  issue(request: AuthorizeRequest): string {
    return this.#codes.put(request)
  }

  /** Uses the code up, also when something else does not fit, and gives what the user agreed to. */
  redeem({ clientId, code, redirectUri, verifier }: Redemption): AuthorizeRequest | RedeemError {
    const request = this.#codes.take(code)
    if (!request || request.clientId !== clientId) return 'bad_verification_code'
    if (redirectUri !== undefined && redirectUri !== request.redirectUri) return 'redirect_uri_mismatch'
    return verifies(verifier, request.challenge) ? request : 'bad_verification_code'
  }
}

/** RFC 7636 section 4.6. A verifier without a challenge is refused too: someone took the challenge away. */
function verifies(verifier: string | undefined, challenge: string | undefined): boolean {
  if (verifier === undefined || challenge === undefined) return verifier === challenge
  const wellFormed = /^[A-Za-z0-9._~-]{43,128}$/.test(verifier)
  return wellFormed && createHash('sha256').update(verifier).digest('base64url') === challenge
}

class Once<T> {
  readonly #clock: Clock
  readonly #entries = new BoundedMap<string, { value: T; until: number }>(LIMIT)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  put(value: T): string {
    const key = unguessable()
    this.#entries.set(key, { value, until: this.#clock() + LIFETIME_MS })
    return key
  }

  take(key: string): T | undefined {
    const entry = this.#entries.get(key)
    this.#entries.delete(key)
    return entry && this.#clock() < entry.until ? entry.value : undefined
  }
}
