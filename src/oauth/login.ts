import { z } from 'zod'
import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { systemClock, type Clock } from '../base/time.js'
import type { Store } from '../store/contract.js'
import { REASONS, type Outcome } from './outcome.js'
import type { OAuthParts } from './parts.js'

/** 5 minutes: how long a sign-in in the browser is waited for, and how long its outcome waits to be fetched. */
export const LOGIN_LIMIT = 300_000

/** A person does not notice it, and a read costs next to nothing. */
const POLL = 200

/**
 * The name under which who began a sign-in waits for its outcome: 16–64 of `[A-Za-z0-9_-]`, to be made at random.
 * @throws RelayError `bad_request`.
 */
export function parseLogin(text: string): string {
  if (!/^[\w-]{16,64}$/.test(text)) throw new RelayError('bad_request', 'Invalid login')
  return text
}

/** Leaves the outcome for {@link awaitLogin}, in the same or another process. Best effort: the sign-in itself is done. */
export async function leaveOutcome(
  { store, clock, log }: Pick<OAuthParts, 'store' | 'clock' | 'log'>,
  login: string,
  outcome: Outcome,
): Promise<void> {
  try {
    await store.put(loginKey(login), { v: 1, ...outcome }, { expiresAt: clock() + LOGIN_LIMIT })
  } catch (error) {
    log.error('Whoever waits for this sign-in could not be told how it ended', error)
  }
}

/**
 * Waits until the sign-in of that name has ended, and takes its outcome.
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
    if (clock() >= until) throw new RelayError('timed_out', 'Nobody has signed in within 5 minutes')
    await sleep(POLL, { signal })
  }
  const row = rowSchema.safeParse(await store.take(key)).data
  if (!row) throw new RelayError('storage', 'The store holds no outcome of this sign-in that can be read')
  const { v: _, ...outcome } = row
  return outcome
}

const v = z.literal(1)
const rowSchema = z.discriminatedUnion('auth', [
  z.object({ v, auth: z.literal('success'), userId: z.string() }),
  z.object({ v, auth: z.literal('error'), reason: z.enum(REASONS) }),
])

function loginKey(login: string): string {
  return `login:${login}`
}
