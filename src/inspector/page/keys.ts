import { whyNot } from './client.js'
import { lineNear, lines } from './list-store.js'
import { cursor, detail, dialog, go, isSideBySide, notify, view } from './model.js'
import { hasJson } from './payload.js'

/** Handles the keyboard, with the same actions as the pointer. */
export function followKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || dialog.value) return
    // The first element of the path, since the event's target does not reach into a payload's shadow tree.
    const [target] = event.composedPath()
    if (target instanceof HTMLElement && target.matches('input, select, textarea, [contenteditable=true]')) {
      if (event.key === 'Escape') target.blur()
    } else if (ACTIONS[event.key]?.(event)) event.preventDefault()
  })
}

/** Actions by key. They return false if the key has no effect here. */
const ACTIONS: Readonly<Record<string, (event: KeyboardEvent) => boolean>> = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: (event) => isOnList(event) && step(1),
  ArrowUp: (event) => isOnList(event) && step(-1),
  '/': focusSearch,
  r: () => openForShown('forward'),
  e: () => openForShown('edit'),
  t: () => {
    if (whyNot.value !== null) return refuse(whyNot.value)
    dialog.value = { kind: 'trigger' }
    return true
  },
  '?': () => {
    dialog.value = { kind: 'keys' }
    return true
  },
  Escape: goBack,
}

/** True if the list has the focus: elsewhere, arrow keys scroll. */
function isOnList({ target }: KeyboardEvent): boolean {
  return target === document.body || (target instanceof Element && target.closest('.pane-list') !== null)
}

/** Moves to the next (1) or previous (-1) delivery. An open delivery is replaced by it. */
function step(steps: 1 | -1): boolean {
  const shown = view.value
  if (shown.page !== 'list' && shown.page !== 'delivery') return false
  const isList = shown.page === 'list'
  const line = lineNear(isList ? cursor.value?.n : shown.n, steps) ?? (isList ? lines.value[0] : undefined)
  if (line) cursor.value = { n: line.n, wantsFocus: isList || isSideBySide.value }
  // A delivery that is not in the list has its neighbours from the journal.
  const open = !isList && detail.value?.n === shown.n ? detail.value : null
  const n = line?.n ?? (steps === 1 ? open?.older : open?.newer) ?? undefined
  if (!isList && n !== undefined) go({ ...shown, n }, { replace: true })
  return n !== undefined
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('.filters input[type="search"]')
  if (!field?.checkVisibility()) return refuse('The search is above the list of deliveries.')
  field.focus()
  field.select()
  return true
}

function openForShown(kind: 'forward' | 'edit'): boolean {
  const shown = detail.value
  if (!shown) return refuse('No delivery is open.')
  if (whyNot.value !== null) return refuse(whyNot.value)
  if (kind === 'edit' && !hasJson(shown)) return refuse('Only a JSON payload can be edited.')
  dialog.value = { kind, detail: shown }
  return true
}

/** Explains why a key has no effect here. */
function refuse(reason: string): boolean {
  notify(reason, true)
  return true
}

/** Goes from a delivery to the list, from a comparison to its delivery, or from a refused request to all of them. */
function goBack(): boolean {
  const shown = view.value
  if (shown.page === 'compare') go({ page: 'delivery', n: shown.n, query: shown.query })
  else if (shown.page === 'delivery') {
    cursor.value = { n: shown.n, wantsFocus: true }
    go({ page: 'list', query: shown.query })
  } else if (shown.page === 'refused' && shown.id !== undefined) go({ page: 'refused' })
  else return false
  return true
}
