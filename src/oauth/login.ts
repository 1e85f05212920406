import { z } from 'zod'
import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { systemClock, type Clock } from '../base/time.js'
import type { Store } from '../store/kv.js'
import { REASONS, type Outcome } from './outcome.js'
import type { OAuthParts } from './parts.js'

/** Time limit for a sign-in in the browser, and lifetime of its published outcome: 5 minutes, in milliseconds. */
export const LOGIN_LIMIT = 300_000

/** Too short for a person to notice; a read costs almost nothing. */
const POLL_MS = 200

/**
 * Parses the nonce under which a sign-in publishes its outcome: 16–64 random characters of `[A-Za-z0-9_-]`.
 * @throws RelayError `bad_request`.
 */
export function parseLogin(text: string): string {
  if (!/^[\w-]{16,64}$/.test(text)) throw new RelayError('bad_request', 'Invalid login')
  return text
}

/** Stores the outcome for {@link awaitLogin} in any process. A failure is only logged: the sign-in itself is done. */
export async function publishOutcome(
  { store, clock, log }: Pick<OAuthParts, 'store' | 'clock' | 'log'>,
  login: string,
  outcome: Outcome,
): Promise<void> {
  try {
    await store.put(loginKey(login), { v: 1, ...outcome }, clock() + LOGIN_LIMIT)
  } catch (error) {
    log.error('The outcome of this sign-in could not be stored, so relay login does not see it', error)
  }
}

/**
 * Waits until the sign-in with this nonce has ended, and takes its outcome.
 * @throws RelayError `timed_out` after {@link LOGIN_LIMIT}, `storage`; AbortError when `signal` aborts.
 */
export async function awaitLogin(
  store: Store,
  login: string,
  { signal, clock = systemClock }: Cancellable & { readonly clock?: Clock | undefined } = {},
): Promise<Outcome> {
  const until = clock() + LOGIN_LIMIT
  const key = loginKey(login)
  while ((await store.get(key)) === undefined) {
    if (clock() >= until) throw new RelayError('timed_out', 'No sign-in was completed within 5 minutes')
    await sleep(POLL_MS, { signal })
  }
  const record = outcomeRecord.safeParse(await store.take(key)).data
  if (!record) throw new RelayError('storage', 'The stored outcome of this sign-in is unreadable')
  const { v: _, ...outcome } = record
  return outcome
}

const v = z.literal(1)
const outcomeRecord = z.discriminatedUnion('auth', [
  z.object({ v, auth: z.literal('success'), userId: z.string() }),
  z.object({ v, auth: z.literal('error'), reason: z.enum(REASONS) }),
])

function loginKey(login: string): string {
  return `login:${login}`
}
