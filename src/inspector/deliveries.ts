import { shownSource } from '../base/source-names.js'
import { isUtf8 } from 'node:buffer'
import { isFormBody } from '../http/forms.js'
import { RelayError } from '../base/errors.js'
import { senderOf } from '../senders/senders.js'
import { formatStatus, labelOf, routesFor } from '../dispatch/routes.js'
import { waitReason } from '../dispatch/waiting.js'
import { type Filter, type FilterText, parseFilter } from '../journal/filter.js'
import type { Journal } from '../journal/journal.js'
import { bodyFormat, readContent } from '../senders/content.js'
import {
  type Attempt,
  editedFrom,
  type Entry,
  type Forward,
  ignoredText,
  type LastAttempt,
  subjectOf,
  type Summary,
} from '../journal/types.js'
import type {
  AttemptLine,
  DeliveryDetail,
  DeliveryHead,
  DeliveryLine,
  DeliveryPage,
  ListQuery,
  TargetDetail,
  TargetMark,
} from './api.js'
import type { InspectorParts } from './parts.js'
import { describeProof, verdictOf } from './proof.js'
import { publicId, targetLabel, targetNames, type Forwarded } from './state.js'

const DEFAULT_LIMIT = 50
/** Maximum page size: more rows than any window shows, and a small response. */
const MAX_LIMIT = 200
/** Time limit of a search without an index: as long as a person waits. The page can then continue it. Milliseconds. */
const SEARCH_LIMIT_MS = 1500

/**
 * Reads one page of the list. A search that reaches its time limit stops, and returns where to continue.
 * @throws RelayError `usage` that names the part of the query
 */
export async function listDeliveries(parts: InspectorParts, query: ListQuery): Promise<DeliveryPage> {
  const limit = wholeNumber('limit', query.limit, MAX_LIMIT) ?? DEFAULT_LIMIT
  const before = wholeNumber('before', query.before, Number.MAX_SAFE_INTEGER)
  const filter = { ...readFilter(query, parts.clock()), ...(before !== undefined && { before }) }
  const end = performance.now() + SEARCH_LIMIT_MS
  const found: Summary[] = []
  let stopped: number | undefined
  for await (const step of parts.journal.walk({ ...filter, last: limit })) {
    found.push(...step.found)
    if (found.length >= limit || performance.now() < end || step.before <= 1) continue
    stopped = step.before
    break
  }
  return {
    deliveries: await linesOf(parts, found),
    next: found.length < limit ? null : (found.at(-1)?.n ?? null),
    ...([...parts.sources.values()].some(({ name }) => shownSource(name) !== undefined) && {
      hasSources: true,
    }),
    ...(stopped !== undefined && {
      stopped: { read: (before ?? (await parts.journal.newest()) + 1) - stopped, before: stopped },
    }),
  }
}

/** Parses the filters of a query. `failed` also finds deliveries that needed another attempt. */
function readFilter(query: ListQuery, now: number): Filter {
  const given: FilterText = {
    event: query.event ? query.event.split(',').map((each) => each.trim()) : undefined,
    repo: query.repo || undefined,
    source: query.source || undefined,
    since: query.since || undefined,
    until: query.until || undefined,
    status: query.status || undefined,
    text: query.text || undefined,
  }
  const filter = parseFilter(given, now, (part) => part)
  return filter.status === 'failed' ? { ...filter, status: 'failed attempt' } : filter
}

function wholeNumber(name: string, text: string | undefined, max: number): number | undefined {
  if (text === undefined || text === '') return undefined
  const value = /^\d{1,16}$/.test(text) ? Number(text) : 0
  if (value >= 1 && value <= max) return value
  throw new RelayError('usage', `${name}: must be a whole number from 1 to ${max}`)
}

/** Makes the lines of a list, in the order of the entries. */
export async function linesOf(
  parts: InspectorParts,
  summaries: readonly Summary[],
): Promise<readonly DeliveryLine[]> {
  const attempted = summaries.filter(({ forwards }) => Object.keys(forwards).length > 0)
  const attempts = await parts.journal.lastAttempts(attempted.map(({ n }) => n))
  const last = new Map(attempts.map((attempt) => [`${attempt.n} ${attempt.target}`, attempt]))
  const mark = marker(parts, summaries)
  return summaries.map((summary) => ({
    ...headOf(summary),
    targets: Object.entries(summary.forwards).map(([id, forward]) =>
      mark(summary.n, id, forward, last.get(`${summary.n} ${id}`)),
    ),
  }))
}

function headOf(summary: Summary): DeliveryHead {
  const { n, receivedAt, provider, event, action, repo, size, duplicates, restored, ignoredBy } = summary
  const from = editedFrom(summary)
  return {
    n,
    receivedAt,
    event,
    action,
    repo,
    ...(shownSource(provider) !== undefined && { source: provider }),
    ...(summary.verifiedBy === 'none' && { unproved: true }),
    subject: subjectOf(summary),
    size,
    duplicates,
    ...(ignoredBy !== undefined && { ignored: ignoredText(ignoredBy) }),
    ...(restored && { viaTunnel: true }),
    ...(from !== undefined && { editedFrom: from }),
  }
}

/** Returns a function that makes the mark of a target from its last attempt. */
function marker({ routing, instance, clock }: InspectorParts, summaries: readonly Forwarded[]) {
  const nameOf = targetNames(routing, summaries)
  const targets = new Map(instance.activity().targets.map((target) => [target.id, target]))
  const isDown = (id: string): boolean => !['up', 'elsewhere', undefined].includes(targets.get(id)?.state)
  return (n: number, id: string, forward: Forward, last: LastAttempt | undefined): TargetMark => {
    const { status, tries, reason } = forward
    const waitsFor = waitReason(n, forward, targets.get(id) ?? { state: 'gone' }, clock())
    return {
      name: nameOf(id),
      status,
      // Subtracted, since the journal counts the last failed attempt too.
      tries: last?.outcome === 'retry' ? Math.max(0, tries - 1) : tries,
      ...(isDown(id) && status === 'waiting' && { down: true }),
      ...(waitsFor && { waitsFor }),
      ...(last && last.status !== null && { answer: formatStatus(id, last.status) }),
      ...(last && { ms: last.ms }),
      ...(reason !== undefined && { reason }),
    }
  }
}

/** Returns an entry with its body. @throws RelayError `not_found` if the journal does not have it, or no longer */
export async function readEntry({ journal }: { readonly journal: Journal }, n: number): Promise<Entry> {
  return (await journal.read(n)) ?? missing(journal, n)
}

/** Throws the error of a missing entry. @throws RelayError `not_found` */
async function missing(journal: Journal, n: number): Promise<never> {
  const isOver = n <= (await journal.newest())
  throw new RelayError(
    'not_found',
    isOver ? `#${n} was removed by retention (--keep, --keep-max)` : `There is no #${n}`,
  )
}

/** Describes a delivery without its body. @throws RelayError `not_found` */
export async function describeDelivery(parts: InspectorParts, n: number): Promise<DeliveryDetail> {
  const { journal, routing } = parts
  const entry = await readEntry(parts, n)
  const [[summary], attempts, older, [newer]] = await Promise.all([
    journal.summaries([n]),
    journal.attempts(n),
    numberBefore(journal, n),
    journal.after(n, 1),
  ])
  // The entry was removed between the two reads.
  if (!summary) return missing(journal, n)
  const { provider, deliveryId, hookId, restored, headers, query } = entry
  const nameOf = targetNames(routing, [summary])
  return {
    ...headOf(summary),
    provider,
    deliveryId,
    hookId,
    verdict: verdictOf(summary),
    ...describeProof(entry, parts),
    restored: restored ? { how: restored.how, unproved: restored.unproved === true } : null,
    headers,
    ...(query !== undefined && { query }),
    bodyKind: bodyKind(entry),
    bodyFormat: bodyFormat(entry.body) ?? null,
    targets: targetDetails(parts, summary, attempts),
    routes: routesFor(routing.routes, routing.ignore, entry).map(({ id }) => ({
      id: publicId(id),
      name: nameOf(id),
      label: labelOf(id),
    })),
    older,
    newer: newer?.n ?? null,
  }
}

async function numberBefore(journal: Journal, n: number): Promise<number | null> {
  for await (const summary of journal.select({ before: n, last: 1 })) return summary.n
  return null
}

function targetDetails(
  parts: InspectorParts,
  summary: Summary,
  attempts: readonly Attempt[],
): readonly TargetDetail[] {
  const mark = marker(parts, [summary])
  const { n, forwards } = summary
  const routes = new Map(parts.routing.routes.map((route) => [route.id, route]))
  return Object.entries(forwards).map(([id, forward]) => {
    const own = attempts.filter(({ target }) => target === id)
    const last = own.at(-1)
    const route = routes.get(id)
    return {
      ...mark(n, id, forward, last && { ...last, n }),
      id: route ? publicId(id) : null,
      label: targetLabel(id),
      match: route?.match.text ?? null,
      attempts: own.map(attemptLine),
    }
  })
}

function attemptLine(attempt: Attempt): AttemptLine {
  const { at, target, outcome, status: code, ms, count, error, headers = [] } = attempt
  const status = code === null ? null : formatStatus(target, code)
  const answer = Buffer.from(attempt.answer).toString()
  return { at, outcome, status, ms, count, error, headers, answer, answerIsText: isUtf8(attempt.answer) }
}

/**
 * Determines the kind of a body. If its source sends JSON, what is in no other format is not parsed again, since that
 * takes half a second for 25 MiB. Other sources may send any text.
 */
function bodyKind({ provider, scheme, body }: Entry): DeliveryDetail['bodyKind'] {
  if (!isUtf8(body)) return 'bytes'
  const { events, sendsJson } = senderOf(scheme ?? provider)
  if (events) return isFormBody(body) ? 'form' : 'json'
  if (bodyFormat(body) !== undefined) return 'text'
  if (sendsJson) return isFormBody(body) ? 'form' : 'json'
  const read = readContent(body)
  return read.kind === 'json' ? (read.isForm ? 'form' : 'json') : 'text'
}
