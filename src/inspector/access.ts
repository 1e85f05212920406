import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/time.js'

/** A browser that opened the inspector with a one-time code. */
export interface Session {
  /** Value of the cookie, which only reads: a program on another port of this machine may receive it. */
  readonly cookie: string
  /** The key that every change needs as well. Only this page's own scripts have it. */
  readonly key: string
}

/** Who may read and who may change. In memory only: nothing of it outlives the instance. */
export interface Access {
  /** A one-time code, `xxxx-xxxx-xxxx-xxxx`. */
  issueCode(): string
  /**
   * Exchanges a code for a session, once. Undefined for a code that is unknown, used or expired. However many wrong ones came
   * before, a right one opens: a page of another site can post forms here, and must not lock the user out.
   */
  open(code: string): Session | undefined
  /** Whether a code still waits to be used. */
  isPending(code: string): boolean
  mayRead(cookie: string | undefined): boolean
  mayChange(cookie: string | undefined, key: string | undefined): boolean
}

/**
 * 16 characters of 32: 80 bits, which a person can still type. At 100,000 tries a second, guessing one of {@link MAX_CODES} takes
 * longer than the universe is old: wrong ones need no limit.
 */
const CODE_LENGTH = 16
/** Without i, l, o and u, which are misread (Crockford's base 32). */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
/** 5 minutes: enough to start a browser, also on another machine. */
export const CODE_LIFE_MS = 300_000
/** Codes that wait to be used. A person opens one or two at a time; of more, the oldest ends. */
export const MAX_CODES = 8
/** 24 hours: a cookie that another program received ends with the working day. */
export const SESSION_LIFE_MS = 86_400_000
/** More browsers than a person uses on one machine; of more, the oldest session ends. */
export const MAX_SESSIONS = 32

/** What is held of a session: hashes, compared in constant time, so that no comparison leaks a secret. */
interface Held {
  readonly key: Buffer
  readonly expiresAt: number
}

export function createAccess(clock: Clock): Access {
  const codes = new Map<string, number>()
  const sessions = new Map<string, Held>()
  const held = (cookie: string | undefined): Held | undefined => {
    if (cookie === undefined) return undefined
    const id = digest(cookie).toString('hex')
    const session = sessions.get(id)
    if (session && session.expiresAt > clock()) return session
    sessions.delete(id)
    return undefined
  }
  return {
    issueCode() {
      const code = Array.from({ length: CODE_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
      codes.set(digest(code).toString('hex'), clock() + CODE_LIFE_MS)
      dropOldest(codes, MAX_CODES)
      return code.replaceAll(/.{4}(?=.)/g, '$&-')
    },
    open(code) {
      const id = digest(normalized(code)).toString('hex')
      const expiresAt = codes.get(id)
      codes.delete(id)
      if (expiresAt === undefined || expiresAt <= clock()) return undefined
      const session = { cookie: secret(), key: secret() }
      const life = { key: digest(session.key), expiresAt: clock() + SESSION_LIFE_MS }
      sessions.set(digest(session.cookie).toString('hex'), life)
      dropOldest(sessions, MAX_SESSIONS)
      return session
    },
    isPending: (code) => (codes.get(digest(normalized(code)).toString('hex')) ?? 0) > clock(),
    mayRead: (cookie) => held(cookie) !== undefined,
    mayChange(cookie, key) {
      const session = held(cookie)
      return session !== undefined && key !== undefined && timingSafeEqual(digest(key), session.key)
    },
  }
}

/** A code as a person may type it: in capitals, with spaces, with letters that look like digits. */
function normalized(code: string): string {
  return code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
}

/** Hashes are looked up and compared, never the secrets themselves. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** 256 random bits. */
function secret(): string {
  return randomBytes(32).toString('base64url')
}

function dropOldest(held: Map<string, unknown>, limit: number): void {
  const [oldest] = held.keys()
  if (held.size > limit && oldest !== undefined) held.delete(oldest)
}
