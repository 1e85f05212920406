import type { DeliveryLine, DeliveryPage, ListQuery, LiveEvent, PageEnd } from '../api.js'
import { isFiltered } from './address.js'

/**
 * Maximum of lines in the list: Chromium draws no element higher than 33.5 million pixels, and memory is finite. A
 * longer list continues on another page.
 */
export const MAX_LINES = 20_000

/**
 * Length of the list while it follows new deliveries: as far as a person looks back. Older lines are loaded again when
 * scrolled to.
 */
const MAX_FOLLOWED = 1000

/** A page of the list that is being read. */
export interface Reading {
  /** Number of the request. */
  readonly id: number
  /**
   * `open`: the first page of a new list. `again`: the first page of the list that is shown. `more`: the page after the
   * last line.
   */
  readonly kind: 'open' | 'again' | 'more'
  readonly query: ListQuery
}

/** State of the list of deliveries. */
export interface ListState {
  readonly query: ListQuery
  /** Lines without duplicates, newest first. */
  readonly lines: readonly DeliveryLine[]
  /** End of the last page that was read: where the next one begins. */
  readonly end: PageEnd
  readonly hasSources: boolean
  readonly status: 'loading' | 'ready' | 'failed' | 'refused'
  /** Reason why the list could not be read. */
  readonly problem: string
  /** Number of deliveries that arrived while the user is scrolled away from the top. */
  readonly missed: number
  /** Deliveries with a larger number have just arrived. */
  readonly freshAfter: number
  /** Number of the newest delivery, in the list or missed. */
  readonly newest: number
  /** Upper end of the range down to `end` that was searched for these filters; 0 if none was. */
  readonly searchedFrom: number
  readonly isAtTop: boolean
  /** Request that is waited for. */
  readonly reading: Reading | null
  /** Next read after that: the end came into view, or the user continues a stopped search. */
  readonly wanted: 'nothing' | 'more' | 'search'
  /**
   * True if the first page should be read again soon: only the instance knows which deliveries pass the filters, or
   * were missed.
   */
  readonly isStale: boolean
  /**
   * True if lines below the first page may have changed unseen. They are read again at the top, except for a search,
   * since that takes time.
   */
  readonly isBehind: boolean
  /** Number of pages that were requested. */
  readonly asked: number
}

export const EMPTY_LIST: ListState = {
  query: {},
  lines: [],
  end: { next: null },
  hasSources: false,
  status: 'loading',
  problem: '',
  missed: 0,
  freshAfter: Infinity,
  newest: 0,
  searchedFrom: 0,
  isAtTop: true,
  reading: null,
  wanted: 'nothing',
  isStale: false,
  isBehind: false,
  asked: 0,
}

export type ListEvent =
  | Extract<LiveEvent, { readonly type: 'lines' | 'removed' | 'stale' }>
  /** The user opens a list and sees its first lines. */
  | { readonly type: 'opened'; readonly query: ListQuery }
  /** The user retries a list that could not be read. */
  | { readonly type: 'retried' }
  /** The last lines come into view, or the user continues a stopped search. */
  | { readonly type: 'more'; readonly isAsked: boolean }
  | { readonly type: 'scrolled'; readonly isAtTop: boolean }
  /** Some time has passed since the list became stale. */
  | { readonly type: 'due' }
  | { readonly type: 'read'; readonly id: number; readonly page: DeliveryPage }
  /** `isRefused`: the filters are invalid. */
  | { readonly type: 'failed'; readonly id: number; readonly problem: string; readonly isRefused: boolean }

/** Returns the list after an event. A response that is no longer waited for changes nothing. */
export function reduce(state: ListState, event: ListEvent): ListState {
  switch (event.type) {
    case 'opened':
      return open({ ...state, isAtTop: true }, event.query)
    case 'retried':
      return open(state, state.query)
    case 'more':
      return readMore(state, event.isAsked)
    case 'scrolled':
      return scroll(state, event.isAtTop)
    case 'stale':
      return { ...state, isStale: true }
    case 'due':
      return state.reading ? state : ask({ ...state, isStale: false }, 'again')
    case 'lines':
      return mergeLines(state, event.lines)
    case 'removed':
      return remove(state, event.below)
    case 'read':
      return state.reading?.id === event.id ? applyPage(state, state.reading, event.page) : state
    case 'failed':
    default:
      return state.reading?.id === event.id ? fail(state, event) : state
  }
}

function ask(state: ListState, kind: Reading['kind'], query: ListQuery = state.query): ListState {
  const id = state.asked + 1
  return { ...state, asked: id, reading: { id, kind, query } }
}

/** Starts reading a list. The old lines stay until the first page arrives. */
function open(state: ListState, query: ListQuery): ListState {
  return ask(
    { ...state, query, status: 'loading', searchedFrom: 0, wanted: 'nothing', isStale: false },
    'open',
  )
}

/** Reads the next page, unless the list is at its end or its limit. A stopped search continues only when asked. */
function readMore(state: ListState, isAsked: boolean): ListState {
  if (state.reading) return { ...state, wanted: isAsked || state.wanted === 'search' ? 'search' : 'more' }
  const { end, lines, query } = state
  const before = end.next ?? (isAsked ? end.stopped?.before : undefined)
  if (before === undefined || lines.length >= MAX_LINES) return state
  return ask(state, 'more', { ...query, before: String(before) })
}

function scroll(state: ListState, isAtTop: boolean): ListState {
  const { missed, isBehind, reading, query } = state
  const next = isAtTop === state.isAtTop ? state : { ...state, isAtTop }
  return isAtTop && (missed > 0 || isBehind) && reading?.kind !== 'open' ? open(next, query) : next
}

/** Replaces changed lines. New ones are added at the top, or counted while the user is scrolled away from it. */
function mergeLines(state: ListState, reported: readonly DeliveryLine[]): ListState {
  const { query, newest, reading } = state
  const changed = new Map(reported.map((line) => [line.n, line]))
  const isShown = state.lines.some(({ n }) => changed.has(n))
  const lines = isShown ? state.lines.map((line) => changed.get(line.n) ?? line) : state.lines
  // Only the instance knows which deliveries pass the filters, and a page that is being read may be older than these
  // lines, or newer.
  const isStale = state.isStale || reading !== null || isFiltered(query) || hasGap(state, reported)
  const next = { ...state, lines, isStale }
  // New deliveries do not belong on a page that begins further back.
  if (query.before || isFiltered(query)) return next
  const come = [...changed.values()].filter(({ n }) => n > newest).toSorted((one, other) => other.n - one.n)
  if (come.length === 0) return next
  const arrived = { ...next, newest: come[0]?.n ?? newest }
  if (!state.isAtTop || state.missed > 0) return { ...arrived, missed: state.missed + come.length }
  const all = [...come, ...lines]
  const freshAfter = lines[0]?.n ?? 0
  if (all.length <= 2 * MAX_FOLLOWED) return { ...arrived, lines: all, freshAfter }
  const followed = all.slice(0, MAX_FOLLOWED)
  return { ...arrived, lines: followed, freshAfter, end: { next: followed.at(-1)?.n ?? null } }
}

/** True if a reported delivery is missing in the list. */
function hasGap({ lines, newest, end, query }: ListState, reported: readonly DeliveryLine[]): boolean {
  const above = query.before ? Number(query.before) : (lines[0]?.n ?? newest + 1)
  const numbers = new Set(lines.map(({ n }) => n))
  return reported.some(({ n }) => n < above && n >= endOf(end) && !numbers.has(n))
}

/** Removes the deliveries below a number, after retention did. */
function remove(state: ListState, below: number): ListState {
  const lines = state.lines.filter(({ n }) => n >= below)
  const isStale = state.isStale || state.reading !== null
  return lines.length === state.lines.length
    ? { ...state, isStale }
    : { ...state, isStale, lines, end: { next: null } }
}

function applyPage(state: ListState, { kind, query }: Reading, page: DeliveryPage): ListState {
  const { wanted } = state
  const read: ListState = { ...state, status: 'ready', reading: null, wanted: 'nothing' }
  if (kind === 'open') return { ...begin(read, page), freshAfter: Infinity }
  const next = kind === 'more' ? append(read, query, page) : refresh(read, page)
  return wanted === 'nothing' ? next : readMore(next, wanted === 'search')
}

/** Shows the first page alone. */
function begin(state: ListState, page: DeliveryPage): ListState {
  const { deliveries } = page
  return {
    ...state,
    lines: deliveries,
    end: page,
    hasSources: page.hasSources ?? deliveries.some(({ source }) => source !== undefined),
    newest: deliveries[0]?.n ?? 0,
    searchedFrom: topOf(page),
    missed: 0,
    isBehind: false,
  }
}

function append(state: ListState, { before }: ListQuery, page: DeliveryPage): ListState {
  const { lines, end } = state
  // The end of the list has moved meanwhile, so this page does not follow it.
  if (before !== String(end.next ?? end.stopped?.before)) return state
  const { stopped } = page
  const read = (end.stopped?.read ?? 0) + (stopped?.read ?? 0)
  return {
    ...state,
    lines: [...lines, ...page.deliveries],
    end: stopped ? { ...page, stopped: { ...stopped, read } } : page,
  }
}

/** Merges the first page into the list that is shown. */
function refresh(state: ListState, page: DeliveryPage): ListState {
  const { lines, query, searchedFrom, missed } = state
  const { deliveries } = page
  const first = lines[0]?.n ?? 0
  const come = deliveries.filter(({ n }) => n > first).length
  const end = endOf(page)
  if (!state.isAtTop) {
    // Lines below the page stay, so that nothing moves under the user.
    const oldest = deliveries.at(-1)?.n ?? 0
    const changed = new Map(deliveries.map((line) => [line.n, line]))
    return {
      ...state,
      lines: lines.flatMap((line) => (line.n < oldest ? [line] : (changed.get(line.n) ?? []))),
      newest: Math.max(state.newest, deliveries[0]?.n ?? 0),
      // More may have arrived than fit into a page.
      missed: come < deliveries.length ? come : Math.max(missed, come),
      isBehind: !query.text,
    }
  }
  const next = come > 0 ? { ...state, freshAfter: first } : state
  // Results of a search further back stay, since it took time and was asked for.
  const isDeeper = query.text && end <= searchedFrom && end > endOf(state.end)
  if (!isDeeper) return begin(next, page)
  const found = [...deliveries, ...lines.filter(({ n }) => n < end)]
  return { ...next, lines: found, newest: deliveries[0]?.n ?? 0, searchedFrom: topOf(page), missed: 0 }
}

function fail(state: ListState, { problem, isRefused }: Extract<ListEvent, { type: 'failed' }>): ListState {
  const failed: ListState = { ...state, reading: null, wanted: 'nothing', problem, status: 'failed' }
  // Lines of other filters are removed, since they would look like results.
  return isRefused
    ? { ...failed, status: 'refused', lines: [], end: { next: null }, searchedFrom: 0 }
    : failed
}

/** Number from which a first page was searched. */
function topOf({ stopped, deliveries }: DeliveryPage): number {
  return stopped ? stopped.before + stopped.read : (deliveries[0]?.n ?? 0)
}

/** Number down to which a page was searched. */
function endOf({ next, stopped }: PageEnd): number {
  return next ?? stopped?.before ?? 0
}
