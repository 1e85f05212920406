import { computed, signal } from '@preact/signals'
import type { DeliveryDetail, ListQuery } from '../api.js'
import { addressOf, parseAddress, type View } from './address.js'

// What the page shows, apart from what it has read: the view, the dialog, a message, the time.

/** What is shown; the address says the same. */
export const view = signal<View>(viewOf(location))

/** The filters of the list, which stay while a delivery is open. */
export const query = computed<ListQuery>(() => ('query' in view.value ? view.value.query : {}))

/** The delivery that is shown, once it is loaded. */
export const detail = signal<DeliveryDetail | null>(null)

/** The row of the list that the keyboard is on. */
export const cursor = signal<{ readonly n: number; readonly wantsFocus: boolean } | null>(null)

export type OpenDialog =
  | { readonly kind: 'keys' }
  | { readonly kind: 'forward' | 'edit' | 'compare'; readonly detail: DeliveryDetail }

export const dialog = signal<OpenDialog | null>(null)

/** Whether the open dialog may be closed, which asks before an edit is lost. */
export const closing: { isAllowed: () => boolean } = { isAllowed: () => true }

/** Closes the open dialog, if there is one; false where the user stays in it. */
export function closeDialog(): boolean {
  if (dialog.value !== null && !closing.isAllowed()) return false
  dialog.value = null
  return true
}

/** The time to the minute: fine enough for times that say "today" or "yesterday". */
export const now = signal(Date.now())
setInterval(() => (now.value = Date.now()), 60_000)

/** Whether there is room for one column only. The style sheet has the same width. */
export const isNarrow = mediaSignal('(max-width: 45rem)')

/** Whether list and delivery are next to each other. The style sheet has the same width. */
export const isSideBySide = mediaSignal('(min-width: 68.75rem)')

function mediaSignal(condition: string) {
  const media = matchMedia(condition)
  const matches = signal(media.matches)
  media.addEventListener('change', () => (matches.value = media.matches))
  return matches
}

/** Long enough to read a sentence twice. */
const SHOWN_MS = 6000

export const message = signal<{ readonly text: string; readonly isError: boolean } | null>(null)
let timer: ReturnType<typeof setTimeout> | undefined

/** Shows a short message, and lets screen readers say it. */
export function notify(text: string, isError = false): void {
  message.value = { text, isError }
  clearTimeout(timer)
  timer = setTimeout(() => (message.value = null), SHOWN_MS)
}

/** Puts text on the clipboard once it is there, and says so. */
export async function copy(what: string, text: string | Promise<string>): Promise<void> {
  try {
    // Browsers leave it out elsewhere.
    if (!isSecureContext) throw new Error('the browser allows it on https and localhost only')
    await navigator.clipboard.writeText(await text)
    notify(`Copied ${what}`)
  } catch (error) {
    notify(`Could not copy ${what}: ${messageFrom(error)}`, true)
  }
}

/** What the fields of a form hold, by name. */
export function fieldsOf(form: HTMLFormElement): URLSearchParams {
  const fields = new URLSearchParams()
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') fields.set(name, value)
  return fields
}

/** What an error says to a person. */
export function messageFrom(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * Moves the focus to something that has just been drawn, unless the user is in a field: a render must never take what is being
 * typed. Nor may it scroll.
 */
export function moveFocus(element: HTMLElement | null | undefined): void {
  if (document.activeElement?.matches('input, select, textarea') !== true)
    element?.focus({ preventScroll: true })
}

let isFocusDue = false

/** Moves the focus to the heading of what is shown, once: after a link, but not after a step from one row to the next. */
export function focusHeading(heading: HTMLElement | null | undefined): void {
  if (isFocusDue) moveFocus(heading)
  isFocusDue = false
}

// After a key or a click the user has moved on: what loads late must not take the focus from where the next key goes.
for (const type of ['keydown', 'pointerdown'])
  document.addEventListener(type, () => (isFocusDue = false), { capture: true })

/** Shows a view. `replace` leaves no step in the history: for filters while they are typed, and steps from one row to the next. */
export function go(next: View, { replace = false }: { readonly replace?: boolean } = {}): void {
  const address = addressOf(next)
  if (address === location.pathname + location.search) return
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  isFocusDue = !replace
  view.value = next
}

/** Lets links within the inspector change the view instead of loading a page, and follows the browser's own Back and Forward. */
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

/** Shows what the address says. */
export function followAddress(): void {
  view.value = viewOf(location)
}

function viewOf({ pathname, search }: Location): View {
  return parseAddress(pathname, search) ?? { page: 'list', query: {} }
}
