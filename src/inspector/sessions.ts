import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/time.js'
import type { Store } from '../store/kv.js'

/**
 * Length of a code: 16 characters of 32, so 80 bits, which a person can still type. At 100,000 tries a second, guessing
 * one of {@link MAX_CODES} takes longer than the universe is old, so wrong codes need no limit.
 */
const CODE_LENGTH = 16
/** Digits and letters without i, l, o and u, which are misread (Crockford's base 32). */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
/** Lifetime of a code: 5 minutes, enough to start a browser, also on another machine. Milliseconds. */
const CODE_LIFE_MS = 300_000
/** Maximum of unused codes. A person opens one or two at a time. Beyond that, the oldest is dropped. */
const MAX_CODES = 8
/** Lifetime of a session: 24 hours, so that a cookie that another program received ends soon. Milliseconds. */
const SESSION_LIFE_MS = 86_400_000
/**
 * Maximum of sessions, above the number of browsers that a person uses on one machine. Beyond that, the oldest is
 * dropped.
 */
const MAX_SESSIONS = 32

/** Prefix of the cookie's digest in the keys of records. */
const PREFIX = 'inspect:'

/** A stored session. It has digests, never the secrets themselves. */
interface SessionRecord {
  readonly key: string
  readonly until: number
}

/**
 * Checks which browsers may read and change. Codes are in memory. Digests of sessions are stored in the profile, so
 * that they survive a restart.
 */
export class Sessions {
  readonly #store: Store
  readonly #clock: Clock
  readonly #onCodeUsed: () => void
  /** Expiry of each code, by the code's digest. */
  readonly #codes = new Map<string, number>()

  /** @param onCodeUsed called when a code has opened a session. Must not throw */
  constructor(store: Store, clock: Clock, onCodeUsed: () => void = () => {}) {
    this.#store = store
    this.#clock = clock
    this.#onCodeUsed = onCodeUsed
  }

  /** Issues a one-time code, `xxxx-xxxx-xxxx-xxxx`. */
  issueCode(): string {
    const code = Array.from({ length: CODE_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
    this.#codes.set(digest(code), this.#clock() + CODE_LIFE_MS)
    const [oldest] = this.#codes.keys()
    if (this.#codes.size > MAX_CODES && oldest !== undefined) this.#codes.delete(oldest)
    return code.replaceAll(/.{4}(?=.)/g, '$&-')
  }

  /** True until the code is used or expires. */
  isPending(code: string): boolean {
    return (this.#codes.get(digest(normalized(code))) ?? 0) > this.#clock()
  }

  /**
   * Exchanges a code for a session, once. Undefined for an unknown, used or expired code. Wrong codes never block a
   * right one: any web page can post wrong ones here, and must not lock the user out.
   *
   * The cookie only allows reading: cookies ignore ports, so a program on another port of this machine may receive it.
   * Changes need the key, too, which only the page's own scripts have.
   * @throws RelayError `storage`
   */
  async open(code: string): Promise<{ readonly cookie: string; readonly key: string } | undefined> {
    if (!this.isPending(code)) return undefined
    this.#codes.delete(digest(normalized(code)))
    this.#onCodeUsed()
    const session = { cookie: secret(), key: secret() }
    const until = this.#clock() + SESSION_LIFE_MS
    await this.#dropOldest()
    await this.#store.put(PREFIX + digest(session.cookie), { key: digest(session.key), until }, until)
    return session
  }

  /** True for the cookie of a session. @throws RelayError `storage` */
  async mayRead(cookie: string | undefined): Promise<boolean> {
    return (await this.#find(cookie)) !== undefined
  }

  /** True for the cookie of a session with its key. @throws RelayError `storage` */
  async mayChange(cookie: string | undefined, key: string | undefined): Promise<boolean> {
    const record = await this.#find(cookie)
    if (!record || key === undefined) return false
    const [given, wanted] = [Buffer.from(digest(key)), Buffer.from(record.key)]
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  }

  async #find(cookie: string | undefined): Promise<SessionRecord | undefined> {
    // Limited to the length of a real cookie, since the sender decides how much is hashed.
    if (cookie === undefined || cookie.length !== SECRET_LENGTH) return undefined
    return this.#store.get<SessionRecord>(PREFIX + digest(cookie))
  }

  /** Makes room for one more session. */
  async #dropOldest(): Promise<void> {
    const keys = await this.#store.list(PREFIX)
    const ends = await Promise.all(
      keys.map(async (key) => ({ key, until: (await this.#store.get<SessionRecord>(key))?.until ?? 0 })),
    )
    const oldest = ends.toSorted((one, other) => one.until - other.until)
    for (const { key } of oldest.slice(0, Math.max(0, keys.length - MAX_SESSIONS + 1)))
      await this.#store.delete(key)
  }
}

/** Normalizes a typed code: capitals, spaces, and letters that look like digits. */
function normalized(code: string): string {
  return code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** Length of {@link secret} in characters. */
const SECRET_LENGTH = 43

/** Makes a secret of 256 random bits. */
function secret(): string {
  return randomBytes(32).toString('base64url')
}
