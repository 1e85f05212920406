import { type Cancellable, sleep, probeDelay } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { LIMITS, type Limits } from '../base/seams.js'
import type { Journal } from '../journal/journal.js'
import { exclusively } from '../store/exclusively.js'
import type { Store } from '../store/kv.js'
import type { CodeHost, DeliveryLog, DeliveryPage, HookDelivery } from './host.js'

/** The id in a log up to which every delivery has arrived or was sent again. Retention may have removed them since. */
export interface LogPlace {
  /** -1 where there was none. */
  get(): Promise<bigint>
  put(id: bigint): Promise<void>
}

export interface CatchUpOptions extends PatienceOptions {
  readonly log: DeliveryLog
  readonly journal: Pick<Journal, 'known' | 'keptSince'>
  /** Milliseconds since 1970-01-01 UTC: what was first sent before is left out. */
  readonly since: number
  readonly limits?: Pick<Limits, 'arrival' | 'logLook'> | undefined
  /** How far earlier ones came. Default: nowhere. */
  readonly place?: LogPlace | undefined
  /** Called with what is missing, before the first is asked for. */
  readonly onMissing?: ((missing: readonly HookDelivery[]) => void) | undefined
  /** Called after each of them, whether it arrived or not, with how many that were. */
  readonly onDone?: ((count: number) => void) | undefined
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

/** What a log has. */
export interface Missing {
  readonly deliveries: readonly HookDelivery[]
  /** By GUID, the id of its oldest entry. */
  readonly oldest: ReadonlyMap<string, bigint>
  /** The largest id of the log; 0 if it is empty. */
  readonly newest: bigint
}

/** Far more pages of 100 than a hook's log of 3 days has. */
const MAX_PAGES = 1000

/**
 * What the log has and the journal neither has nor had, oldest first, once for each GUID however often it was sent. Each entry is the
 * newest of its GUID, but is ordered by the oldest, which is when the event happened. Stops reading at the first page that is all before
 * `since` or the place, and after 1000 pages. Without pings: they report nothing that happened, and equal ones that come through a
 * tunnel are one entry, under the id of the first.
 * @throws RelayError as the calls do
 */
export async function findMissed(options: CatchUpOptions): Promise<Missing> {
  const { log, journal, place } = options
  // What retention has removed was here: it is not missing.
  const since = Math.max(options.since, await journal.keptSince())
  const after = (await place?.get()) ?? -1n
  const missing = new Map<string, HookDelivery>()
  const oldest = new Map<string, bigint>()
  let newest = 0n
  let cursor: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const from = cursor
    const { deliveries, next } = await patiently(() => log.page(from), options)
    const [first] = deliveries
    if (first && BigInt(first.id) > newest) newest = BigInt(first.id)
    const recent = deliveries.filter(({ deliveredAt, id }) => deliveredAt >= since && BigInt(id) > after)
    const known = await journal.known([...new Set(recent.map(({ guid }) => guid))])
    for (const delivery of recent.filter(({ guid, event }) => !known.has(guid) && event !== 'ping')) {
      const latest = missing.get(delivery.guid) ?? delivery
      // A map keeps the place of a key that it has: adding it again moves it to that of its oldest entry.
      missing.delete(delivery.guid)
      missing.set(delivery.guid, latest)
      oldest.set(delivery.guid, BigInt(delivery.id))
    }
    cursor = next
    if (cursor === undefined || recent.length === 0) break
  }
  return { deliveries: [...missing.values()].toReversed(), oldest, newest }
}

/** Deliveries in a row that do not arrive before the rest is given up: the address does not lead here. */
const MAX_FAILED_IN_A_ROW = 5
const GIVEN_UP = `not asked for, since ${MAX_FAILED_IN_A_ROW} in a row did not arrive`

/**
 * Asks the code host for what is missing, oldest first, each once the one before has arrived through the ordinary intake of the
 * running instance. Waits for rate limits.
 * @throws RelayError as the calls do, when the log cannot be read; AbortError when `signal` aborts
 */
export async function catchUp(options: CatchUpOptions): Promise<CaughtUp> {
  const { deliveries: missing, oldest, newest } = await findMissed(options)
  options.onMissing?.(missing)
  const failed: Failed[] = []
  /** The largest id below which nothing is missing. */
  let reached = newest
  let inARow = 0
  for (const [i, delivery] of missing.entries()) {
    const outcome = inARow < MAX_FAILED_IN_A_ROW ? await fetchOne(delivery, options) : { why: GIVEN_UP }
    options.onDone?.(i + 1)
    if (!outcome) inARow = 0
    else failed.push({ delivery, why: outcome.why })
    // What the code host no longer has says nothing about the next, and is not asked for again.
    if (!outcome || outcome.isGone) continue
    inARow++
    const before = (oldest.get(delivery.guid) ?? 0n) - 1n
    if (before < reached) reached = before
  }
  if (reached > 0n) await options.place?.put(reached)
  return { missing: missing.length, arrived: missing.length - failed.length, failed }
}

/** Why a delivery did not arrive, and whether the code host no longer has it. */
interface NotArrived {
  readonly why: string
  readonly isGone?: boolean
}

/** Undefined if it arrived. */
async function fetchOne(delivery: HookDelivery, options: CatchUpOptions): Promise<NotArrived | undefined> {
  // It may have come meanwhile.
  if (await hasArrived(delivery, options)) return undefined
  try {
    // To ask twice does no harm: the second is a duplicate.
    await patiently(() => options.log.redeliver(delivery.id), options)
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind === 'cancelled') throw error
    if (await hasArrived(delivery, options)) return undefined
    return { why: `it was not sent again: ${error.message}`, isGone: error.kind === 'not_found' }
  }
  const why = await awaitArrival(delivery, options)
  return why === undefined ? undefined : { why }
}

async function hasArrived({ guid }: HookDelivery, { journal }: CatchUpOptions): Promise<boolean> {
  return (await journal.known([guid])).size > 0
}

/** First look into the journal, and the longest time between two, in milliseconds. */
const FIRST_LOOK_MS = 5
const MAX_LOOK_MS = 250

/** Why it does not arrive; undefined once it has. Looks into the log after 1, 2, 4 s whether the redelivery failed. */
async function awaitArrival(delivery: HookDelivery, options: CatchUpOptions): Promise<string | undefined> {
  const { log, signal, limits = LIMITS } = options
  const began = performance.now()
  let logLook = limits.logLook
  for (let look = FIRST_LOOK_MS; ; look = Math.min(look * 2, MAX_LOOK_MS)) {
    if (await hasArrived(delivery, options)) return undefined
    const elapsed = performance.now() - began
    if (elapsed >= limits.arrival) return `it did not arrive within ${limits.arrival / 1000} s`
    if (elapsed >= logLook) {
      logLook *= 2
      // A log that cannot be read now says nothing: the delivery may still arrive.
      const page = await patiently(() => log.page(), options).catch(ignoreFailure)
      const why = page && failureIn(page, delivery)
      if (why !== undefined && !(await hasArrived(delivery, options))) return why
    }
    await sleep(look, { signal })
  }
}

function ignoreFailure(error: unknown): undefined {
  if (toRelayError(error).kind === 'cancelled') throw error
}

/** How the redelivery failed, if the log has it and it did. */
function failureIn({ deliveries }: DeliveryPage, { guid, id }: HookDelivery): string | undefined {
  const newest = deliveries.find((entry) => entry.guid === guid)
  if (!newest || newest.id === id || (newest.statusCode >= 200 && newest.statusCode < 300)) return undefined
  return `the redelivery failed too: ${newest.status} (${newest.statusCode})`
}

export interface PatienceOptions extends Cancellable {
  /** Called before a wait, with its reason and its length in milliseconds. */
  readonly onWait?: ((why: string, ms: number) => void) | undefined
}

/** Seconds: GitHub's primary rate limit starts again every hour. */
const MAX_WAIT = 3600
/** Waits for a rate limit in a row. */
const MAX_LIMITS = 10
/** Attempts of a call that the code host fails to answer. */
const MAX_ATTEMPTS = 4

/**
 * Makes a call that may be repeated: after a rate limit, once it is over, and after a failure of the code host (5xx, no answer),
 * a few times. @throws as the call does, at last; AbortError when `signal` aborts
 */
export async function patiently<T>(call: () => Promise<T>, options: PatienceOptions = {}): Promise<T> {
  for (let limits = 0, failures = 0; ;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof RelayError)) throw error
      const wait = waitAfter(error, limits, failures)
      if (wait === undefined) throw error
      if (error.kind === 'rate_limited') limits++
      else failures++
      options.onWait?.(error.message, wait)
      await sleep(wait, options)
    }
  }
}

/** Milliseconds until the call is made again; undefined for never. */
function waitAfter(
  { kind, retryAfter = 60 }: RelayError,
  limits: number,
  failures: number,
): number | undefined {
  if (kind === 'rate_limited')
    return retryAfter <= MAX_WAIT && limits < MAX_LIMITS ? retryAfter * 1000 : undefined
  if (kind !== 'provider_failed' && kind !== 'provider_timeout') return undefined
  return failures + 1 < MAX_ATTEMPTS ? probeDelay(failures + 1, Math.random) : undefined
}

/** The log of one hook, by the names under which the profile and people know it. */
export interface NamedLog {
  readonly store: Pick<Store, 'get' | 'put' | 'update'>
  readonly host: Pick<CodeHost, 'origin'>
  /** Whose log it is, also in messages: `octo/demo`. */
  readonly name: string
}

/**
 * Catches up with one log while no other process of the profile does, so that each delivery is asked for once. Another process
 * waits, and then finds nothing missing. `onBusy`: called before the wait, with what to say about it.
 * @throws as `work` does; RelayError `storage`; AbortError when `signal` aborts
 */
export function oneCatchUp<T>(
  { store, host, name }: NamedLog,
  work: () => Promise<T>,
  { onBusy, signal }: Cancellable & { readonly onBusy: (text: string) => void },
): Promise<T> {
  const busy = (pid: number | undefined): void => {
    const who = pid === undefined ? 'Another process' : `Process ${pid}`
    onBusy(`${who} is catching up with ${name} already. Waiting until it has finished`)
  }
  const key = `catch-up-lock:${host.origin} ${name}`.toLowerCase()
  return exclusively(store, key, { what: `catching up with ${name}`, onBusy: busy, signal }, work)
}

/** How far the profile has caught up with a log, as a record of its store. */
export function placeIn({ store, host, name }: NamedLog): LogPlace {
  const key = `catch-up:${host.origin} ${name}`.toLowerCase()
  return {
    async get() {
      const id = await store.get(key)
      return typeof id === 'string' && /^\d{1,20}$/.test(id) ? BigInt(id) : -1n
    },
    put: (id) => store.put(key, String(id)),
  }
}

/** @throws RelayError `unprocessable` if the code host shows programs no log (Gitea). */
export function requireLog({ words: { noLog } }: Pick<CodeHost, 'words'>): void {
  if (noLog)
    throw new RelayError('unprocessable', `There is nothing to catch up from: ${noLog.why}. ${noLog.fix}`)
}
