import { type Cancellable, deadline } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { formatDuration } from '../base/time.js'
import { labelOf } from '../dispatch/routes.js'
import type { Entry, Summary } from '../journal/types.js'
import type { Attempt } from '../journal/types.js'
import type { Journal } from '../journal/journal.js'
import { parseMatch } from '../journal/filter.js'
import { jsonOf } from '../journal/payload.js'
import type { Filter } from '../journal/filter.js'
import { parseJson } from '../json/parse.js'
import type { Watch } from './watch.js'

/** Filter for deliveries. Every given field must match. */
export interface DeliveryFilter {
  /** `push`, `issues.opened`, `issues.*`, `*.closed`; one of a list must match. Default: every event. */
  readonly event?: string | readonly string[]
  /** `owner/name`, case ignored. */
  readonly repo?: string
  /** Delivery id of the code host. */
  readonly deliveryId?: string
}

export interface WaitOptions extends Cancellable {
  /** Minimum number of deliveries. Default: 1. With 0, returns those present now. */
  readonly count?: number
  /** Milliseconds. Default: 4000. */
  readonly timeout?: number
}

/** A delivery that the relay accepted, and its attempts. */
export interface TestDelivery extends Entry {
  /** Parsed JSON of the delivery. */
  readonly payload: unknown
  /** Every attempt so far, oldest first. */
  readonly attempts: readonly TestAttempt[]
}

export interface TestAttempt {
  /** URL or command, with its match unless that is `*`. */
  readonly target: string
  readonly outcome: Attempt['outcome']
  /** HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** Start of the target's response or output, at most 4096 bytes. */
  readonly answer: string
  /** Reason of a failure without a status. */
  readonly error: string | null
}

/** Shorter than the usual 5 s of test frameworks, so that this error appears and not theirs. */
const TIMEOUT_MS = 4000
/** Number of deliveries listed in the error. */
const MAX_LISTED = 10

/**
 * Waits until the journal has enough matching deliveries and each was attempted at all its targets.
 * @throws RelayError `timed_out` with a list of what did arrive, `usage` for an invalid event, `cancelled` when the relay
 * stops meanwhile; the signal's reason.
 */
export async function waitForDeliveries(
  journal: Journal,
  watch: Watch,
  wanted: DeliveryFilter,
  { count = 1, timeout = TIMEOUT_MS, signal }: WaitOptions,
): Promise<TestDelivery[]> {
  const events = [wanted.event ?? []].flat().map(parseMatch)
  const filter: Filter = { events, ...(wanted.repo !== undefined && { repo: wanted.repo }) }
  const limited = deadline(timeout, signal)
  for (;;) {
    // Before the journal is read, so that no change is missed.
    const changed = watch.next(limited)
    changed.catch(() => {})
    await journal.flush()
    const found = await matching(journal, filter, wanted.deliveryId)
    const ready = found.length >= count && found.every((each) => notAttempted(each, watch).length === 0)
    if (ready || count === 0) return describe(journal, found)
    await changed.catch(async (error: unknown) => {
      signal?.throwIfAborted()
      if (!limited.aborted) throw error
      throw await timedOut(journal, watch, wanted, { count, timeout, found: found.length })
    })
  }
}

/** Matching deliveries, oldest first. With an id, the search stops at the newest match. */
async function matching(journal: Journal, filter: Filter, id: string | undefined): Promise<Summary[]> {
  const found: Summary[] = []
  for await (const each of journal.select(filter)) {
    if (id !== undefined && each.deliveryId !== id) continue
    found.push(each)
    if (id !== undefined) break
  }
  return found.toReversed()
}

function notAttempted({ n, forwards }: Summary, watch: Watch): string[] {
  const waiting = Object.entries(forwards).filter(([, { status: state }]) => state === 'waiting')
  return waiting.map(([target]) => target).filter((target) => !watch.isAttempted(n, target))
}

/** Leaves out deliveries that retention has removed meanwhile. */
async function describe(journal: Journal, found: readonly Summary[]): Promise<TestDelivery[]> {
  const deliveries: TestDelivery[] = []
  for (const { n } of found) {
    const [entry, attempts] = await Promise.all([journal.read(n), journal.attempts(n)])
    if (entry) deliveries.push({ ...entry, payload: payloadOf(entry), attempts: attempts.map(toTestAttempt) })
  }
  return deliveries
}

function toTestAttempt({ target, outcome, status, answer, error }: Attempt): TestAttempt {
  return { target: labelOf(target), outcome, status, answer: Buffer.from(answer).toString(), error }
}

function payloadOf(entry: Entry): unknown {
  const json = jsonOf(entry)
  return json && parseJson(json)
}

interface Wait {
  readonly count: number
  readonly timeout: number
  readonly found: number
}

async function timedOut(
  journal: Journal,
  watch: Watch,
  { event = [], repo, deliveryId }: DeliveryFilter,
  { count, timeout, found }: Wait,
): Promise<RelayError> {
  const filter = [[event].flat().join(' or '), repo, deliveryId].filter(Boolean).join(', ')
  const newest = await matching(journal, { last: MAX_LISTED }, undefined)
  const listed = newest.map((each) => nameOf(each, watch))
  const arrived = listed.length > 0 ? `Received: ${listed.join('; ')}` : 'Received: none'
  const wanted = filter ? ` (${filter})` : ''
  return new RelayError(
    'timed_out',
    `Waited ${formatDuration(timeout)} for ${count} forwarded${wanted}, got ${found}. ${arrived}`,
  )
}

/** Formats a delivery: `#1 issues.opened octo/demo#1, not yet answered by http://localhost:3000`. */
function nameOf(summary: Summary, watch: Watch): string {
  const { n, event, action, repo, number } = summary
  const place = repo === null ? '' : ` ${repo}${number === null ? '' : `#${number}`}`
  const pending = notAttempted(summary, watch).map(labelOf)
  const rest = pending.length > 0 ? `, not yet answered by ${pending.join(', ')}` : ''
  return `#${n} ${event}${action === null ? '' : `.${action}`}${place}${rest}`
}
