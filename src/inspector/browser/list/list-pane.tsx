import { memo, useEffect, useLayoutEffect, useRef } from 'hono/jsx/dom'
import { addressOf, formatQuery, isFiltered } from '../../address.js'
import type { DeliveryLine, ListQuery } from '../../api.js'
import { Empty, NoDeliveries, NothingMatches } from '../../view/empty.js'
import { counted, formatCount } from '../../view/format.js'
import { Row, type RowProps } from '../../view/row.js'
import {
  isFull,
  type ListState,
  listStore,
  loadMore,
  openList,
  setFollowing,
  showHeld,
} from '../data/list-store.js'
import { nowStore } from '../data/now.js'
import { useStore } from '../model/store.js'
import { VirtualRows } from '../ui/virtual-rows.js'
import { cursorStore, listHandle, scrollListToTop } from './cursor.js'
import { Filters } from './filters.js'
import { TimelineStrip } from './timeline-strip.js'

/** Closer to the top than this, the list follows what arrives. Pixels. */
const TOP = 24

const MemoRow = memo<RowProps>(Row)

/** The list with its filters; `openN` is the delivery that is shown next to it. */
export function ListPane({ query, openN }: { readonly query: ListQuery; readonly openN: number | null }) {
  const state = useStore(listStore)
  const search = formatQuery(query)
  useEffect(() => {
    scrollListToTop()
    void openList(query)
  }, [search])
  return (
    <section class="pane pane-list" aria-label="Deliveries" data-scroller="list">
      <h1 class="sr-only">Deliveries</h1>
      <div class="tools">
        <TimelineStrip query={query} />
        <Filters query={query} />
      </div>
      <Held count={state.model.heldCount} />
      <Lines state={state} openN={openN} />
      <End state={state} />
    </section>
  )
}

function Lines({ state, openN }: { readonly state: ListState; readonly openN: number | null }) {
  const { model, query } = state
  const now = useStore(nowStore)
  // Renders again when the cursor moves, so that its row gets the focus.
  useStore(cursorStore)
  const shown = useRef(0)
  useLayoutEffect(() => {
    shown.current = model.lines[0]?.n ?? shown.current
  })
  const newest = shown.current ?? 0
  if (model.lines.length === 0) return null
  return (
    <VirtualRows
      tag="ol"
      class="rows"
      count={model.lines.length}
      handle={listHandle}
      onEnd={() => void loadMore()}
      onScroll={(top) => setFollowing(top < TOP)}
      onRows={focusCursor}
      row={(index) => {
        const line = model.lines[index]
        return line ? (
          <li key={line.n} class={newest > 0 && line.n > newest ? 'fresh' : ''}>
            <MemoRow line={line} query={query} now={now} isOpen={line.n === openN} />
          </li>
        ) : null
      }}
    />
  )
}

/** Moves the focus to the row that the keyboard is on, as soon as that is rendered. */
function focusCursor(): void {
  const { n, wantsFocus } = cursorStore.get()
  if (!wantsFocus) return
  const row = document.querySelector<HTMLElement>(`.pane-list a[data-n="${n}"]`)
  if (!row) return
  row.focus({ preventScroll: true })
  cursorStore.set({ n, wantsFocus: false })
}

/** The pill that says how many deliveries arrived above what the user is looking at. */
function Held({ count }: { readonly count: number }) {
  return (
    <div class="held" role="status">
      {count === 0 ? null : (
        <button
          type="button"
          class="pill"
          onClick={() => {
            scrollListToTop()
            void showHeld()
          }}
        >
          {formatCount(count)} new
        </button>
      )}
    </div>
  )
}

/** What stands below the last line. */
function End({ state }: { readonly state: ListState }) {
  const { model, status, error, query } = state
  if (status === 'failed')
    return (
      <Empty title="The list could not be read">
        <p>{error}</p>
        <button type="button" class="button" onClick={() => void openList(query)}>
          Try again
        </button>
      </Empty>
    )
  const last = model.lines.at(-1)
  if (isFull(model) && last)
    return (
      <p class="more">
        <a class="button" href={addressOf({ page: 'list', query: { ...query, before: String(last.n) } })}>
          Continue before #{last.n}
        </a>
      </p>
    )
  if (model.stopped)
    return (
      <p class="more">
        <span class="quiet">Searched {counted(model.stopped.read, 'delivery', 'deliveries')}. </span>
        <button type="button" class="button" onClick={() => void loadMore()}>
          Search older ones
        </button>
      </p>
    )
  if (last || status === 'loading') return null
  return isFiltered(query) ? <NothingMatches /> : <NoDeliveries />
}

/** The line at a distance from another; the first where that one is not in the list. */
export function lineNear(n: number | null, steps: number): DeliveryLine | undefined {
  const { lines } = listStore.get().model
  const index = lines.findIndex((line) => line.n === n)
  if (index === -1) return lines[0]
  return lines[Math.min(Math.max(index + steps, 0), lines.length - 1)]
}
