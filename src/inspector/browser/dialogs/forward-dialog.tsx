import { useState } from 'hono/jsx/dom'
import type { DeliveryDetail, ForwardRequest, Sent } from '../../api.js'
import { Visible } from '../../view/visible.js'
import { messageFrom, postJson } from '../data/request.js'
import { Dialog } from '../ui/dialog.js'
import { notify } from '../ui/toast.js'
import { closeDialog } from './open-dialog.js'

/** Forwards a delivery again, to all targets that match or to one. */
export function ForwardDialog({ detail: { n, routes } }: { readonly detail: DeliveryDetail }) {
  const [isBusy, setBusy] = useState(false)
  const forward = async (request: ForwardRequest, where: string): Promise<void> => {
    setBusy(true)
    try {
      await postJson<Sent>(`deliveries/${n}/forward`, request)
      notify(`Forwarding #${n} again to ${where}`)
      closeDialog()
    } catch (error) {
      setBusy(false)
      notify(messageFrom(error), true)
    }
  }
  if (routes.length === 0)
    return (
      <Dialog title={`Forward #${n} again`} onClose={closeDialog}>
        <p>
          No route matches this delivery, so there is nowhere to forward it. Add a route and start relay
          again:
        </p>
        <pre class="command">{`relay serve --forward '*=http://localhost:3000/webhook'`}</pre>
      </Dialog>
    )
  return (
    <Dialog title={`Forward #${n} again`} onClose={closeDialog}>
      <p class="quiet">The target gets the same bytes once more, also where it had succeeded.</p>
      <div class="choices">
        <button
          type="button"
          class="button button-main"
          data-first
          disabled={isBusy}
          onClick={() => void forward({}, routes.length === 1 ? (routes[0]?.name ?? '') : 'all targets')}
        >
          {routes.length === 1 ? 'Forward again' : `To all ${routes.length} targets`}
        </button>
        {routes.length === 1
          ? null
          : routes.map(({ id, name }) => (
              <button
                type="button"
                class="button"
                disabled={isBusy}
                onClick={() => void forward({ targets: [id] }, name)}
              >
                Only to <Visible text={name} />
              </button>
            ))}
      </div>
    </Dialog>
  )
}
