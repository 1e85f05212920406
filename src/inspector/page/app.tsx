import { signal } from '@preact/signals'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import type { DeliveryPage, RefusedPage } from '../api.js'
import { AddHookDialog, AddRouteDialog, AddSourceDialog } from './add.js'
import { addressOf, BASE, type View } from './address.js'
import { canOnlyRead, connection, followLive, getJson, onLive, open, shareKey } from './client.js'
import { command } from './command.js'
import { Compare, CompareDialog } from './compare.js'
import { DeliveryPane } from './delivery.js'
import { ForwardDialog, KeysDialog } from './dialogs.js'
import { EditDialog } from './edit.js'
import { formatCount } from './format.js'
import { Gate } from './gate.js'
import { followKeys } from './keys.js'
import { List } from './list.js'
import { dialog, followAddress, followLinks, go, message, messageFrom, view } from './model.js'
import { Empty, Icon } from './parts.js'
import { Refused } from './refused.js'
import { State } from './state.js'
import { TriggerButton, TriggerDialog } from './trigger.js'

/** Number of requests refused since relay started. */
const refused = signal(0)

const WORDS = { connecting: 'connecting', live: 'live', away: 'waiting', closed: 'closed' } as const

/** Frame of every view: the bar with three places, a banner about problems, and the view. */
function App() {
  const { page } = view.value
  const state = connection.value
  const isClosed = state === 'closed' || page === 'open'
  useEffect(() => {
    if (page === 'list') document.title = 'Deliveries · relay'
  }, [page])
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href={addressOf({ page: 'list', query: {} })}>
          relay
        </a>
        {isClosed ? null : (
          <>
            <nav aria-label="Inspector">
              <Place view={{ page: 'list', query: {} }} text="Deliveries" />
              <Place view={{ page: 'refused' }} text="Refused" count={refused.value} />
              <Place view={{ page: 'state' }} text="State" />
            </nav>
            <TriggerButton />
            <span class={`connection connection-${state}`} title={WORDS[state]}>
              <span>{WORDS[state]}</span>
            </span>
          </>
        )}
      </header>
      <main id="main" class="main" tabIndex={-1}>
        {isClosed ? (
          <Gate refusal={refusal} />
        ) : (
          <>
            <Banner />
            <Content view={view.value} />
          </>
        )}
      </main>
      <Dialogs />
      <div class="toasts" role="status" aria-live="polite">
        {message.value ? (
          <p class={message.value.isError ? 'toast toast-error' : 'toast'}>
            <Icon name={message.value.isError ? 'cross' : 'check'} />
            {message.value.text}
          </p>
        ) : null}
      </div>
    </>
  )
}

interface PlaceProps {
  readonly view: View
  readonly text: string
  readonly count?: number
}

function Place({ view: place, text, count = 0 }: PlaceProps) {
  const { page } = view.value
  const current = page === 'delivery' || page === 'compare' ? 'list' : page
  return (
    <a href={addressOf(place)} aria-current={place.page === current ? 'page' : undefined}>
      {text} {count > 0 ? <span class="badge">{formatCount(count)}</span> : null}
    </a>
  )
}

/** Banner about a problem that limits the page, if there is one. */
function Banner() {
  if (connection.value === 'away')
    return (
      <p class="banner banner-warn" role="status">
        <Icon name="ring" />
        relay stopped; waiting for it
      </p>
    )
  return canOnlyRead.value ? (
    <p class="banner" role="status">
      <span>
        This tab can only read. Run <code>{command('inspect')}</code> in a terminal to open one that can
        forward and edit.
      </span>
    </p>
  ) : null
}

function Content({ view }: { readonly view: View }) {
  if (view.page === 'refused') return <Refused id={view.id} />
  if (view.page === 'state') return <State />
  if (view.page === 'open') return null
  const { query } = view
  // The list and the open delivery next to it. A narrow page shows only one of them.
  return (
    <div class={view.page === 'list' ? 'panes panes-list' : `panes panes-detail panes-${view.page}`}>
      <List query={query} openN={view.page === 'list' ? null : view.n} />
      {view.page === 'delivery' ? <DeliveryPane n={view.n} query={query} /> : null}
      {view.page === 'compare' ? <Compare n={view.n} other={view.other} query={query} /> : null}
      {view.page === 'list' ? (
        <section class="pane pane-detail pane-nothing" aria-label="Delivery">
          <Empty title="Choose a delivery">
            <p>
              <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens, <kbd>?</kbd> lists all keys.
            </p>
          </Empty>
        </section>
      ) : null}
    </div>
  )
}

/** Dialogs that are not about a delivery. */
const PLAIN_DIALOGS = {
  keys: KeysDialog,
  trigger: TriggerDialog,
  route: AddRouteDialog,
  source: AddSourceDialog,
  hook: AddHookDialog,
} as const

/** The open dialog. */
function Dialogs() {
  const { value } = dialog
  if (value === null) return null
  if (value.kind === 'forward') return <ForwardDialog detail={value.detail} />
  if (value.kind === 'edit') return <EditDialog detail={value.detail} />
  if (value.kind === 'compare') return <CompareDialog detail={value.detail} />
  const Plain = PLAIN_DIALOGS[value.kind]
  return <Plain />
}

/** Reason why the code in the fragment did not open the inspector. */
let refusal: string | null = null

/**
 * Uses the code that `relay inspect` put into the fragment, which no server and no process list sees, and the entry to
 * show first. Resolves to true if that opened the inspector.
 */
async function enter(): Promise<boolean> {
  const [, code, entry] = /^#([\w-]{16,})(?:\/(\w+))?$/.exec(location.hash) ?? []
  if (code === undefined) return false
  const { pathname, search } = location
  history.replaceState(null, '', entry === undefined ? pathname + search : `${BASE}/deliveries/${entry}`)
  followAddress()
  try {
    await open(code)
    return true
  } catch (error) {
    refusal = messageFrom(error)
    return false
  }
}

/** Resolves `/inspect/deliveries/last`, for which only the journal has the number. */
async function findLast(): Promise<void> {
  if (location.pathname !== `${BASE}/deliveries/last`) return
  const page = await getJson<DeliveryPage>('deliveries?limit=1').catch(() => undefined)
  const [newest] = page?.deliveries ?? []
  go(newest ? { page: 'delivery', n: newest.n, query: {} } : { page: 'list', query: {} }, { replace: true })
}

async function countRefused(): Promise<void> {
  const page = await getJson<RefusedPage>('refused').catch(() => undefined)
  if (page) refused.value = Object.values(page.counts).reduce((sum, count) => sum + count, 0)
}

async function start(root: HTMLElement): Promise<void> {
  // Loaded again, since requests that the browser sent ahead were refused.
  if (await enter()) return location.replace(location.href)
  await findLast()
  followLinks()
  followKeys()
  shareKey()
  onLive((event) => {
    if (event.type === 'refused') refused.value = event.count
    if (event.type === 'stale') void countRefused()
  })
  render(<App />, root)
  if (view.value.page !== 'open') followLive()
}

const root = document.querySelector<HTMLElement>('#app')
if (root) void start(root)
