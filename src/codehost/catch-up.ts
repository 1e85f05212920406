import { type Cancellable, sleep, probeDelay } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { LIMITS, type Limits } from '../base/seams.js'
import type { Journal } from '../journal/journal.js'
import { exclusively } from '../store/exclusively.js'
import type { Store } from '../store/kv.js'
import type { CodeHost, DeliveryLog, HookDelivery } from './host.js'
import { Refusal } from './rest.js'

export interface CatchUpOptions extends PatienceOptions {
  readonly log: DeliveryLog
  /** Whose log it is, also in messages: `octo/demo`. */
  readonly name: string
  readonly host: Pick<CodeHost, 'origin' | 'logPeriod'>
  readonly journal: Pick<Journal, 'known' | 'keptSince'>
  readonly store: Pick<Store, 'get' | 'put' | 'update'>
  /**
   * Milliseconds since 1970-01-01 UTC: what was first sent before is left out. Default: what an earlier run had reached, and what is older
   * than the log's period.
   */
  readonly since?: number | undefined
  readonly limits?: Pick<Limits, 'arrival' | 'logLook'> | undefined
  /** Called if another process is at it, with what to say about it. */
  readonly onBusy?: ((text: string) => void) | undefined
  /** Called before the first of what is missing is asked for, and after each, whether it arrived or not. */
  readonly onProgress?: ((done: number, missing: number) => void) | undefined
}

/** A delivery that could not be had. */
export interface Failed {
  readonly delivery: HookDelivery
  readonly why: string
}

export interface CaughtUp {
  readonly missing: number
  readonly arrived: number
  readonly failed: readonly Failed[]
}

/**
 * What the log has and the journal neither has nor had, oldest first, once for each GUID however often it was sent: as the newest entry
 * of its GUID, in the order of the oldest, which is when the event happened; `first` is that one's id. Without pings: they report nothing
 * that happened, and equal ones that come through a tunnel are one entry. `newest`: the largest id of the log, 0 if it is empty.
 * @throws RelayError as the calls do
 */
export async function findMissed(options: CatchUpOptions): Promise<{
  readonly deliveries: readonly (HookDelivery & { readonly first: bigint })[]
  readonly newest: bigint
}> {
  const { log, journal, store, host, since = Date.now() - host.logPeriod } = options
  // What retention has removed was here: it is not missing.
  const start = Math.max(since, await journal.keptSince())
  const reached =
    options.since === undefined ? await store.get<string>(keyOf('catch-up', options)) : undefined
  const after = BigInt(reached ?? -1)
  const missing = new Map<string, HookDelivery & { readonly first: bigint }>()
  let newest = 0n
  let cursor: string | undefined
  do {
    const from = cursor
    const { deliveries, next } = await patiently(() => log.page(from), options)
    const [top] = deliveries
    if (top && BigInt(top.id) > newest) newest = BigInt(top.id)
    const recent = deliveries.filter(({ deliveredAt, id }) => deliveredAt >= start && BigInt(id) > after)
    const known = await journal.known([...new Set(recent.map(({ guid }) => guid))])
    for (const delivery of recent.filter(({ guid, event }) => !known.has(guid) && event !== 'ping')) {
      const latest = missing.get(delivery.guid) ?? delivery
      // A map keeps the place of a key that it has: adding it again moves it to that of its oldest entry.
      missing.delete(delivery.guid)
      missing.set(delivery.guid, { ...latest, first: BigInt(delivery.id) })
    }
    cursor = recent.length > 0 ? next : undefined
  } while (cursor !== undefined)
  return { deliveries: [...missing.values()].toReversed(), newest }
}

/**
 * `catch-up` is the record with the id in a log up to which every delivery has arrived or was sent again, so that what retention removes
 * never runs again.
 */
function keyOf(record: 'catch-up' | 'catch-up-lock', { host, name }: CatchUpOptions): string {
  return `${record}:${host.origin} ${name}`.toLowerCase()
}

/** Deliveries in a row that do not arrive before the rest is given up: the address does not lead here. */
const MAX_FAILED_IN_A_ROW = 5
const GIVEN_UP = `not asked for, since ${MAX_FAILED_IN_A_ROW} in a row did not arrive`

/**
 * Asks the code host for what is missing, oldest first, each once the one before has arrived through the ordinary intake of the running
 * instance. Waits for rate limits, and for another process that does the same.
 * @throws RelayError as the calls do, when the log cannot be read; `storage`; AbortError when `signal` aborts
 */
export async function catchUp(options: CatchUpOptions): Promise<CaughtUp> {
  const { name, store, signal } = options
  const onBusy = (pid: number | undefined): void => {
    const who = pid === undefined ? 'Another process' : `Process ${pid}`
    options.onBusy?.(`${who} is catching up with ${name} already. Waiting until it has finished`)
  }
  const lock = { what: `catching up with ${name}`, onBusy, signal }
  return exclusively(store, keyOf('catch-up-lock', options), lock, () => askForMissed(options))
}

async function askForMissed(options: CatchUpOptions): Promise<CaughtUp> {
  const { deliveries: missing, newest } = await findMissed(options)
  options.onProgress?.(0, missing.length)
  const failed: Failed[] = []
  /** The largest id below which nothing is missing. */
  let reached = newest
  let inARow = 0
  for (const [i, delivery] of missing.entries()) {
    const failure = inARow < MAX_FAILED_IN_A_ROW ? await fetchOne(delivery, options) : { why: GIVEN_UP }
    options.onProgress?.(i + 1, missing.length)
    if (!failure) inARow = 0
    else failed.push({ delivery, why: failure.why })
    // What the code host no longer has says nothing about the next, and is not asked for again.
    if (!failure || failure.isGone) continue
    inARow++
    if (delivery.first <= reached) reached = delivery.first - 1n
  }
  if (reached > 0n && options.since === undefined)
    await options.store.put(keyOf('catch-up', options), String(reached))
  return { missing: missing.length, arrived: missing.length - failed.length, failed }
}

/** Why a delivery did not arrive, and whether the code host no longer has it. */
interface Failure {
  readonly why: string
  readonly isGone?: boolean
}

/** Milliseconds: little compared with the second or two that a redelivery takes. */
const POLL_MS = 25

/** Has one sent again and waits until it arrives; undefined once it has. Looks into the log after 1, 2, 4 s, too, whether that failed. */
async function fetchOne(delivery: HookDelivery, options: CatchUpOptions): Promise<Failure | undefined> {
  const { log, journal, signal, limits = LIMITS } = options
  // It may have come since they were compared: hundreds of redeliveries take minutes.
  if ((await journal.known([delivery.guid])).size > 0) return undefined
  let failure = await patiently(() => log.redeliver(delivery.id), options).then(() => undefined, notSent)
  const began = performance.now()
  let nextLook = limits.logLook
  while ((await journal.known([delivery.guid])).size === 0) {
    if (failure) return failure
    const elapsed = performance.now() - began
    if (elapsed >= limits.arrival) return { why: `it did not arrive within ${limits.arrival / 1000} s` }
    await sleep(POLL_MS, { signal })
    if (elapsed < nextLook) continue
    nextLook *= 2
    failure = await patiently(() => log.page(), options).then(
      ({ deliveries }) => failureIn(deliveries, delivery),
      // A log that cannot be read now says nothing: the delivery may still arrive.
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
  // A token without the right gets a 404, too.
  const lacksRight = error instanceof Refusal && error.missingRight !== undefined
  return {
    why: `it was not sent again: ${error.message}`,
    isGone: error.kind === 'not_found' && !lacksRight,
  }
}

/** How the redelivery failed, if the log has it and it did. */
function failureIn(deliveries: readonly HookDelivery[], { guid, id }: HookDelivery): Failure | undefined {
  const newest = deliveries.find((entry) => entry.guid === guid)
  if (!newest || newest.id === id || (newest.statusCode >= 200 && newest.statusCode < 300)) return undefined
  return { why: `the redelivery failed too: ${newest.status} (${newest.statusCode})` }
}

export interface PatienceOptions extends Cancellable {
  /** Called before a wait, with its reason and its length in milliseconds. */
  readonly onWait?: ((why: string, ms: number) => void) | undefined
}

/** Seconds: GitHub's primary rate limit starts again every hour. */
const MAX_WAIT = 3600
/** Attempts of a call that the code host fails to answer. */
const MAX_ATTEMPTS = 4

/**
 * Makes a call that may be repeated: after a rate limit, once it is over, and after a failure of the code host (5xx, no answer),
 * a few times. @throws as the call does, at last; AbortError when `signal` aborts
 */
export async function patiently<T>(call: () => Promise<T>, options: PatienceOptions = {}): Promise<T> {
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

/** @throws RelayError `unprocessable` if the code host shows programs no log (Gitea). */
export function requireLog({ words: { noLog } }: Pick<CodeHost, 'words'>): void {
  if (noLog)
    throw new RelayError('unprocessable', `There is nothing to catch up from: ${noLog.why}. ${noLog.fix}`)
}
