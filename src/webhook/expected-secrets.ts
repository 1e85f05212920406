import type { Secret } from '../base/secret.js'
import type { NamedScheme } from '../base/settings.js'
import type { Clock } from '../base/time.js'

/** Time for which a secret is expected after each call of the waiting command: three of its heartbeats. Milliseconds. */
const EXPECTED_MS = 15_000
/** Most sources that wait at once, far above what one person adds. */
const MAX_EXPECTED = 20

interface Expected extends NamedScheme {
  until: number
  secret?: Secret
}

/**
 * Secrets that senders bring with a handshake (Asana, Notion). Anybody can send such a handshake, so one is taken only
 * while a command waits for it, once.
 */
export class ExpectedSecrets {
  readonly #expected = new Map<string, Expected>()
  readonly #clock: Clock

  /** @param clock which is never set back, in milliseconds */
  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Expects a secret of a source from now on. Returns the one that has come, which is then expected no longer. */
  expect({ name, scheme }: NamedScheme): Secret | undefined {
    const known = this.#expected.get(name)
    if (known?.secret) this.#expected.delete(name)
    if (known?.secret) return known.secret
    if (!known && this.#expected.size >= MAX_EXPECTED) this.#forgetOldest()
    this.#expected.set(name, { name, scheme, until: this.#clock() + EXPECTED_MS })
    return undefined
  }

  /** Takes a secret that a handshake has brought. False if none is expected, or one has come. */
  take(name: string, secret: Secret): boolean {
    const expected = this.#expected.get(name)
    if (!expected || expected.secret || expected.until < this.#clock()) return false
    expected.secret = secret
    return true
  }

  /** Sources that have been expected. They may be no longer. */
  values(): Iterable<NamedScheme> {
    return this.#expected.values()
  }

  #forgetOldest(): void {
    const [oldest] = this.#expected.keys()
    if (oldest !== undefined) this.#expected.delete(oldest)
  }
}
