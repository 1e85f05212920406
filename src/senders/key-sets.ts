// Keys that senders publish, fetched when a request names one.
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose'
import { readBounded } from '../base/bytes.js'
import { RelayError, isError } from '../base/errors.js'
import { deadline } from '../base/wait.js'
import { sendOnce } from '../net/client.js'

/** Time for fetching keys, in milliseconds: senders wait at least five seconds for an answer. */
const FETCH_MS = 3000
/** Largest key set or certificate in bytes. Google's set, with two keys, has 1,500. */
const MAX_BYTES = 65_536
/** Time for which keys are kept, in milliseconds: senders announce a new key earlier than that. */
const KEEP_MS = 3_600_000
/** Shortest time between two fetches for missing keys, since any request can name an unknown one. Milliseconds. */
const UNKNOWN_MS = 60_000
/** Pause after a failed fetch, in milliseconds. */
const FAILED_MS = 5000
/** Most addresses whose keys are kept: more than there are sources with an address. */
const MAX_KEPT = 50

/** Fetches that failed, by address, with the time at which they did. */
const failed = new Map<string, { readonly at: number; readonly error: RelayError }>()

/**
 * Fetches what a sender publishes at an address. Follows no redirect, which could lead elsewhere.
 * @throws RelayError `unavailable`, so that the sender tries again
 */
export async function fetchPublished(address: string): Promise<Buffer> {
  const before = failed.get(address)
  if (before && performance.now() - before.at < FAILED_MS) throw before.error
  try {
    const response = await sendOnce(address, {
      method: 'GET',
      headers: { accept: 'application/json, */*' },
      signal: deadline(FETCH_MS),
    })
    if (response.status !== 200) {
      response.discard()
      throw new Error(`it was answered ${response.status}`)
    }
    const bytes = await readBounded(response.body, MAX_BYTES)
    failed.delete(address)
    return Buffer.from(bytes)
  } catch (cause) {
    const error = new RelayError('unavailable', 'The keys of the sender could not be fetched', {
      cause,
      retryAfter: FAILED_MS / 1000,
      forClients: true,
      detail: `${address}: ${isError(cause) ? cause.message : 'unknown'}`,
    })
    keep(failed, address, { at: performance.now(), error })
    throw error
  }
}

function keep<Value>(map: Map<string, Value>, key: string, value: Value): void {
  const [oldest] = map.keys()
  if (map.size >= MAX_KEPT && oldest !== undefined) map.delete(oldest)
  map.set(key, value)
}

const sets = new Map<string, JWTVerifyGetKey>()

/**
 * The key set at an address (RFC 7517), which is fetched when it is first needed, an hour later, and for a key that it
 * lacks, at most once a minute.
 * @throws RelayError `unavailable` from the function, if it cannot be fetched
 */
export function keySetAt(address: string): JWTVerifyGetKey {
  const known = sets.get(address)
  if (known) return known
  const made = createRemoteJWKSet(new URL(address), {
    cacheMaxAge: KEEP_MS,
    cooldownDuration: UNKNOWN_MS,
    timeoutDuration: FETCH_MS,
    [customFetch]: async () => new Response(new Uint8Array(await fetchPublished(address))),
  })
  keep(sets, address, made)
  return made
}

interface Kept {
  readonly text: string
  readonly at: number
}

const texts = new Map<string, Kept>()
/** Times of the last fetches of certificates: requests can name any number of addresses. */
let fetched: readonly number[] = []
/** Most of them in a minute. A sender has one, and two while it changes them. */
const MAX_FETCHED = 10

/** The document at an address, kept for an hour. @throws RelayError `unavailable` */
export async function publishedAt(address: string): Promise<string> {
  const now = performance.now()
  const known = texts.get(address)
  if (known && now - known.at < KEEP_MS) return known.text
  fetched = fetched.filter((at) => now - at < UNKNOWN_MS)
  if (fetched.length >= MAX_FETCHED)
    throw new RelayError('unavailable', 'The keys of the sender could not be fetched', {
      forClients: true,
      retryAfter: UNKNOWN_MS / 1000,
      detail: `${MAX_FETCHED} certificates were fetched within a minute`,
    })
  fetched = [...fetched, now]
  const text = (await fetchPublished(address)).toString()
  keep(texts, address, { text, at: now })
  return text
}
