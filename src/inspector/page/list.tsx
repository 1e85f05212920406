import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import { useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import type { ListQuery } from '../api.js'
import { addressOf, formatQuery, isFiltered } from './address.js'
import { whyNotRead } from './client.js'
import { command } from './command.js'
import { Filters } from './filters.js'
import { counted, formatCount } from './format.js'
import { MAX_LINES } from './list-state.js'
import { dispatch, lines, list } from './list-store.js'
import { cursor, moveFocus } from './model.js'
import { Button, Empty } from './parts.js'
import { DeliveryRow } from './row.js'
import { TimelineStrip } from './timeline.js'
import { TriggerButton } from './trigger.js'

/** Distance from the top within which the list follows new deliveries. Pixels. */
const TOP = 24

export interface ListProps {
  readonly query: ListQuery
  /** Number of the delivery that is open next to the list. */
  readonly openN: number | null
}

/** The list with its filters. */
export function List({ query, openN }: ListProps) {
  const pane = useRef<HTMLElement>(null)
  const { missed } = list.value
  // A layout effect, since an effect would run only after the next frame.
  useLayoutEffect(() => {
    pane.current?.scrollTo({ top: 0 })
    dispatch({ type: 'opened', query })
  }, [formatQuery(query)])
  return (
    <section class="pane pane-list" aria-label="Deliveries" ref={pane}>
      <h1 class="sr-only">Deliveries</h1>
      <div class="tools">
        <TimelineStrip />
        <Filters query={query} hasSources={list.value.hasSources || query.source !== undefined} />
      </div>
      <div class="held" role="status">
        {missed === 0 ? null : (
          <button
            type="button"
            class="pill"
            onClick={() => {
              cursor.value = { n: list.value.newest, wantsFocus: true }
              pane.current?.scrollTo({ top: 0 })
            }}
          >
            {formatCount(missed)} new
          </button>
        )}
      </div>
      <Beginning query={query} />
      <Rows pane={pane} query={query} openN={openN} />
      <End query={query} />
    </section>
  )
}

/** Banner above the rows of a page that begins further back. */
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

/** Rows in view. Only those are in the document, so that a list of any length scrolls smoothly. */
function Rows({ pane, query, openN }: ListProps & { readonly pane: Ref<HTMLElement> }) {
  const element = useRef<HTMLOListElement>(null)
  const all = lines.value
  const virtual = useVirtual(pane, element, all.length)
  // The row under the keyboard's cursor gets the focus as soon as it is in the document.
  const { n, wantsFocus } = cursor.value ?? { n: 0, wantsFocus: false }
  useLayoutEffect(() => {
    const row = wantsFocus ? element.current?.querySelector<HTMLElement>(`a[data-n="${n}"]`) : null
    if (!row) return
    moveFocus(row)
    cursor.value = { n, wantsFocus: false }
  })
  // Scrolls to the delivery that opens, also by an address, and to the keyboard's cursor.
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
          <li key={line.n} class={line.n > list.value.freshAfter ? 'fresh' : ''}>
            <DeliveryRow line={line} query={query} isOpen={line.n === openN} />
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
    // All rows have one height, which the style sheet gives in rem. A property that uses it resolves it to pixels.
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
      dispatch({ type: 'scrolled', isAtTop: (pane.current?.scrollTop ?? 0) < TOP })
    }
    pane.current?.addEventListener('scroll', onScroll, { passive: true })
  }, [])
  const last = current.getVirtualItems().at(-1)?.index ?? 0
  useEffect(() => {
    if (last >= count - 20) dispatch({ type: 'more', isAsked: false })
  }, [last, count])
  return current
}

/** Message or button below the last row. */
function End({ query }: { readonly query: ListQuery }) {
  const { lines, end, status, problem } = list.value
  const last = lines.at(-1)
  const { stopped } = end
  if (status === 'failed' && whyNotRead.value === null)
    return (
      <Empty title="The list could not be read">
        <p>{problem}</p>
        <Button onClick={() => dispatch({ type: 'retried' })}>Try again</Button>
      </Empty>
    )
  if (status === 'refused')
    return (
      <Empty title="These filters cannot be used">
        <p>{problem.replace(/^repo:/, 'repository:')}</p>
      </Empty>
    )
  if (last && lines.length >= MAX_LINES)
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
        <Button reason={whyNotRead.value} onClick={() => dispatch({ type: 'more', isAsked: true })}>
          Search older ones
        </Button>
      </p>
    )
  if (last || status !== 'ready') return null
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

/** Advice for a journal without deliveries. */
function FirstSteps() {
  return (
    <Empty title="No deliveries yet">
      <p>They appear here as they arrive. Send a first one:</p>
      <p>
        <TriggerButton />
      </p>
      <p>Or from another terminal:</p>
      <pre class="command">{command('trigger push')}</pre>
      <p>
        Or let a code host send them: started again with <code>{command('serve --tunnel')}</code>, relay
        prints the address for its webhook settings.
      </p>
    </Empty>
  )
}
