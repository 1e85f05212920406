import { createStore } from '../model/store.js'

/** Where the page that opened the inspector left the key that changes need. */
const KEY_ITEM = 'relay-inspect-key'

/** Tabs of this address ask each other for the key by this name. */
const CHANNEL = 'relay-inspect'

/** The key that every change needs; null while this tab can only read. */
export const keyStore = createStore<string | null>(sessionStorage.getItem(KEY_ITEM))

/** Whether the instance knows this browser. It forgets all of them when it ends. */
export const accessStore = createStore<'open' | 'lost'>('open')

/** Asks other tabs for the key, and answers those that ask. */
export function shareKey(): void {
  const channel = new BroadcastChannel(CHANNEL)
  // A channel reaches this origin only.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  const send = (message: unknown): void => channel.postMessage(message)
  channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    const [key, given] = [keyStore.get(), keyIn(data)]
    if (data === 'ask' && key !== null) send({ key })
    else if (given !== undefined && key === null) keep(given)
  })
  if (keyStore.get() === null) send('ask')
}

function keep(key: string): void {
  sessionStorage.setItem(KEY_ITEM, key)
  keyStore.set(key)
}

function keyIn(data: unknown): string | undefined {
  if (typeof data !== 'object' || data === null || !('key' in data)) return undefined
  return typeof data.key === 'string' ? data.key : undefined
}
