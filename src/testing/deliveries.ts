import { type Cancellable, deadline } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { formatDuration } from '../base/time.js'
import { labelOf } from '../dispatch/route.js'
import type { Entry, Summary } from '../journal/delivery.js'
import type { Attempt } from '../journal/hand-on.js'
import type { Journal } from '../journal/journal.js'
import { parseMatch } from '../journal/match.js'
import { type Filter, select } from '../journal/select.js'
import { formPayload, isForm } from '../webhook/form.js'
import { indexHeaders } from '../webhook/headers.js'
import { parseJson } from '../webhook/json.js'
import type { Watch } from './watch.js'

/** Which deliveries; everything given must hold. */
export interface DeliveryFilter {
  /** `push`, `issues.opened`, `issues.*`, `*.closed`; of several, any one. Default: every event. */
  readonly event?: string | readonly string[]
  /** `owner/name`, in any case. */
  readonly repo?: string
  /** The code host's id of the delivery. */
  readonly deliveryId?: string
}

export interface WaitOptions extends Cancellable {
  /** How many there must be at least. Default: 1. With 0, those are given that are there now. */
  readonly count?: number
  /** Milliseconds. Default: 4000. */
  readonly timeout?: number
}

/** A delivery that the relay took in, and what became of it. */
export interface TestDelivery extends Entry {
  /** The JSON that it carries. */
  readonly payload: unknown
  /** Every try to hand it on so far, in the order made. */
  readonly attempts: readonly TestAttempt[]
}

export interface TestAttempt {
  /** The address or command, with its match where that is not `*`. */
  readonly target: string
  readonly outcome: Attempt['outcome']
  /** The HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** The start of the target's answer or output, at most 4096 bytes. */
  readonly answer: string
  /** Why, where the status does not tell. */
  readonly error: string | null
}

/** Less than the 5 s that test frameworks give a test, so that this error is seen, and not theirs. */
const TIME_LIMIT_MS = 4000
/** Of what did arrive, so many are named. */
const NAMED = 10

/**
 * Waits until enough deliveries that pass are in the journal and each was tried at every target it is meant for.
 * @throws RelayError `timed_out` naming what did arrive, `usage` for an event that is none, `cancelled` when the relay is
 * stopped meanwhile; the signal's reason.
 */
export async function waitForDeliveries(
  journal: Journal,
  watch: Watch,
  wanted: DeliveryFilter,
  { count = 1, timeout = TIME_LIMIT_MS, signal }: WaitOptions,
): Promise<TestDelivery[]> {
  const events = [wanted.event ?? []].flat().map(parseMatch)
  const filter: Filter = { events, ...(wanted.repo !== undefined && { repo: wanted.repo }) }
  const limited = deadline(timeout, signal)
  for (;;) {
    const found = [...matching(journal, filter, wanted.deliveryId)].toReversed()
    const ready = found.length >= count && found.every((each) => untried(each, watch).length === 0)
    if (ready || count === 0) return found.flatMap(({ n }) => describe(journal, n))
    await watch.next(limited).catch((error: unknown) => {
      signal?.throwIfAborted()
      if (!limited.aborted) throw error
      throw late(journal, watch, wanted, { count, timeout, found: found.length })
    })
  }
}

/** Newest first. An id is looked for no further than it takes to find it. */
function* matching(journal: Journal, filter: Filter, id: string | undefined): Generator<Summary> {
  for (const each of select(journal, filter)) {
    if (id !== undefined && each.deliveryId !== id) continue
    yield each
    if (id !== undefined) return
  }
}

function untried({ n, handOns }: Summary, watch: Watch): string[] {
  const waiting = Object.entries(handOns).filter(([, { state }]) => state === 'waiting')
  return waiting.map(([target]) => target).filter((target) => !watch.isTried(n, target))
}

function describe(journal: Journal, n: number): TestDelivery[] {
  const entry = journal.read(n)
  if (!entry) return []
  const attempts = journal.attempts(n).map(({ target, outcome, status, answer, error }): TestAttempt => ({
    target: labelOf(target),
    outcome,
    status,
    answer: Buffer.from(answer).toString(),
    error,
  }))
  return [{ ...entry, payload: payloadOf(entry), attempts }]
}

function payloadOf({ headers, body }: Entry): unknown {
  const json = isForm(indexHeaders(headers)) ? formPayload(body) : body
  return json && parseJson(json)
}

interface Late {
  readonly count: number
  readonly timeout: number
  readonly found: number
}

function late(
  journal: Journal,
  watch: Watch,
  { event = [], repo, deliveryId }: DeliveryFilter,
  { count, timeout, found }: Late,
): RelayError {
  const what = [[event].flat().join(' or '), repo, deliveryId].filter(Boolean).join(', ')
  const all = [...journal.summaries()]
  const named = all.slice(-NAMED).map((each) => nameOf(each, watch))
  const arrived = named.length > 0 ? `There: ${named.join('; ')}` : 'There is none at all'
  const wanted = what ? ` (${what})` : ''
  return new RelayError(
    'timed_out',
    `Waited ${formatDuration(timeout)} for ${count} handed on${wanted}, got ${found}. ${arrived}`,
  )
}

/** `#1 issues.opened octo/demo#1, not yet tried at http://localhost:3000`. */
function nameOf(summary: Summary, watch: Watch): string {
  const { n, event, action, repo, number } = summary
  const place = repo === null ? '' : ` ${repo}${number === null ? '' : `#${number}`}`
  const left = untried(summary, watch).map(labelOf)
  const rest = left.length > 0 ? `, not yet answered by ${left.join(', ')}` : ''
  return `#${n} ${event}${action === null ? '' : `.${action}`}${place}${rest}`
}
