import type { View } from '../../address.js'
import { Empty } from '../../view/empty.js'
import { ComparePane } from '../compare/compare-pane.js'
import { DeliveryPane } from '../delivery/delivery-pane.js'
import { ListPane } from '../list/list-pane.js'

type DeliveriesView = View & { readonly page: 'list' | 'delivery' | 'compare' }

/** The list, and next to it what is open. On a narrow page only one of them shows. */
export function Deliveries({ view }: { readonly view: DeliveriesView }) {
  const { query } = view
  return (
    <div class={view.page === 'list' ? 'panes panes-list' : 'panes panes-detail'}>
      <ListPane query={query} openN={view.page === 'list' ? null : view.n} />
      {view.page === 'delivery' ? <DeliveryPane n={view.n} query={query} /> : null}
      {view.page === 'compare' ? <ComparePane n={view.n} other={view.other} query={query} /> : null}
      {view.page === 'list' ? <NothingOpen /> : null}
    </div>
  )
}

function NothingOpen() {
  return (
    <section class="pane pane-detail pane-nothing" aria-label="Delivery">
      <Empty title="Choose a delivery">
        <p>
          <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens, <kbd>?</kbd> lists all keys.
        </p>
      </Empty>
    </section>
  )
}
