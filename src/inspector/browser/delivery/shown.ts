import type { DeliveryDetail } from '../../api.js'
import { createStore } from '../model/store.js'

/** The delivery that is shown, once it is read: what the keys `r` and `e` act on. */
export const shownStore = createStore<DeliveryDetail | null>(null)
