import { formatQuery, isFiltered } from '../../address.js'
import type { DeliveryPage, ListQuery } from '../../api.js'
import {
  firstPage,
  type ListModel,
  MAX_LINES,
  withFirstPage,
  withHeld,
  withLive,
  withNextPage,
  withSkipped,
  withoutRemoved,
} from '../model/list-model.js'
import { createStore } from '../model/store.js'
import { connectionStore, onLive } from './live.js'
import { getJson, messageFrom } from './request.js'

export interface ListState {
  readonly query: ListQuery
  readonly model: ListModel
  readonly status: 'loading' | 'ready' | 'failed'
  readonly error: string | null
}

const EMPTY: ListModel = firstPage({ deliveries: [], next: null })

/** Lines of one request: more than a screen has. */
const PAGE = 100

/** A filtered list is read again at most this often while deliveries arrive. */
const REFRESH_MS = 1000

export const listStore = createStore<ListState>({ query: {}, model: EMPTY, status: 'loading', error: null })

let request = new AbortController()
/** Whether the user looks at the newest, so that what arrives is shown at once. */
let isFollowing = true
let refreshTimer: ReturnType<typeof setTimeout> | undefined

/** Reads the first page of a list. What was shown stays until it is there. */
export async function openList(query: ListQuery): Promise<void> {
  request.abort()
  request = new AbortController()
  listStore.set({ ...listStore.get(), query, status: 'loading', error: null })
  await load(query, null, firstPage)
}

/** Reads the next page, unless one is being read or the list is at its end. */
export async function loadMore(): Promise<void> {
  const { model, query, status } = listStore.get()
  const before = model.next ?? model.stopped?.before
  if (status === 'loading' || before === undefined || isFull(model)) return
  listStore.set({ ...listStore.get(), status: 'loading' })
  await load(query, before, (page) => withNextPage(listStore.get().model, page))
}

/** Whether the list is as long as it gets; the rest is a list of its own. */
export function isFull({ lines }: ListModel): boolean {
  return lines.length >= MAX_LINES
}

export function setFollowing(value: boolean): void {
  isFollowing = value
}

/** Shows what arrived while the user was scrolled away. */
export async function showHeld(): Promise<void> {
  isFollowing = true
  const { model, query } = listStore.get()
  const shown = withHeld(model)
  if (shown) update(() => shown)
  else await openList(query)
}

async function load(
  query: ListQuery,
  before: number | null,
  merge: (page: DeliveryPage) => ListModel,
): Promise<void> {
  const { signal } = request
  try {
    const page = await getJson<DeliveryPage>(`deliveries${searchOf(query, before)}`, signal)
    if (!signal.aborted) listStore.set({ query, model: merge(page), status: 'ready', error: null })
  } catch (error) {
    if (!signal.aborted) listStore.set({ ...listStore.get(), status: 'failed', error: messageFrom(error) })
  }
}

function searchOf(query: ListQuery, before: number | null): string {
  const search = formatQuery(before === null ? query : { ...query, before: String(before) })
  return `${search}${search === '' ? '?' : '&'}limit=${PAGE}`
}

function update(change: (model: ListModel) => ListModel): void {
  const state = listStore.get()
  listStore.set({ ...state, model: change(state.model) })
}

/** Reads the first page of a filtered list again: only the instance knows what passes the filters. */
function refreshSoon(): void {
  refreshTimer ??= setTimeout(() => {
    refreshTimer = undefined
    const { query, status } = listStore.get()
    if (status === 'loading') refreshSoon()
    else void load(query, null, (page) => withFirstPage(listStore.get().model, page, isFollowing))
  }, REFRESH_MS)
}

onLive((event) => {
  const { query } = listStore.get()
  if (event.type === 'removed') update((model) => withoutRemoved(model, event.below))
  if (event.type !== 'deliveries') return
  const known = listStore.get().model.lines[0]?.n ?? 0
  // New entries do not belong on a page that begins further back.
  const shown = query.before ? event.deliveries.filter(({ n }) => n <= known) : event.deliveries
  if (isFiltered(query)) {
    update((model) =>
      withLive(
        model,
        shown.filter(({ n }) => n <= known),
        isFollowing,
      ),
    )
    refreshSoon()
  } else if (event.skipped > 0 && isFollowing && !query.before) refreshSoon()
  else update((model) => withSkipped(withLive(model, shown, isFollowing), query.before ? 0 : event.skipped))
})

// What happened before the stream began, or while it was away, may not have been reported.
connectionStore.subscribe(() => {
  if (connectionStore.get() === 'live') refreshSoon()
})
