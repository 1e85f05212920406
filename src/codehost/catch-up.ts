import { type Cancellable, sleep, probeDelay } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { TIME_LIMITS, type Limits } from '../base/seams.js'
import type { Journal } from '../journal/journal.js'
import { withLock } from '../store/lock.js'
import type { Store } from '../store/kv.js'
import type { DeliveryLog, HookDelivery, HookPause, HostWords } from './host.js'
import { Refusal } from './refusal.js'

export interface CatchUpOptions extends RetryOptions {
  readonly log: DeliveryLog
  /** Owner of the log, also for messages: `octo/demo`. */
  readonly name: string
  readonly host: { readonly origin: string; readonly logPeriod: number }
  readonly journal: Pick<Journal, 'known' | 'keptSince'>
  readonly store: Store
  /**
   * Milliseconds since 1970-01-01 UTC. Deliveries first sent before are left out. Default: the point that an earlier
   * run reached, but at most the log's period.
   */
  readonly since?: number | undefined
  readonly limits?: Pick<Limits, 'arrival' | 'logLook'> | undefined
  /** Called with a message if another process is already catching up. */
  readonly onBusy?: ((text: string) => void) | undefined
  /** Called once the code host sends again through a hook that it had paused, with the pause. */
  readonly onWoken?: ((ended: HookPause) => void) | undefined
  /** Called before the first missing delivery is requested, and after each one, whether it arrived or not. */
  readonly onProgress?: ((done: number, missing: number) => void) | undefined
}

/** A delivery that could not be fetched. */
export interface FailedDelivery {
  readonly delivery: HookDelivery
  readonly why: string
}

export interface CatchUpResult {
  readonly missing: number
  readonly arrived: number
  readonly failed: readonly FailedDelivery[]
}

/**
 * Finds the deliveries that are in the log but never were in the journal, oldest first. Each GUID occurs once, however
 * often it was sent: as its newest entry, in the order of its oldest, which is when the event happened. `first` is the
 * id of the oldest entry. Pings are left out: they report nothing, and equal ones through a tunnel are one entry.
 * `newest` is the largest id of the log, or 0 if it is empty.
 * @throws RelayError as the calls do
 */
export async function findMissed(options: CatchUpOptions): Promise<{
  readonly deliveries: readonly (HookDelivery & { readonly first: bigint })[]
  readonly newest: bigint
}> {
  const { log, journal, store, host, since = Date.now() - host.logPeriod } = options
  // Deliveries that retention has removed were received, so they are not missing.
  const start = Math.max(since, await journal.keptSince())
  const reached =
    options.since === undefined ? await store.get<string>(keyOf('catch-up', options)) : undefined
  const after = BigInt(reached ?? -1)
  const missing = new Map<string, HookDelivery & { readonly first: bigint }>()
  let newest = 0n
  let cursor: string | undefined
  do {
    const from = cursor
    const { deliveries, next } = await withRetries(() => log.page(from), options)
    const [top] = deliveries
    if (top && BigInt(top.id) > newest) newest = BigInt(top.id)
    const recent = deliveries.filter(({ deliveredAt, id }) => deliveredAt >= start && BigInt(id) > after)
    const known = await journal.known([...new Set(recent.map(({ guid }) => guid))])
    for (const delivery of recent.filter(({ guid, event }) => !known.has(guid) && event !== 'ping')) {
      const latest = missing.get(delivery.guid) ?? delivery
      // Setting an existing key keeps its position in the map. Deleting it first moves it to the position of the oldest
      // entry.
      missing.delete(delivery.guid)
      missing.set(delivery.guid, { ...latest, first: BigInt(delivery.id) })
    }
    cursor = recent.length > 0 ? next : undefined
  } while (cursor !== undefined)
  return { deliveries: [...missing.values()].toReversed(), newest }
}

/**
 * Key of a log's record. `catch-up` holds the id up to which every delivery has arrived or was requested, so that a
 * delivery removed by retention never runs again.
 */
function keyOf(record: 'catch-up' | 'catch-up-lock', { host, name }: CatchUpOptions): string {
  return `${record}:${host.origin} ${name}`.toLowerCase()
}

/** Failed deliveries in a row after which the rest is given up, because the address does not lead here. */
const MAX_FAILED_IN_A_ROW = 5
const GIVEN_UP = `not asked for, since ${MAX_FAILED_IN_A_ROW} in a row did not arrive`

/**
 * Requests the missing deliveries again, oldest first, each once the one before has arrived through the intake of the
 * running instance. Waits for rate limits, and for another process that is already catching up.
 * @throws RelayError as the calls do, when the log cannot be read; `storage`; AbortError when `signal` aborts
 */
export async function catchUp(options: CatchUpOptions): Promise<CatchUpResult> {
  const { name, store, signal } = options
  const onBusy = (pid: number | undefined): void => {
    const who = pid === undefined ? 'Another process' : `Process ${pid}`
    options.onBusy?.(`${who} is catching up with ${name} already. Waiting until it has finished`)
  }
  const lock = { what: `catching up with ${name}`, onBusy, signal }
  return withLock(store, keyOf('catch-up-lock', options), lock, () => askForMissed(options))
}

async function askForMissed(options: CatchUpOptions): Promise<CatchUpResult> {
  const { deliveries: missing, newest } = await findMissed(options)
  options.onProgress?.(0, missing.length)
  const { wake } = options.log
  const ended = missing.length > 0 && wake ? await withRetries(wake, options) : undefined
  if (ended) options.onWoken?.(ended)
  const failed: FailedDelivery[] = []
  /** Largest id up to which nothing is missing. */
  let reached = newest
  let inARow = 0
  for (const [i, delivery] of missing.entries()) {
    const failure = inARow < MAX_FAILED_IN_A_ROW ? await fetchOne(delivery, options) : { why: GIVEN_UP }
    options.onProgress?.(i + 1, missing.length)
    if (!failure) inARow = 0
    else failed.push({ delivery, why: failure.why })
    // A delivery that the code host no longer has tells nothing about the next one, and is not requested again.
    if (!failure || failure.isGone) continue
    inARow++
    if (delivery.first <= reached) reached = delivery.first - 1n
  }
  if (reached > 0n && options.since === undefined)
    await options.store.put(keyOf('catch-up', options), String(reached))
  return { missing: missing.length, arrived: missing.length - failed.length, failed }
}

/** Reason why a delivery did not arrive. `isGone` is true if the code host no longer has it. */
interface Failure {
  readonly why: string
  readonly isGone?: boolean
}

/** Interval of looking for an arrival: short compared with the second or two that a redelivery takes. Milliseconds. */
const POLL_MS = 25

/**
 * Requests a delivery again and waits until it arrives. Returns undefined once it has. Also looks into the log for a
 * failure, after 1, 2, 4 s.
 */
async function fetchOne(delivery: HookDelivery, options: CatchUpOptions): Promise<Failure | undefined> {
  const { log, journal, signal, limits = TIME_LIMITS } = options
  // Hundreds of redeliveries take minutes, so the delivery may have arrived in the meantime.
  if ((await journal.known([delivery.guid])).size > 0) return undefined
  let failure = await withRetries(() => log.redeliver(delivery.id), options).then(() => undefined, notSent)
  const began = performance.now()
  let nextLook = limits.logLook
  while ((await journal.known([delivery.guid])).size === 0) {
    if (failure) return failure
    const elapsed = performance.now() - began
    if (elapsed >= limits.arrival) return { why: `it did not arrive within ${limits.arrival / 1000} s` }
    await sleep(POLL_MS, { signal })
    if (elapsed < nextLook) continue
    nextLook *= 2
    failure = await withRetries(() => log.page(), options).then(
      ({ deliveries }) => failureIn(deliveries, delivery),
      // A log that cannot be read now tells nothing, and the delivery may still arrive.
      (error: unknown) => {
        if (toRelayError(error).kind === 'cancelled') throw error
        return undefined
      },
    )
  }
  return undefined
}

function notSent(error: unknown): Failure {
  if (!(error instanceof RelayError) || error.kind === 'cancelled') throw error
  // A token without the right also gets a 404.
  const lacksRight = error instanceof Refusal && error.missingRight !== undefined
  return {
    why: `it was not sent again: ${error.message}`,
    isGone: error.kind === 'not_found' && !lacksRight,
  }
}

/** Describes the failure of the redelivery. Undefined if the log has none. */
function failureIn(deliveries: readonly HookDelivery[], { guid, id }: HookDelivery): Failure | undefined {
  const newest = deliveries.find((entry) => entry.guid === guid)
  if (!newest || newest.id === id || (newest.statusCode >= 200 && newest.statusCode < 300)) return undefined
  return { why: `the redelivery failed too: ${newest.status} (${newest.statusCode})` }
}

export interface RetryOptions extends Cancellable {
  /** Called before a wait, with its reason and its length in milliseconds. */
  readonly onWait?: ((why: string, ms: number) => void) | undefined
}

/** Longest wait in seconds: GitHub's primary rate limit resets every hour. */
const MAX_WAIT = 3600
/** Most attempts of a call that the code host fails to answer. */
const MAX_ATTEMPTS = 4

/**
 * Makes a call that is safe to repeat. Repeats it after a rate limit has ended, and a few times after a failure of the
 * code host (5xx, no response).
 * @throws the last error of the call; AbortError when `signal` aborts
 */
export async function withRetries<T>(call: () => Promise<T>, options: RetryOptions = {}): Promise<T> {
  for (let failures = 0; ;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof RelayError)) throw error
      const { kind, message, retryAfter = 60 } = error
      const isLimit = kind === 'rate_limited' && retryAfter <= MAX_WAIT
      const isPassing = kind === 'provider_failed' || kind === 'provider_timeout'
      if (!isLimit && !(isPassing && ++failures < MAX_ATTEMPTS)) throw error
      const wait = isLimit ? retryAfter * 1000 : probeDelay(failures, Math.random)
      options.onWait?.(message, wait)
      await sleep(wait, options)
    }
  }
}

/** @throws RelayError `unprocessable` if the code host has no delivery log for programs (Gitea) */
export function requireLog({ words: { noLog } }: { readonly words: HostWords }): void {
  if (noLog)
    throw new RelayError('unprocessable', `There is nothing to catch up from: ${noLog.why}. ${noLog.fix}`)
}
