import { useEffect, useRef } from 'hono/jsx/dom'
import { addressOf } from '../../address.js'
import type { DeliveryDetail, ListQuery, LiveEvent } from '../../api.js'
import { Attempts } from '../../view/attempts.js'
import { DeliveryHead, Headers, Proof, Targets } from '../../view/delivery.js'
import { Empty } from '../../view/empty.js'
import { nowStore } from '../data/now.js'
import { type Loaded, useLoaded } from '../data/use-loaded.js'
import { takeFocus } from '../model/navigation.js'
import { useStore } from '../model/store.js'
import { Actions } from './actions.js'
import { Payload } from './payload.js'
import { shownStore } from './shown.js'

/** One delivery, kept up to date while it is shown. */
export function DeliveryPane({ n, query }: { readonly n: number; readonly query: ListQuery }) {
  const loaded = useLoaded<DeliveryDetail>(`deliveries/${n}`, (event) => concerns(event, n))
  const element = useRef<HTMLElement>(null)
  const detail = loaded.value
  const isLoaded = detail !== null
  useEffect(() => shownStore.set(detail), [detail])
  useEffect(() => () => shownStore.set(null), [])
  useEffect(() => {
    element.current?.scrollTo({ top: 0 })
    if (!detail) return
    document.title = `#${n} ${nameOf(detail)} · relay`
    if (takeFocus()) element.current?.querySelector('h1')?.focus({ preventScroll: true })
  }, [n, isLoaded])
  return (
    <section class="pane pane-detail" aria-label={`Delivery #${n}`} data-scroller="detail" ref={element}>
      <NotLoaded loaded={loaded} n={n} query={query} />
      {detail ? <Detail detail={detail} query={query} /> : null}
    </section>
  )
}

function concerns(event: LiveEvent, n: number): boolean {
  if (event.type === 'removed') return n < event.below
  // Of a change that was skipped, only the instance knows what it was.
  return event.type === 'deliveries' && (event.skipped > 0 || event.deliveries.some((line) => line.n === n))
}

export function nameOf({ event, action }: Pick<DeliveryDetail, 'event' | 'action'>): string {
  return action === null ? event : `${event}.${action}`
}

interface NotLoadedProps {
  readonly loaded: Loaded<unknown>
  readonly n: number
  readonly query: ListQuery
}

/** Says why a delivery is not there, or that what is shown is all that is left of it. */
export function NotLoaded({ loaded: { value, problem }, n, query }: NotLoadedProps) {
  if (!problem) return value === null ? <p class="quiet loading">Reading #{n} …</p> : null
  if (problem.isMissing && value !== null)
    return (
      <p class="banner banner-warn" role="status">
        Retention removed #{n} from the journal. What you see is what was read before.
      </p>
    )
  if (!problem.isMissing && value !== null) return null
  return (
    <Empty title={problem.isMissing ? `#${n} is not in the journal` : `#${n} could not be read`}>
      <p>
        {problem.isMissing
          ? 'There is no entry with this number, or retention has removed it. serve --keep says how long entries stay.'
          : problem.message}
      </p>
      <p>
        <a href={addressOf({ page: 'list', query })}>Back to the deliveries</a>
      </p>
    </Empty>
  )
}

function Detail({ detail, query }: { readonly detail: DeliveryDetail; readonly query: ListQuery }) {
  const now = useStore(nowStore)
  return (
    <article class="detail">
      <DeliveryHead detail={detail} query={query} now={now} />
      <Actions detail={detail} />
      <section class="section" aria-labelledby="targets-title">
        <h2 id="targets-title">Targets</h2>
        <Targets detail={detail} />
        <Attempts key={detail.n} attempts={detail.attempts} now={now} />
      </section>
      <Payload key={`payload-${detail.n}`} detail={detail} />
      <section class="section" aria-labelledby="headers-title">
        <h2 id="headers-title">
          Headers <span class="section-count">{detail.headers.length}</span>
        </h2>
        <Headers headers={detail.headers} label="Headers of the delivery" />
      </section>
      <section class="section" aria-labelledby="proof-title">
        <h2 id="proof-title">Signature</h2>
        <Proof detail={detail} />
      </section>
    </article>
  )
}
