import { useEffect } from 'hono/jsx/dom'
import type { LiveEvent, RefusedDetail, RefusedPage } from '../../api.js'
import { Empty } from '../../view/empty.js'
import { Refused, RefusedList } from '../../view/refused.js'
import { nowStore } from '../data/now.js'
import { useLoaded } from '../data/use-loaded.js'
import { useStore } from '../model/store.js'

/** The refused requests, and the one that is open. */
export function RefusedRequests({ id }: { readonly id: number | undefined }) {
  const { value, problem } = useLoaded<RefusedPage>('refused', isRefusal)
  const now = useStore(nowStore)
  useEffect(() => {
    document.title = `${id === undefined ? 'Refused requests' : `Refused request ${id}`} · relay`
  }, [id])
  return (
    <div class={id === undefined ? 'panes panes-list' : 'panes panes-detail'}>
      <div class="pane pane-list" data-scroller="refused">
        {value ? <RefusedList refused={value} now={now} {...(id !== undefined && { openId: id })} /> : null}
        {problem && !value ? <Empty title={problem.message} /> : null}
      </div>
      {id === undefined ? <NothingOpen /> : <RefusedRequest key={id} id={id} now={now} />}
    </div>
  )
}

function isRefusal(event: LiveEvent): boolean {
  return event.type === 'refused'
}

function RefusedRequest({ id, now }: { readonly id: number; readonly now: number }) {
  const { value, problem } = useLoaded<RefusedDetail>(`refused/${id}`, () => false)
  return (
    <section class="pane pane-detail" aria-label="Refused request" data-scroller="detail">
      {value ? <Refused detail={value} now={now} /> : null}
      {problem ? (
        <Empty title={problem.isMissing ? 'This request is no longer in the list' : 'It could not be read'}>
          <p>
            {problem.isMissing
              ? 'relay keeps the last 100 refused requests, until it is stopped.'
              : problem.message}
          </p>
        </Empty>
      ) : null}
    </section>
  )
}

function NothingOpen() {
  return (
    <section class="pane pane-detail pane-nothing" aria-label="Refused request">
      <Empty title="Choose a request">
        <p>It shows why relay refused it and what to do, as relay verify does.</p>
      </Empty>
    </section>
  )
}
