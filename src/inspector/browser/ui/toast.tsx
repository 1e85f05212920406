import { Icon } from '../../view/icon.js'
import { createStore, useStore } from '../model/store.js'

interface Message {
  readonly text: string
  readonly isError: boolean
}

/** Long enough to read a sentence twice. */
const SHOWN_MS = 6000

const messageStore = createStore<Message | null>(null)
let timer: ReturnType<typeof setTimeout> | undefined

/** Shows a short message, and lets screen readers say it. */
export function notify(text: string, isError = false): void {
  messageStore.set({ text, isError })
  clearTimeout(timer)
  timer = setTimeout(() => messageStore.set(null), SHOWN_MS)
}

/** Where messages appear. */
export function Toast() {
  const message = useStore(messageStore)
  return (
    <div class="toasts" role="status" aria-live="polite">
      {message ? (
        <p class={message.isError ? 'toast toast-error' : 'toast'}>
          <Icon name={message.isError ? 'cross' : 'check'} />
          {message.text}
        </p>
      ) : null}
    </div>
  )
}
