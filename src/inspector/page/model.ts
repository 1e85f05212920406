import { computed, signal } from '@preact/signals'
import type { DeliveryDetail, ListQuery } from '../api.js'
import { addressOf, parseAddress, type View } from './address.js'

// State of the page, apart from data that it has read: the view, the dialog, a message, the time.

/** The current view, equal to the address. */
export const view = signal<View>(viewOf(location))

/** Filters of the list. They stay while a delivery is open. */
export const query = computed<ListQuery>(() => ('query' in view.value ? view.value.query : {}))

/** The open delivery, once it is loaded. */
export const detail = signal<DeliveryDetail | null>(null)

/** Row of the list under the keyboard's cursor. */
export const cursor = signal<{ readonly n: number; readonly wantsFocus: boolean } | null>(null)

export type OpenDialog =
  | { readonly kind: 'keys' }
  | { readonly kind: 'trigger' }
  | { readonly kind: 'route' }
  | { readonly kind: 'source' }
  | { readonly kind: 'hook' }
  | { readonly kind: 'forward' | 'edit' | 'compare'; readonly detail: DeliveryDetail }

export const dialog = signal<OpenDialog | null>(null)

/** Permission to close the open dialog. An edit asks before it is lost. */
export const closing: { isAllowed: () => boolean } = { isAllowed: () => true }

/** Closes the open dialog, if there is one. False if the user stays in it. */
export function closeDialog(): boolean {
  if (dialog.value !== null && !closing.isAllowed()) return false
  dialog.value = null
  return true
}

/** Current time to the minute, for times such as "today" or "yesterday". */
export const now = signal(Date.now())
setInterval(() => (now.value = Date.now()), 60_000)

/** True if there is room for one column only. The style sheet has the same width. */
export const isNarrow = mediaSignal('(max-width: 45rem)')

/** True if list and delivery are side by side. The style sheet has the same width. */
export const isSideBySide = mediaSignal('(min-width: 68.75rem)')

function mediaSignal(condition: string) {
  const media = matchMedia(condition)
  const matches = signal(media.matches)
  media.addEventListener('change', () => (matches.value = media.matches))
  return matches
}

/** Time that a message is shown: long enough to read a sentence twice. Milliseconds. */
const SHOWN_MS = 6000

export const message = signal<{ readonly text: string; readonly isError: boolean } | null>(null)
let timer: ReturnType<typeof setTimeout> | undefined

/** Shows a short message, which screen readers announce. */
export function notify(text: string, isError = false): void {
  message.value = { text, isError }
  clearTimeout(timer)
  timer = setTimeout(() => (message.value = null), SHOWN_MS)
}

/** Copies text to the clipboard once it is loaded, and shows a message. */
export async function copy(what: string, text: string | Promise<string>): Promise<void> {
  try {
    // Without a secure context, browsers have no clipboard.
    if (!isSecureContext) throw new Error('the browser allows it on https and localhost only')
    await navigator.clipboard.writeText(await text)
    notify(`Copied ${what}`)
  } catch (error) {
    notify(`Could not copy ${what}: ${messageFrom(error)}`, true)
  }
}

/** Returns the values of a form's fields by name. */
export function formValues(form: HTMLFormElement): URLSearchParams {
  const fields = new URLSearchParams()
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') fields.set(name, value)
  return fields
}

/** Returns the message of an error. */
export function messageFrom(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * Moves the focus to a new element, unless the user is in a field: a render must never interrupt typing. It does not
 * scroll.
 */
export function moveFocus(element: HTMLElement | null | undefined): void {
  if (document.activeElement?.matches('input, select, textarea') !== true)
    element?.focus({ preventScroll: true })
}

let isFocusDue = false

/** Moves the focus to the heading of a view, once: after a link, but not after a step from one row to the next. */
export function focusHeading(heading: HTMLElement | null | undefined): void {
  if (isFocusDue) moveFocus(heading)
  isFocusDue = false
}

// After a key or a click the user has moved on, so content that loads late must not take the focus.
for (const type of ['keydown', 'pointerdown'])
  document.addEventListener(type, () => (isFocusDue = false), { capture: true })

/**
 * Shows a view. `replace` adds no step to the history: for filters while the user types, and for steps from one row to
 * the next.
 */
export function go(next: View, { replace = false }: { readonly replace?: boolean } = {}): void {
  const address = addressOf(next)
  if (address === location.pathname + location.search) return
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  isFocusDue = !replace
  view.value = next
}

/**
 * Makes links within the inspector change the view instead of loading a page, and follows the browser's Back and
 * Forward.
 */
export function followLinks(): void {
  addEventListener('popstate', () => {
    const shown = view.value
    if (!closeDialog()) return go(shown)
    isFocusDue = true
    followAddress()
    if (shown.page === 'delivery' && view.value.page === 'list')
      cursor.value = { n: shown.n, wantsFocus: true }
  })
  document.addEventListener('click', (event) => {
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey
    if (!isPlain || event.defaultPrevented || !(event.target instanceof Element)) return
    const link = event.target.closest('a')
    if (!link || link.origin !== location.origin || link.hasAttribute('download') || link.target !== '')
      return
    const next = link.hash === '' ? parseAddress(link.pathname, link.search) : undefined
    if (!next) return
    event.preventDefault()
    go(next)
  })
}

/** Shows the view of the address. */
export function followAddress(): void {
  view.value = viewOf(location)
}

function viewOf({ pathname, search }: Location): View {
  return parseAddress(pathname, search) ?? { page: 'list', query: {} }
}
