import { type Cancellable, sleep } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { LIMITS, type Limits } from '../base/seams.js'
import type { Journal } from '../journal/journal.js'
import type { DeliveryPage, HookDelivery } from '../providers/hooks.js'
import type { Provider, RepoTarget } from '../providers/provider.js'
import { findMissing, type Missing } from './missing.js'
import { patiently, type PatienceOptions } from './patiently.js'

/** GitHub keeps and redelivers what it sent in the last 3 days (https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks). */
export const LOG_PERIOD_MS = 3 * 86_400_000

/** First look into the journal, and the longest time between two, in milliseconds. */
const FIRST_LOOK_MS = 5
const MAX_LOOK_MS = 250
/** Deliveries in a row that do not arrive before the rest is given up: the address does not lead here. */
const MAX_FAILED_IN_A_ROW = 5

/** The delivery log of one hook, of a repository or an App. */
export interface DeliveryLog {
  page(cursor: string | undefined, options: Cancellable): Promise<DeliveryPage>
  redeliver(id: string, options: Cancellable): Promise<void>
}

/** The id in a log up to which every delivery has arrived or is no longer there. Retention may have removed them since. */
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
 * What the log has and the journal neither has nor had, oldest first. Without pings: they report nothing that happened, and
 * equal ones that come through a tunnel are one entry, under the id of the first.
 * @throws RelayError as the calls do
 */
export async function findMissed(options: CatchUpOptions): Promise<Missing> {
  const { log, journal, since, place } = options
  const missing = await findMissing({
    page: (cursor) => patiently(() => log.page(cursor, options), options),
    unknown: async (guids) => {
      const known = await journal.known(guids)
      return new Set(guids.filter((guid) => !known.has(guid)))
    },
    // What retention has removed was here: it is not missing.
    since: Math.max(since, await journal.keptSince()),
    after: (await place?.get()) ?? -1n,
  })
  return { ...missing, deliveries: missing.deliveries.filter(({ event }) => event !== 'ping') }
}

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
  for (const delivery of missing) {
    const why = inARow < MAX_FAILED_IN_A_ROW ? await fetchOne(delivery, options) : GIVEN_UP
    // That the log has forgotten one says nothing about the next.
    if (why !== FORGOTTEN) inARow = why === undefined ? 0 : inARow + 1
    if (why === undefined) continue
    failed.push({ delivery, why })
    const before = (oldest.get(delivery.guid) ?? 0n) - 1n
    if (why !== FORGOTTEN && before < reached) reached = before
  }
  if (reached > 0n) await options.place?.put(reached)
  return { missing: missing.length, arrived: missing.length - failed.length, failed }
}

const FORGOTTEN = 'the code host has it no longer: its log goes back 3 days'
const GIVEN_UP = `not asked for, since ${MAX_FAILED_IN_A_ROW} in a row did not arrive`

/** Why it did not arrive; undefined if it did. */
async function fetchOne(delivery: HookDelivery, options: CatchUpOptions): Promise<string | undefined> {
  const { log, journal } = options
  // It may have come meanwhile.
  if ((await journal.known([delivery.guid])).size > 0) return undefined
  try {
    // To ask twice does no harm: the second is a duplicate.
    await patiently(() => log.redeliver(delivery.id, options), options)
    return await awaitArrival(delivery, options)
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind === 'cancelled') throw error
    return error.kind === 'not_found' ? FORGOTTEN : error.message
  }
}

async function awaitArrival(
  delivery: HookDelivery,
  { log, journal, signal, onWait, limits = LIMITS }: CatchUpOptions,
): Promise<string | undefined> {
  const began = performance.now()
  const hasArrived = async (): Promise<boolean> => (await journal.known([delivery.guid])).size > 0
  let logLook = limits.logLook
  for (let look = FIRST_LOOK_MS; ; look = Math.min(look * 2, MAX_LOOK_MS)) {
    if (await hasArrived()) return undefined
    const elapsed = performance.now() - began
    if (elapsed >= limits.arrival) return `it did not arrive within ${limits.arrival / 1000} s`
    if (elapsed >= logLook) {
      logLook *= 2
      const page = await patiently(() => log.page(undefined, { signal }), { signal, onWait })
      const why = failureIn(page, delivery)
      if (why !== undefined && !(await hasArrived())) return why
    }
    await sleep(look, { signal })
  }
}

/** How the redelivery failed, if the log has it and it did. */
function failureIn({ deliveries }: DeliveryPage, { guid, id }: HookDelivery): string | undefined {
  const newest = deliveries.find((entry) => entry.guid === guid)
  if (!newest || newest.id === id || (newest.statusCode >= 200 && newest.statusCode < 300)) return undefined
  return `the redelivery failed too: ${newest.status} (${newest.statusCode})`
}

/** The log of a repository's hook; `token` gives a valid one for each call. @throws RelayError `unprocessable` if the code host has none (Gitea) */
export function logOf(
  { name, hooks: { log } }: Pick<Provider, 'name' | 'hooks'>,
  { token, repo }: { readonly token: () => Promise<string>; readonly repo: RepoTarget },
  hookId: number,
): DeliveryLog {
  if (!log)
    throw new RelayError(
      'unprocessable',
      `There is nothing to catch up from: ${name} shows programs no log of what it sent. Redeliver on the hook's page there`,
    )
  return {
    page: async (cursor, options) => log.page(await token(), repo, hookId, cursor, options),
    redeliver: async (id, options) => log.redeliver(await token(), repo, hookId, id, options),
  }
}
