import type { DeliveryDetail } from '../../api.js'
import { createStore } from '../model/store.js'

/** The dialog that is open, if one is. */
export type OpenDialog =
  | { readonly kind: 'keys' }
  | { readonly kind: 'forward' | 'edit' | 'compare'; readonly detail: DeliveryDetail }

export const dialogStore = createStore<OpenDialog | null>(null)

export function openDialog(dialog: OpenDialog): void {
  dialogStore.set(dialog)
}

export function closeDialog(): void {
  dialogStore.set(null)
}
