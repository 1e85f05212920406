import { createStore } from '../model/store.js'

/** The current minute, in milliseconds: fine enough for times that say "today" or "yesterday". */
export const nowStore = createStore(Date.now())

const MINUTE_MS = 60_000

/** Keeps {@link nowStore} up to date. */
export function followTime(): void {
  setInterval(() => nowStore.set(Date.now()), MINUTE_MS)
}
