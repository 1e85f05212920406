import { useStore } from '../model/store.js'
import { CompareDialog } from './compare-dialog.js'
import { EditDialog } from './edit-dialog.js'
import { ForwardDialog } from './forward-dialog.js'
import { KeysDialog } from './keys-dialog.js'
import { dialogStore } from './open-dialog.js'

/** The dialog that is open. */
export function Dialogs() {
  const dialog = useStore(dialogStore)
  if (!dialog) return null
  if (dialog.kind === 'keys') return <KeysDialog />
  if (dialog.kind === 'forward') return <ForwardDialog detail={dialog.detail} />
  if (dialog.kind === 'edit') return <EditDialog detail={dialog.detail} />
  return <CompareDialog detail={dialog.detail} />
}
