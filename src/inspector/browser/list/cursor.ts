import { createStore } from '../model/store.js'

/** The row that the keyboard is on. `wantsFocus` until the row is rendered and has the focus. */
export const cursorStore = createStore<{ readonly n: number; readonly wantsFocus: boolean }>({
  n: 0,
  wantsFocus: false,
})

/** Moves a row of the list into view, while the list is shown. */
export const listHandle: { scrollTo?: (index: number) => void } = {}

export function scrollListToTop(): void {
  document.querySelector('[data-scroller="list"]')?.scrollTo({ top: 0 })
}
