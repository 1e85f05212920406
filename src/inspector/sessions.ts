import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/time.js'
import { isObject } from '../json/parse.js'
import type { Store } from '../store/kv.js'

/** A browser that opened the inspector with a one-time code. */
export interface Session {
  /** Value of the cookie, which only reads: cookies know no ports, so a program on another port of this machine may receive it. */
  readonly cookie: string
  /** The key that every change needs as well. Only the page's own scripts have it, and they send it with changes only. */
  readonly key: string
}

/** Who may read and who may change. Codes are in memory; of sessions the profile has digests, so that a restart does not end them. */
export interface Sessions {
  /** A one-time code, `xxxx-xxxx-xxxx-xxxx`. */
  issueCode(): string
  /** Whether a code still waits to be used. */
  isPending(code: string): boolean
  /**
   * Exchanges a code for a session, once. Undefined for a code that is unknown, used or expired. However many wrong ones came
   * before, a right one opens: any web page can post wrong ones here, and must not lock the user out. @throws RelayError `storage`
   */
  open(code: string): Promise<Session | undefined>
  /** @throws RelayError `storage` */
  mayRead(cookie: string | undefined): Promise<boolean>
  /** @throws RelayError `storage` */
  mayChange(cookie: string | undefined, key: string | undefined): Promise<boolean>
}

/**
 * 16 characters of 32: 80 bits, which a person can still type. At 100,000 tries a second, guessing one of {@link MAX_CODES} takes
 * longer than the universe is old: wrong ones need no limit.
 */
const CODE_LENGTH = 16
/** Without i, l, o and u, which are misread (Crockford's base 32). */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
/** 5 minutes: enough to start a browser, also on another machine. */
const CODE_LIFE_MS = 300_000
/** Codes that wait to be used. A person opens one or two at a time; of more, the oldest ends. */
const MAX_CODES = 8
/** 24 hours: a cookie that another program received ends with the working day. */
const SESSION_LIFE_MS = 86_400_000
/** More browsers than a person uses on one machine; of more, the oldest session ends. */
const MAX_SESSIONS = 32

/** Before the cookie's digest in the keys of records. */
const PREFIX = 'inspect:'

/** Digests are looked up and compared, never the secrets themselves. */
interface SessionRecord {
  readonly key: string
  readonly until: number
}

function parseRecord(value: unknown): SessionRecord | undefined {
  if (!isObject(value)) return undefined
  const { key, until } = value
  return typeof key === 'string' && typeof until === 'number' ? { key, until } : undefined
}

export function openSessions(store: Store, clock: Clock): Sessions {
  const codes = new Map<string, number>()
  const recordOf = async (cookie: string | undefined): Promise<SessionRecord | undefined> => {
    // The sender decides what is hashed, so it is no more than relay ever gave.
    if (cookie === undefined || cookie.length !== SECRET_LENGTH) return undefined
    return parseRecord(await store.get(PREFIX + digest(cookie)))
  }
  return {
    issueCode() {
      const code = Array.from({ length: CODE_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
      codes.set(digest(code), clock() + CODE_LIFE_MS)
      const [oldest] = codes.keys()
      if (codes.size > MAX_CODES && oldest !== undefined) codes.delete(oldest)
      return code.replaceAll(/.{4}(?=.)/g, '$&-')
    },
    isPending: (code) => (codes.get(digest(normalized(code))) ?? 0) > clock(),
    async open(code) {
      const id = digest(normalized(code))
      const end = codes.get(id) ?? 0
      codes.delete(id)
      if (end <= clock()) return undefined
      const session = { cookie: secret(), key: secret() }
      const until = clock() + SESSION_LIFE_MS
      await dropOldest(store)
      await store.put(PREFIX + digest(session.cookie), { key: digest(session.key), until }, until)
      return session
    },
    mayRead: async (cookie) => (await recordOf(cookie)) !== undefined,
    async mayChange(cookie, key) {
      const record = await recordOf(cookie)
      if (!record || key === undefined) return false
      const [given, wanted] = [Buffer.from(digest(key)), Buffer.from(record.key)]
      return given.length === wanted.length && timingSafeEqual(given, wanted)
    },
  }
}

/** A code as a person may type it: in capitals, with spaces, with letters that look like digits. */
function normalized(code: string): string {
  return code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
}

/** Makes room for one more session. */
async function dropOldest(store: Store): Promise<void> {
  const keys = await store.list(PREFIX)
  if (keys.length < MAX_SESSIONS) return
  const ends = await Promise.all(
    keys.map(async (key) => ({ key, until: parseRecord(await store.get(key))?.until ?? 0 })),
  )
  const oldest = ends
    .toSorted((one, other) => one.until - other.until)
    .slice(0, keys.length - MAX_SESSIONS + 1)
  for (const { key } of oldest) await store.delete(key)
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** Characters of {@link secret}. */
const SECRET_LENGTH = 43

/** 256 random bits. */
function secret(): string {
  return randomBytes(32).toString('base64url')
}
