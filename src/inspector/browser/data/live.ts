import { BASE } from '../../address.js'
import type { LiveEvent } from '../../api.js'
import { createStore } from '../model/store.js'
import { getJson, RequestError } from './request.js'
import { accessStore } from './session.js'

export type Connection = 'connecting' | 'live' | 'away'

/** Whether what the page shows is kept up to date. */
export const connectionStore = createStore<Connection>('connecting')

/** Between two tries to reach an instance that has ended: soon enough for a restart, and hardly any work. */
const RETRY_MS = 1500

type Listener = (event: LiveEvent) => void

const listeners = new Set<Listener>()

const TYPES: Readonly<Record<LiveEvent['type'], true>> = {
  deliveries: true,
  refused: true,
  state: true,
  removed: true,
}

/** Calls `listener` with each event, until the function that it returns is called. */
export function onLive(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let source: EventSource | undefined
/** The id of the newest event: a new stream begins after it. */
let lastId = ''

/**
 * Follows the instance while the page can be seen. Browsers open six connections to a host at most, so that hidden tabs with a
 * stream each would keep another tab from loading.
 */
export function followLive(): void {
  const follow = (): void => (document.hidden ? disconnect() : connect())
  document.addEventListener('visibilitychange', follow)
  follow()
}

/**
 * Opens the stream of server-sent events, which the browser resumes after a break. Where it gives up, because the instance
 * answered with an error, this finds out why and connects again.
 */
function connect(): void {
  if (source) return
  const opened = new EventSource(
    `${BASE}/api/live${lastId === '' ? '' : `?after=${encodeURIComponent(lastId)}`}`,
  )
  source = opened
  opened.addEventListener('open', () => connectionStore.set('live'))
  opened.addEventListener('error', () => {
    connectionStore.set('away')
    if (opened.readyState !== EventSource.CLOSED) return
    source = undefined
    void reconnect()
  })
  for (const type of Object.keys(TYPES))
    opened.addEventListener(type, ({ data, lastEventId }: MessageEvent<string>) => {
      lastId = lastEventId || lastId
      const event: LiveEvent = JSON.parse(data)
      for (const listener of listeners) listener(event)
    })
}

function disconnect(): void {
  source?.close()
  source = undefined
  connectionStore.set('connecting')
}

/** Waits until the instance answers, or no longer knows this browser. A hidden page connects again when it is shown. */
async function reconnect(): Promise<void> {
  while (!document.hidden) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    try {
      await getJson('state')
      return document.hidden ? undefined : connect()
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
    }
    if (accessStore.get() === 'lost') return
  }
}
