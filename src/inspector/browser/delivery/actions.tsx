import { BASE } from '../../address.js'
import type { DeliveryDetail } from '../../api.js'
import { Icon, type IconName } from '../../view/icon.js'
import { getText } from '../data/request.js'
import { keyStore } from '../data/session.js'
import { openDialog } from '../dialogs/open-dialog.js'
import { useStore } from '../model/store.js'
import { copy } from '../ui/copy.js'

/** What can be done with a delivery. What changes something needs a tab with the key. */
export function Actions({ detail }: { readonly detail: DeliveryDetail }) {
  const mayChange = useStore(keyStore) !== null
  const path = `deliveries/${detail.n}`
  return (
    <div class="actions" role="toolbar" aria-label="Actions">
      <Action
        text="Forward again"
        icon="again"
        isMain
        isOff={!mayChange}
        onClick={() => openDialog({ kind: 'forward', detail })}
      />
      <Action
        text="Edit and send"
        icon="pen"
        isOff={!mayChange || detail.json === null}
        onClick={() => openDialog({ kind: 'edit', detail })}
      />
      <Action text="Compare with…" icon="diff" onClick={() => openDialog({ kind: 'compare', detail })} />
      <Action
        text="Copy as curl"
        icon="copies"
        onClick={() => void copy('the curl command', getText(`${path}/curl`))}
      />
      <Action
        text="Copy fixture"
        icon="copies"
        onClick={() => void copy('the fixture', getText(`${path}/fixture`))}
      />
      <a class="button" href={`${BASE}/api/${path}/fixture`} download>
        <Icon name="saved" />
        Download fixture
      </a>
    </div>
  )
}

interface ActionProps {
  readonly text: string
  readonly icon: IconName
  readonly isMain?: boolean
  readonly isOff?: boolean
  readonly onClick: () => void
}

function Action({ text, icon, isMain = false, isOff = false, onClick }: ActionProps) {
  return (
    <button type="button" class={isMain ? 'button button-main' : 'button'} disabled={isOff} onClick={onClick}>
      <Icon name={icon} />
      {text}
    </button>
  )
}
