import { shownStore } from './delivery/shown.js'
import { dialogStore, openDialog } from './dialogs/open-dialog.js'
import { cursorStore, listHandle } from './list/cursor.js'
import { lineNear } from './list/list-pane.js'
import { listStore } from './data/list-store.js'
import { keyStore } from './data/session.js'
import { go, viewStore } from './model/navigation.js'

/** Where list and delivery stand side by side; the style sheet has the same. */
const SIDE_BY_SIDE = '(min-width: 1100px)'

/** Lets the keyboard do what the pointer does. */
export function followKeys(signal: AbortSignal): void {
  document.addEventListener('keydown', onKeyDown, { signal })
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || dialogStore.get()) return
  const isTyping =
    event.target instanceof Element && event.target.matches('input, select, textarea, [contenteditable]')
  if (isTyping) {
    if (event.key === 'Escape' && event.target instanceof HTMLElement) event.target.blur()
    return
  }
  if (actionOf(event)?.()) event.preventDefault()
}

/** What a key does here: it says whether it did anything. */
function actionOf(event: KeyboardEvent): (() => boolean) | undefined {
  switch (event.key) {
    case 'j':
      return () => step(1)
    case 'k':
      return () => step(-1)
    case 'ArrowDown':
      return isOnList(event) ? () => step(1) : undefined
    case 'ArrowUp':
      return isOnList(event) ? () => step(-1) : undefined
    case '/':
      return focusSearch
    case 'r':
      return () => openForShown('forward')
    case 'e':
      return () => openForShown('edit')
    case '?':
      return () => {
        openDialog({ kind: 'keys' })
        return true
      }
    case 'Escape':
      return backToList
    default:
      return undefined
  }
}

/** Arrow keys scroll whatever else has the focus. */
function isOnList({ target }: KeyboardEvent): boolean {
  return (
    target === document.body || (target instanceof Element && target.closest('.rows, .pane-list') !== null)
  )
}

/** Moves to the next (1) or previous (-1) delivery; one that is open next to the list or alone is replaced by it. */
function step(steps: 1 | -1): boolean {
  const view = viewStore.get()
  if (view.page !== 'list' && view.page !== 'delivery') return false
  const from = view.page === 'delivery' ? view.n : cursorStore.get().n
  const line = lineNear(from, steps)
  if (!line) return false
  listHandle.scrollTo?.(listStore.get().model.lines.indexOf(line))
  const isListShown = view.page === 'list' || matchMedia(SIDE_BY_SIDE).matches
  cursorStore.set({ n: line.n, wantsFocus: isListShown })
  if (view.page === 'delivery') go({ ...view, n: line.n }, { replace: true })
  return true
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('.filters input[type="search"]')
  field?.focus()
  field?.select()
  return field !== null
}

function openForShown(kind: 'forward' | 'edit'): boolean {
  const detail = shownStore.get()
  if (!detail || keyStore.get() === null || (kind === 'edit' && detail.json === null)) return false
  openDialog({ kind, detail })
  return true
}

/** From a delivery to the list, from a comparison to its delivery, from a refused request to all of them. */
function backToList(): boolean {
  const view = viewStore.get()
  if (view.page === 'compare') go({ page: 'delivery', n: view.n, query: view.query })
  else if (view.page === 'delivery') {
    cursorStore.set({ n: view.n, wantsFocus: true })
    go({ page: 'list', query: view.query })
  } else if (view.page === 'refused' && view.id !== undefined) go({ page: 'refused' })
  else return false
  return true
}
