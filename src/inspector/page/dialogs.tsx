import { useState } from 'preact/hooks'
import type { DeliveryDetail, ForwardRequest, Sent } from '../api.js'
import { postJson, whyNot } from './client.js'
import { CompareDialog } from './compare.js'
import { Dialog } from './dialog.js'
import { EditDialog } from './edit.js'
import { dialog, messageFrom, notify } from './model.js'
import { Button, Visible } from './parts.js'

/** The dialog that is open. */
export function Dialogs() {
  const { value } = dialog
  if (!value) return null
  if (value.kind === 'keys') return <KeysDialog />
  if (value.kind === 'forward') return <ForwardDialog detail={value.detail} />
  if (value.kind === 'edit') return <EditDialog detail={value.detail} />
  return <CompareDialog detail={value.detail} />
}

/** Forwards a delivery again, to all targets that match or to one. */
function ForwardDialog({ detail: { n, routes } }: { readonly detail: DeliveryDetail }) {
  const [isBusy, setBusy] = useState(false)
  const forward = async (request: ForwardRequest, where: string): Promise<void> => {
    setBusy(true)
    const opened = dialog.value
    try {
      await postJson<Sent>(`deliveries/${n}/forward`, request)
      notify(`Forwarding #${n} again to ${where}`)
      // Meanwhile the user may have closed it, and opened another.
      if (dialog.value === opened) dialog.value = null
    } catch (error) {
      setBusy(false)
      notify(messageFrom(error), true)
    }
  }
  const reason = isBusy ? 'It is being forwarded.' : whyNot
  const [only] = routes
  if (!only)
    return (
      <Dialog title={`Forward #${n} again`}>
        <p>
          No route matches this delivery, so there is nowhere to forward it. Add a route and start relay
          again:
        </p>
        <pre class="command">{`relay serve --forward '*=http://localhost:3000/webhook'`}</pre>
      </Dialog>
    )
  const isOne = routes.length === 1
  return (
    <Dialog title={`Forward #${n} again`}>
      <p class="quiet">The target gets the same bytes once more, even if it succeeded there.</p>
      <div class="choices">
        <Button
          class="button button-main"
          isFirst
          reason={reason}
          onClick={() => void forward({}, isOne ? only.name : 'all targets')}
        >
          {isOne ? 'Forward again' : `To all ${routes.length} targets`}
        </Button>
        {isOne
          ? null
          : routes.map(({ id, name }) => (
              <Button reason={reason} onClick={() => void forward({ targets: [id] }, name)}>
                Only to <Visible text={name} />
              </Button>
            ))}
      </div>
      <Reason />
    </Dialog>
  )
}

/** Why nothing can be changed now, in an open dialog. */
export function Reason() {
  return whyNot.value === null ? null : (
    <p class="error-text" role="status">
      {whyNot.value}
    </p>
  )
}

type Keys = readonly (readonly [keys: readonly string[], what: string])[]

const KEYS: Keys = [
  [['j', '↓'], 'next (older)'],
  [['k', '↑'], 'previous (newer)'],
  [['Enter'], 'open it'],
  [['/'], 'search the payloads'],
  [['r'], 'forward it again'],
  [['e'], 'edit and send it'],
  [['Esc'], 'back to the list'],
  [['?'], 'these keys'],
]

const PAYLOAD_KEYS: Keys = [
  [['Enter'], 'fold and unfold a line'],
  [['Ctrl', 'F'], 'find'],
  [['Ctrl', 'Alt', '['], 'fold all'],
  [['Ctrl', 'Alt', ']'], 'unfold all'],
]

/** The keys, by where they work. */
function KeysDialog() {
  return (
    <Dialog title="Keys">
      <KeyTable keys={KEYS} title="Everywhere" />
      <KeyTable keys={PAYLOAD_KEYS} title="In a payload" />
    </Dialog>
  )
}

function KeyTable({ keys, title }: { readonly keys: Keys; readonly title: string }) {
  return (
    <>
      <h3>{title}</h3>
      <dl class="keys">
        {keys.map(([names, what]) => (
          <div>
            <dt>
              {names.map((name) => (
                <kbd>{name}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}
