import { useRef, useState } from 'hono/jsx/dom'
import type { DeliveryDetail, DeliveryLine } from '../../api.js'
import { saidTime } from '../../view/format.js'
import { EventName, Subject } from '../../view/row.js'
import { listStore } from '../data/list-store.js'
import { go, viewStore } from '../model/navigation.js'
import { Dialog } from '../ui/dialog.js'
import { closeDialog } from './open-dialog.js'

/** The deliveries offered: those that are most alike, the newest first. */
const MAX_OFFERED = 8

/** Chooses the delivery to compare with: one of those that are alike, or any by its number. */
export function CompareDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const input = useRef<HTMLInputElement>(null)
  const [offered] = useState(() => alike(detail, listStore.get().model.lines))
  const compare = (other: number): void => {
    const view = viewStore.get()
    closeDialog()
    go({ page: 'compare', n: detail.n, other, query: 'query' in view ? view.query : {} })
  }
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    const other = Number(input.current?.value)
    if (Number.isSafeInteger(other) && other > 0) compare(other)
  }
  return (
    <Dialog title={`Compare #${detail.n} with`} onClose={closeDialog}>
      <form class="line-form" onSubmit={onSubmit}>
        <label for="other">Number</label>
        <input id="other" ref={input} data-first type="number" min={1} step={1} required />
        <button type="submit" class="button button-main">
          Compare
        </button>
      </form>
      {offered.length === 0 ? null : <p class="quiet">Or with one that is alike:</p>}
      <ul class="offered">
        {offered.map((line) => (
          <li>
            <button type="button" class="offer" onClick={() => compare(line.n)}>
              <span class="offer-n">#{line.n}</span>
              <EventName line={line} />
              <span class="quiet">
                <Subject line={line} />
              </span>
              <span class="quiet">{saidTime(line.receivedAt, Date.now())}</span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

/** Others of the same event, those of the same subject first. */
function alike(detail: DeliveryDetail, lines: readonly DeliveryLine[]): readonly DeliveryLine[] {
  const score = (line: DeliveryLine): number =>
    Number(line.action === detail.action) +
    2 * Number(line.repo === detail.repo) +
    4 * Number(line.subject === detail.subject)
  return lines
    .filter(({ n, event }) => n !== detail.n && event === detail.event)
    .toSorted((one, other) => score(other) - score(one))
    .slice(0, MAX_OFFERED)
}
