import { render, useEffect } from 'hono/jsx/dom'
import type { View } from '../address.js'
import { Shell } from '../view/shell.js'
import { followLive } from './data/live.js'
import { followTime } from './data/now.js'
import { followRefused, refusedStore, totalOf } from './data/refused-count.js'
import { shareKey } from './data/session.js'
import { followTimeline } from './data/timeline-store.js'
import { Dialogs } from './dialogs/dialogs.js'
import { followKeys } from './keys.js'
import { followLinks, viewStore } from './model/navigation.js'
import { useStore } from './model/store.js'
import { Deliveries } from './pages/deliveries.js'
import { RefusedRequests } from './pages/refused.js'
import { StatePage } from './pages/state.js'
import { Banner, ConnectionState } from './ui/banner.js'
import { Toast } from './ui/toast.js'

/** The inspector in the browser: takes the place of the page that the server made. */
function App() {
  const view = useStore(viewStore)
  const refused = useStore(refusedStore)
  useEffect(() => {
    if (view.page === 'list') document.title = 'Deliveries · relay'
  }, [view])
  return (
    <>
      <Shell page={view.page} refused={totalOf(refused)} end={<ConnectionState />}>
        <Banner />
        <Content view={view} />
      </Shell>
      <Dialogs />
      <Toast />
    </>
  )
}

function Content({ view }: { readonly view: View }) {
  if (view.page === 'refused') return <RefusedRequests id={view.id} />
  if (view.page === 'state') return <StatePage />
  return <Deliveries view={view} />
}

const root = document.querySelector<HTMLElement>('#app')
if (root) {
  // As long as the page.
  const { signal } = new AbortController()
  followLinks(signal)
  followKeys(signal)
  followTime()
  shareKey()
  followLive()
  followTimeline()
  followRefused()
  render(<App />, root)
}
