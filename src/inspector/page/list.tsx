import { batch, signal } from '@preact/signals'
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import { useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import type { DeliveryLine, DeliveryPage, ListQuery } from '../api.js'
import { addressOf, formatQuery, isFiltered } from './address.js'
import { getJson, onLive, whyNotRead } from './client.js'
import { Filters } from './filters.js'
import { counted, formatCount, formatSize } from './format.js'
import { cursor, messageFrom, moveFocus } from './model.js'
import { Button, Empty, Icon, Mark, Time, Visible } from './parts.js'
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
const status = signal<'loading' | 'ready' | 'failed'>('loading')
const problem = signal('')
/** Deliveries that arrived while the user is scrolled away from the top. */
const missed = signal(0)

let shown: ListQuery = {}
/** The newest delivery in the list, or counted. */
let newest = 0
/** Deliveries with a larger number have just come in. */
let freshAfter = Infinity
let isAtTop = true
let request = new AbortController()
let refresh: ReturnType<typeof setTimeout> | undefined

/** Reads the first page of a list. What was shown stays until it is there. */
async function openList(query: ListQuery): Promise<void> {
  request.abort()
  request = new AbortController()
  shown = query
  await read(null, (page) => {
    lines.value = page.deliveries
    newest = page.deliveries[0]?.n ?? 0
    freshAfter = Infinity
    missed.value = 0
  })
}

/** Reads the next page, unless one is being read or the list is at its end. */
async function loadMore(): Promise<void> {
  const before = rest.value.next ?? rest.value.stopped?.before
  if (status.value === 'loading' || before === undefined || lines.value.length >= MAX_LINES) return
  await read(before, ({ deliveries }) => {
    const last = lines.value.at(-1)?.n ?? Infinity
    lines.value = [...lines.value, ...deliveries.filter(({ n }) => n < last)]
  })
}

async function read(before: number | null, merge: (page: DeliveryPage) => void): Promise<void> {
  const { signal } = request
  const search = formatQuery(before === null ? shown : { ...shown, before: String(before) })
  const limit = `${search === '' ? '?' : '&'}limit=${before === null ? FIRST : PAGE}`
  status.value = 'loading'
  try {
    const page = await getJson<DeliveryPage>(`deliveries${search}${limit}`, signal)
    if (signal.aborted) return
    batch(() => {
      merge(page)
      const isEnd = before !== null || (lines.value.at(-1)?.n ?? 0) >= (page.deliveries.at(-1)?.n ?? 0)
      if (isEnd) rest.value = page
      status.value = 'ready'
    })
  } catch (error) {
    if (signal.aborted) return
    problem.value = messageFrom(error)
    status.value = 'failed'
  }
}

/** Reads the first page again: only the instance knows what passes the filters, or what was missed. */
function refreshSoon(): void {
  refresh ??= setTimeout(() => {
    refresh = undefined
    if (status.value === 'loading') return refreshSoon()
    void read(null, ({ deliveries, next }) => {
      const [first, oldest] = [lines.value[0]?.n ?? 0, deliveries.at(-1)?.n ?? 0]
      const come = deliveries.filter(({ n }) => n > first)
      const hasGap = next !== null && oldest > first
      if (isAtTop && (hasGap || next === null)) lines.value = deliveries
      else {
        const read = new Map(deliveries.map((line) => [line.n, line]))
        const old = lines.value.flatMap((line) => (line.n < oldest ? [line] : (read.get(line.n) ?? [])))
        if (come.length > 0) freshAfter = first
        if (isAtTop) lines.value = [...come, ...old]
        else [lines.value, missed.value] = [old, come.length]
      }
      newest = Math.max(newest, deliveries[0]?.n ?? 0)
    })
  }, REFRESH_MS)
}

/** Lines that changed take their place. New ones come in at the top, or are counted while the user is scrolled away from it. */
function takeIn(reported: readonly DeliveryLine[]): void {
  const changed = new Map(reported.map((line) => [line.n, line]))
  const updated = lines.value.some(({ n }) => changed.has(n))
    ? lines.value.map((line) => changed.get(line.n) ?? line)
    : lines.value
  const come = reported.filter(({ n }) => n > newest).toReversed()
  lines.value = updated
  // New entries do not belong on a page that begins further back, and only the instance knows what passes the filters.
  if (shown.before) return
  if (isFiltered(shown)) return refreshSoon()
  newest = come[0]?.n ?? newest
  if (!isAtTop || missed.value > 0) {
    missed.value += come.length
    return
  }
  freshAfter = come.length > 0 ? (updated[0]?.n ?? 0) : freshAfter
  const all = [...come, ...updated]
  const isLong = all.length > 2 * MAX_FOLLOWED
  lines.value = isLong ? all.slice(0, MAX_FOLLOWED) : all
  if (isLong) rest.value = { next: lines.value.at(-1)?.n ?? null }
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

/** The line at a distance from another; the first where that one is not in the list. */
export function lineNear(n: number | undefined, steps: number): DeliveryLine | undefined {
  const index = lines.value.findIndex((line) => line.n === n)
  if (index === -1) return lines.value[0]
  return lines.value[Math.min(Math.max(index + steps, 0), lines.value.length - 1)]
}

/** Moves a line into view. */
export const scroller: { toLine: (n: number) => void } = {
  toLine: () => {},
}

/** The list with its filters; `openN` is the delivery that is shown next to it. */
export function List({ query, openN }: { readonly query: ListQuery; readonly openN: number | null }) {
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
        <Filters query={query} />
      </div>
      <div class="held" role="status">
        {missed.value === 0 ? null : (
          <button type="button" class="pill" onClick={() => pane.current?.scrollTo({ top: 0 })}>
            {formatCount(missed.value)} new
          </button>
        )}
      </div>
      <Rows pane={pane} query={query} openN={openN} />
      <End query={query} />
    </section>
  )
}

interface RowsProps {
  readonly pane: { readonly current: HTMLElement | null }
  readonly query: ListQuery
  readonly openN: number | null
}

/** The rows in view. Only those are in the document, so that a list of any length scrolls smoothly. */
function Rows({ pane, query, openN }: RowsProps) {
  const element = useRef<HTMLOListElement>(null)
  const all = lines.value
  // Rendered again when the cursor moves, so that its row gets the focus.
  void cursor.value
  const virtual = useVirtual(pane, element, all.length)
  useLayoutEffect(() => {
    focusCursor(element.current)
  })
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
function useVirtual(pane: RowsProps['pane'], element: { current: HTMLElement | null }, count: number) {
  const [, render] = useReducer((n: number) => n + 1, 0)
  const rowHeight = useRef(0)
  const margin = useRef(0)
  const virtual = useRef<Virtualizer<HTMLElement, HTMLElement>>(null)
  const options = {
    count,
    getScrollElement: () => pane.current,
    // Of one height, which the style sheet gives in rem: a property that uses it resolves it to pixels.
    estimateSize: () => rowHeight.current || 56,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 6,
    scrollMargin: margin.current,
    onChange: () => render(0),
  }
  virtual.current ??= new Virtualizer(options)
  const { current } = virtual
  current.setOptions(options)
  useLayoutEffect(() => current._didMount(), [])
  useLayoutEffect(() => {
    current._willUpdate()
    const list = element.current
    if (!list || !pane.current) return
    const height = Number.parseFloat(getComputedStyle(list).scrollMarginTop)
    const top =
      list.getBoundingClientRect().top - pane.current.getBoundingClientRect().top + pane.current.scrollTop
    if (height === rowHeight.current && Math.abs(top - margin.current) < 1) return
    ;[rowHeight.current, margin.current] = [height, top]
    current.setOptions({ ...options, scrollMargin: top })
    current.measure()
  })
  useEffect(() => {
    const onScroll = (): void => {
      isAtTop = (pane.current?.scrollTop ?? 0) < TOP
      if (isAtTop && missed.value > 0) void openList(shown)
    }
    pane.current?.addEventListener('scroll', onScroll, { passive: true })
    scroller.toLine = (n) => current.scrollToIndex(lines.value.findIndex((line) => line.n === n))
  }, [])
  const last = current.getVirtualItems().at(-1)?.index ?? 0
  useEffect(() => {
    if (last >= count - 20) void loadMore()
  }, [last, count])
  return current
}

/** Moves the focus to the row that the keyboard is on, as soon as that is in the document. */
function focusCursor(list: HTMLElement | null): void {
  const { n, wantsFocus } = cursor.value ?? { n: 0, wantsFocus: false }
  const row = wantsFocus ? list?.querySelector<HTMLElement>(`a[data-n="${n}"]`) : null
  if (!row) return
  moveFocus(row)
  cursor.value = { n, wantsFocus: false }
}

interface RowProps {
  readonly line: DeliveryLine
  readonly query: ListQuery
  readonly isOpen: boolean
}

/** One delivery: a link to it. */
function Row({ line, query, isOpen }: RowProps) {
  const { n, receivedAt, size } = line
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
          <Marks line={line} />
        </span>
        <span class="row-size">{formatSize(size)}</span>
      </span>
    </a>
  )
}

/** `pull_request.opened`: the action in a weaker tone. */
export function EventName({
  line: { event, action },
}: {
  readonly line: Pick<DeliveryLine, 'event' | 'action'>
}) {
  return (
    <span class="event">
      <Visible text={event} />
      {action === null ? null : (
        <span class="action">
          .<Visible text={action} />
        </span>
      )}
    </span>
  )
}

/** `octo/demo #1` */
export function Subject({
  line: { repo, subject },
}: {
  readonly line: Pick<DeliveryLine, 'repo' | 'subject'>
}) {
  return (
    <>
      {repo === null ? null : (
        <span class="repo">
          <Visible text={repo} />
        </span>
      )}{' '}
      {subject === null ? null : (
        <span class="subject">
          <Visible text={subject} />
        </span>
      )}
    </>
  )
}

type Badged = Pick<DeliveryLine, 'duplicates' | 'editedFrom' | 'viaTunnel'>

export function Badges({ line: { duplicates, editedFrom, viaTunnel } }: { readonly line: Badged }) {
  return (
    <>
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

/** As many marks as a row has room for; the rest is counted. */
const MAX_MARKS = 3

function Marks({ line: { targets, ignored } }: { readonly line: DeliveryLine }) {
  const more = targets.length - MAX_MARKS
  if (targets.length === 0) return <span class="mark mark-none">{ignored ?? 'no target'}</span>
  return (
    <>
      {targets.slice(0, MAX_MARKS).map((target) => (
        <Mark key={target.name} target={target} />
      ))}
      {more > 0 ? <span class="mark mark-none">+{more}</span> : null}
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
        <Button reason={whyNotRead} onClick={() => void loadMore()}>
          Search older ones
        </Button>
      </p>
    )
  if (last || status.value !== 'ready') return null
  return isFiltered(query) ? (
    <Empty title="No delivery matches these filters">
      <p>Change or clear them to see others. New deliveries that match appear here by themselves.</p>
    </Empty>
  ) : (
    <Empty title="No deliveries yet">
      <p>They appear here as they arrive. Send a first one from another terminal:</p>
      <pre class="command">relay trigger push</pre>
      <p>
        Or let a code host send them: <code>relay serve --tunnel</code> prints the address for its webhook
        settings.
      </p>
    </Empty>
  )
}
