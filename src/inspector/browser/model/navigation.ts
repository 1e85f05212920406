import { addressOf, parseAddress, type View } from '../../address.js'
import { createStore } from './store.js'

const START: View = { page: 'list', query: {} }

/** What the page shows. The address says the same. */
export const viewStore = createStore<View>(viewOf(location))

let isFocusDue = false

/**
 * Whether what is shown next takes the focus: after a link, but not after a step from one row to the next, nor from a field in
 * which the user has begun to type. Says so once.
 */
export function takeFocus(): boolean {
  const isDue = isFocusDue && document.activeElement?.matches('input, select, textarea') !== true
  isFocusDue = false
  return isDue
}

/** Shows a view. `replace` leaves no step in the history: for filters while they are typed, and steps from one row to the next. */
export function go(view: View, { replace = false }: { readonly replace?: boolean } = {}): void {
  const address = addressOf(view)
  if (address === location.pathname + location.search) return
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  isFocusDue = !replace
  viewStore.set(view)
}

/** Lets links within the inspector change the view instead of loading a page, and follows the browser's own Back and Forward. */
export function followLinks(signal: AbortSignal): void {
  addEventListener('popstate', () => viewStore.set(viewOf(location)), { signal })
  document.addEventListener('click', onClick, { signal })
}

function onClick(event: MouseEvent): void {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey
  if (!isPlain || event.defaultPrevented || !(event.target instanceof Element)) return
  const link = event.target.closest('a')
  if (!link || link.origin !== location.origin || link.hasAttribute('download') || link.target !== '') return
  const view = link.hash === '' ? parseAddress(link.pathname, link.search) : undefined
  if (!view) return
  event.preventDefault()
  go(view)
}

function viewOf({ pathname, search }: Location): View {
  return parseAddress(pathname, search) ?? START
}
