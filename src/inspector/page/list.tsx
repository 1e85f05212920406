import { batch, signal } from '@preact/signals'
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import { useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import type { DeliveryLine, DeliveryPage, ListQuery } from '../api.js'
import { addressOf, formatQuery, isFiltered } from './address.js'
import { getJson, onLive, RequestError, whyNotRead } from './client.js'
import { command } from './command.js'
import { Filters } from './filters.js'
import { counted, formatCount, formatSize } from './format.js'
import { cursor, isNarrow, messageFrom, moveFocus } from './model.js'
import { Button, Empty, Icon, Mark, statusOf, Time, Visible } from './parts.js'
import { Timeline } from './timeline.js'

/** Lines of the first page, as the shell preloads it, and of those after it. */
const FIRST = 50
const PAGE = 200

/** Chromium draws no element higher than 33.5 million pixels, and memory is finite: a longer list continues on a page of its own. */
const MAX_LINES = 20_000

/** While it follows what comes, the list is only as long as a person looks back; older lines are loaded again when scrolled to. */
const MAX_FOLLOWED = 1000

/** A list is read again at most this often while deliveries arrive. */
const REFRESH_MS = 1000

/** Closer to the top than this, the list follows what arrives. Pixels. */
const TOP = 24

export const lines = signal<readonly DeliveryLine[]>([])
const rest = signal<Pick<DeliveryPage, 'next' | 'stopped'>>({ next: null })
const hasSources = signal(false)
const status = signal<'loading' | 'ready' | 'failed' | 'refused'>('loading')
const problem = signal('')
/** Deliveries that arrived while the user is scrolled away from the top. */
const missed = signal(0)

let shown: ListQuery = {}
/** All from here down to what `rest` says has been read. */
let searchedFrom = 0
/** The newest delivery in the list, or counted. */
let newest = 0
/** Deliveries with a larger number have just come in. */
let freshAfter = Infinity
let isAtTop = true
let isReading = false
/** While a page was read, the end came into view, or a search that stopped was asked to continue. */
let wanted: { readonly isAsked: boolean } | undefined
let request = new AbortController()
let refresh: ReturnType<typeof setTimeout> | undefined

/** Reads the first page of a list. What was shown stays until it is there. */
async function openList(query: ListQuery): Promise<void> {
  request.abort()
  request = new AbortController()
  shown = query
  status.value = 'loading'
  await read(null, (page) => {
    begin(page)
    newest = page.deliveries[0]?.n ?? 0
    freshAfter = Infinity
    missed.value = 0
    wanted = undefined
  })
}

/** Shows the first page alone. */
function begin(page: DeliveryPage): void {
  lines.value = page.deliveries
  rest.value = page
  hasSources.value = page.hasSources ?? page.deliveries.some(({ source }) => source !== undefined)
  searchedFrom = topOf(page)
}

/** From here down a first page has read. */
function topOf({ stopped, deliveries }: DeliveryPage): number {
  return stopped ? stopped.before + stopped.read : (deliveries[0]?.n ?? 0)
}

/** Below this, a page has read nothing. */
function endOf({ next, stopped }: Pick<DeliveryPage, 'next' | 'stopped'>): number {
  return next ?? stopped?.before ?? 0
}

/** Reads the next page, unless one is being read or the list is at its end. A search that stopped continues only when asked. */
async function loadMore(isAsked = false): Promise<void> {
  wanted = isReading ? { isAsked: isAsked || wanted?.isAsked === true } : undefined
  const before = rest.value.next ?? (isAsked ? rest.value.stopped?.before : undefined)
  if (isReading || before === undefined || lines.value.length >= MAX_LINES) return
  await read(before, (page) => {
    const last = lines.value.at(-1)?.n ?? Infinity
    lines.value = [...lines.value, ...page.deliveries.filter(({ n }) => n < last)]
    const searched = rest.value.stopped?.read ?? 0
    const { stopped } = page
    rest.value = stopped ? { ...page, stopped: { ...stopped, read: searched + stopped.read } } : page
  })
}

async function read(before: number | null, merge: (page: DeliveryPage) => void): Promise<void> {
  const { signal } = request
  const search = formatQuery(before === null ? shown : { ...shown, before: String(before) })
  const limit = `${search === '' ? '?' : '&'}limit=${before === null ? FIRST : PAGE}`
  isReading = true
  try {
    const page = await getJson<DeliveryPage>(`deliveries${search}${limit}`, signal)
    if (signal.aborted) return
    isReading = false
    batch(() => {
      merge(page)
      status.value = 'ready'
    })
    if (wanted) void loadMore(wanted.isAsked)
  } catch (error) {
    if (signal.aborted) return
    isReading = false
    const isRefused = error instanceof RequestError && error.status === 400
    batch(() => {
      problem.value = messageFrom(error)
      status.value = isRefused ? 'refused' : 'failed'
      // Rows that were read with other filters would look as if they passed these.
      if (isRefused) [lines.value, rest.value] = [[], { next: null }]
    })
  }
}

/** Reads the first page again: only the instance knows what passes the filters, or what was missed. */
function refreshSoon(): void {
  refresh ??= setTimeout(() => {
    refresh = undefined
    if (isReading) return refreshSoon()
    void read(null, (page) => {
      const { deliveries } = page
      const [first, oldest] = [lines.value[0]?.n ?? 0, deliveries.at(-1)?.n ?? 0]
      const come = deliveries.filter(({ n }) => n > first)
      newest = Math.max(newest, deliveries[0]?.n ?? 0)
      if (isAtTop) {
        if (come.length > 0) freshAfter = first
        const end = endOf(page)
        // What a search has found further back stays, since it took time and was asked for.
        if (!shown.text || end > searchedFrom || end <= endOf(rest.value)) return begin(page)
        lines.value = [...deliveries, ...lines.value.filter(({ n }) => n < end)]
        searchedFrom = topOf(page)
        return
      }
      const changed = new Map(deliveries.map((line) => [line.n, line]))
      lines.value = lines.value.flatMap((line) => (line.n < oldest ? [line] : (changed.get(line.n) ?? [])))
      missed.value = come.length
    })
  }, REFRESH_MS)
}

/** Lines that changed take their place. New ones come in at the top, or are counted while the user is scrolled away from it. */
function takeIn(reported: readonly DeliveryLine[]): void {
  const changed = new Map(reported.map((line) => [line.n, line]))
  if (lines.value.some(({ n }) => changed.has(n)))
    lines.value = lines.value.map((line) => changed.get(line.n) ?? line)
  const come = reported.filter(({ n }) => n > newest).toReversed()
  // New entries do not belong on a page that begins further back, and only the instance knows what passes the filters.
  if (shown.before) return
  if (isFiltered(shown)) return refreshSoon()
  if (come.length === 0) return
  newest = come[0]?.n ?? newest
  if (!isAtTop || missed.value > 0) {
    missed.value += come.length
    return
  }
  freshAfter = lines.value[0]?.n ?? 0
  lines.value = [...come, ...lines.value]
  if (lines.value.length <= 2 * MAX_FOLLOWED) return
  lines.value = lines.value.slice(0, MAX_FOLLOWED)
  rest.value = { next: lines.value.at(-1)?.n ?? null }
}

onLive((event) => {
  if (event.type === 'stale') refreshSoon()
  if (event.type === 'lines') batch(() => takeIn(event.lines))
  if (event.type === 'removed') {
    const left = lines.value.filter(({ n }) => n >= event.below)
    if (left.length < lines.value.length) rest.value = { next: null }
    lines.value = left
  }
})

/** The line at a distance from another; undefined where that one is not in the list. */
export function lineNear(n: number | undefined, steps: number): DeliveryLine | undefined {
  const index = lines.value.findIndex((line) => line.n === n)
  if (index === -1) return undefined
  return lines.value[Math.min(Math.max(index + steps, 0), lines.value.length - 1)]
}

export interface ListProps {
  readonly query: ListQuery
  /** The delivery that is shown next to it. */
  readonly openN: number | null
}

/** The list with its filters. */
export function List({ query, openN }: ListProps) {
  const pane = useRef<HTMLElement>(null)
  // Not after the next frame, as an effect would be.
  useLayoutEffect(() => {
    pane.current?.scrollTo({ top: 0 })
    isAtTop = true
    void openList(query)
  }, [formatQuery(query)])
  return (
    <section class="pane pane-list" aria-label="Deliveries" ref={pane}>
      <h1 class="sr-only">Deliveries</h1>
      <div class="tools">
        <Timeline />
        <Filters query={query} hasSources={hasSources.value || query.source !== undefined} />
      </div>
      <div class="held" role="status">
        {missed.value === 0 ? null : (
          <button
            type="button"
            class="pill"
            onClick={() => {
              cursor.value = { n: newest, wantsFocus: true }
              pane.current?.scrollTo({ top: 0 })
            }}
          >
            {formatCount(missed.value)} new
          </button>
        )}
      </div>
      <Beginning query={query} />
      <Rows pane={pane} query={query} openN={openN} />
      <End query={query} />
    </section>
  )
}

/** What stands above the rows of a page that begins further back. */
function Beginning({ query: { before, ...newest } }: { readonly query: ListQuery }) {
  if (!before) return null
  return (
    <p class="banner">
      <span>Older than #{before}.</span>
      <a href={addressOf({ page: 'list', query: newest })}>Show the newest</a>
    </p>
  )
}

interface Ref<T> {
  readonly current: T | null
}

/** The rows in view. Only those are in the document, so that a list of any length scrolls smoothly. */
function Rows({ pane, query, openN }: ListProps & { readonly pane: Ref<HTMLElement> }) {
  const element = useRef<HTMLOListElement>(null)
  const all = lines.value
  const virtual = useVirtual(pane, element, all.length)
  // The row that the keyboard is on gets the focus as soon as it is in the document.
  const { n, wantsFocus } = cursor.value ?? { n: 0, wantsFocus: false }
  useLayoutEffect(() => {
    const row = wantsFocus ? element.current?.querySelector<HTMLElement>(`a[data-n="${n}"]`) : null
    if (!row) return
    moveFocus(row)
    cursor.value = { n, wantsFocus: false }
  })
  // Into view: the delivery that opens, also by an address, and where the keyboard moves to.
  const current = openN ?? (wantsFocus ? n : null)
  const isListed = current !== null && all.some((line) => line.n === current)
  useEffect(() => {
    if (isListed) virtual.scrollToIndex(all.findIndex((line) => line.n === current))
  }, [openN, current, isListed])
  if (all.length === 0) return null
  const items = virtual.getVirtualItems()
  const margin = virtual.options.scrollMargin
  const above = (items[0]?.start ?? margin) - margin
  const below = virtual.getTotalSize() - ((items.at(-1)?.end ?? margin) - margin)
  return (
    <ol ref={element} class="rows" style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
      {items.map(({ index }) => {
        const line = all[index]
        return line ? (
          <li key={line.n} class={line.n > freshAfter ? 'fresh' : ''}>
            <Row line={line} query={query} isOpen={line.n === openN} />
          </li>
        ) : null
      })}
    </ol>
  )
}

/** Connects a Virtualizer to the pane that scrolls. */
function useVirtual(pane: Ref<HTMLElement>, element: Ref<HTMLElement>, count: number) {
  const [, render] = useReducer((n: number) => n + 1, 0)
  const place = useRef({ rowHeight: 0, top: 0 })
  const virtual = useRef<Virtualizer<HTMLElement, HTMLElement>>(null)
  const options = {
    count,
    getScrollElement: () => pane.current,
    estimateSize: () => place.current.rowHeight || 56,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 6,
    scrollMargin: place.current.top,
    onChange: () => render(0),
  }
  virtual.current ??= new Virtualizer(options)
  const { current } = virtual
  current.setOptions(options)
  useLayoutEffect(() => current._didMount(), [])
  useLayoutEffect(() => {
    current._willUpdate()
    if (!element.current || !pane.current) return
    // Of one height, which the style sheet gives in rem: a property that uses it resolves it to pixels.
    const rowHeight = Number.parseFloat(getComputedStyle(element.current).scrollMarginTop)
    const [list, scrolled] = [element.current.getBoundingClientRect(), pane.current.getBoundingClientRect()]
    const top = list.top - scrolled.top + pane.current.scrollTop
    if (rowHeight === place.current.rowHeight && Math.abs(top - place.current.top) < 1) return
    place.current = { rowHeight, top }
    current.setOptions({ ...options, scrollMargin: top })
    current.measure()
  })
  useEffect(() => {
    const onScroll = (): void => {
      isAtTop = (pane.current?.scrollTop ?? 0) < TOP
      if (isAtTop && missed.value > 0) void openList(shown)
    }
    pane.current?.addEventListener('scroll', onScroll, { passive: true })
  }, [])
  const last = current.getVirtualItems().at(-1)?.index ?? 0
  useEffect(() => {
    if (last >= count - 20) void loadMore()
  }, [last, count])
  return current
}

interface LineProps {
  readonly line: Omit<DeliveryLine, 'targets'>
}

interface RowProps {
  readonly line: DeliveryLine
  readonly query: ListQuery
  readonly isOpen: boolean
}

/** Of more targets than a row has room for, the first in this order are shown, and the others counted. */
const ORDER = ['failed', 'down', 'waiting', 'succeeded'] as const

/** One delivery: a link to it. */
function Row({ line, query, isOpen }: RowProps) {
  const { n, receivedAt, size, targets, ignored } = line
  const ordered = ORDER.flatMap((status) => targets.filter((target) => statusOf(target) === status))
  const room = isNarrow.value ? 2 : 3
  const [marks, more] = targets.length > room ? [ordered.slice(0, room), ordered.slice(room)] : [targets, []]
  return (
    <a
      class="row"
      href={addressOf({ page: 'delivery', n, query })}
      data-n={n}
      aria-current={isOpen ? 'true' : undefined}
    >
      <span class="row-line">
        <span class="row-event">
          <EventName line={line} />
          <Badges line={line} />
        </span>
        <span class="row-n">#{n}</span>
        <Time class="row-time" at={receivedAt} />
      </span>
      <span class="row-line">
        <span class="row-subject">
          <Subject line={line} />
        </span>
        <span class="row-marks">
          {marks.map((target) => (
            <Mark key={target.name} target={target} />
          ))}
          {more.length === 0 ? null : (
            <span title={more.map((target) => `${target.name}: ${statusOf(target)}`).join('\n')}>
              +{more.length}
            </span>
          )}
          {targets.length > 0 ? null : <span class="mark mark-none">{ignored ?? 'no target'}</span>}
        </span>
        <span class="row-size">{formatSize(size)}</span>
      </span>
    </a>
  )
}

/** `pull_request.opened`, `stripe invoice.paid`: source and action in a weaker tone. */
export function EventName({ line: { source, event, action } }: LineProps) {
  return (
    <span class="event">
      <Visible class="action" text={source && `${source} `} />
      <Visible text={event} />
      <Visible class="action" text={action && `.${action}`} />
    </span>
  )
}

/** `octo/demo #1` */
export function Subject({ line: { repo, subject } }: LineProps) {
  return (
    <>
      <Visible class="repo" text={repo} /> <Visible class="subject" text={subject} />
    </>
  )
}

export function Badges({ line: { duplicates, editedFrom, viaTunnel, unproved } }: LineProps) {
  return (
    <>
      {unproved ? <span class="badge badge-warn">unverified</span> : null}
      {duplicates === 0 ? null : (
        <span class="badge" title={`Arrived again ${counted(duplicates, 'time')}`}>
          <Icon name="copies" />
          <span class="sr-only">arrived again, times: </span>
          {duplicates}
        </span>
      )}
      {editedFrom === undefined ? null : (
        <span class="badge" title={`Edited copy of #${editedFrom}`}>
          <Icon name="pen" />
          edited
        </span>
      )}
      {viaTunnel ? (
        <span class="badge" title="Came through the tunnel">
          <Icon name="tunnel" />
          <span class="sr-only">through the tunnel</span>
        </span>
      ) : null}
    </>
  )
}

/** What stands below the last row. */
function End({ query }: { readonly query: ListQuery }) {
  const last = lines.value.at(-1)
  const { stopped } = rest.value
  if (status.value === 'failed' && whyNotRead.value === null)
    return (
      <Empty title="The list could not be read">
        <p>{problem.value}</p>
        <Button onClick={() => void openList(query)}>Try again</Button>
      </Empty>
    )
  if (status.value === 'refused')
    return (
      <Empty title="These filters cannot be used">
        <p>{problem.value.replace(/^repo:/, 'repository:')}</p>
      </Empty>
    )
  if (last && lines.value.length >= MAX_LINES)
    return (
      <p class="more">
        <a class="button" href={addressOf({ page: 'list', query: { ...query, before: String(last.n) } })}>
          Continue before #{last.n}
        </a>
      </p>
    )
  if (stopped)
    return (
      <p class="more">
        <span class="quiet">Searched {counted(stopped.read, 'delivery', 'deliveries')}. </span>
        <Button reason={whyNotRead.value} onClick={() => void loadMore(true)}>
          Search older ones
        </Button>
      </p>
    )
  if (last || status.value !== 'ready') return null
  if (query.before) return <Empty title="No older delivery" />
  return isFiltered(query) ? (
    <Empty title="No delivery matches these filters">
      <p>
        Change or clear them to see others.
        {query.until ? '' : ' New deliveries that match appear here by themselves.'}
      </p>
    </Empty>
  ) : (
    <FirstSteps />
  )
}

/** How a journal without a delivery gets one. */
function FirstSteps() {
  return (
    <Empty title="No deliveries yet">
      <p>They appear here as they arrive. Send a first one from another terminal:</p>
      <pre class="command">{command('trigger push')}</pre>
      <p>
        Or let a code host send them: started again with <code>{command('serve --tunnel')}</code>, relay
        prints the address for its webhook settings.
      </p>
    </Empty>
  )
}
