import type { ServerResponse } from 'node:http'
import { RelayError, toRelayError } from '../base/errors.js'
import type { RelayEvent } from '../events/events.js'
import type { JournalChange } from '../journal/journal.js'
import type { LiveEvent } from './api.js'
import { linesOf } from './deliveries.js'
import type { InspectorParts } from './parts.js'

/** A change of something that an open page shows. Names what to read again, without the new value. */
export type Change =
  | JournalChange
  /** Another relay of the profile changed entries. Which ones is not known. */
  | { readonly type: 'stale' }
  /** A request was refused. */
  | { readonly type: 'refused' }
  /** A target, a tunnel, a hook or the settings changed. */
  | { readonly type: 'state' }

/** A page that reads a stream. */
interface Client {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** True while it may still read. @throws RelayError `storage` */
  readonly isOpen: () => Promise<boolean>
  /** The HTTP response; undefined for a request made in-process. */
  readonly outgoing: ServerResponse | undefined
}

/** Maximum of open streams, above the number of pages that a person opens. */
const MAX_PAGES = 20
/**
 * Time that collects changes before they are sent: ten times a second is as often as a person sees rows change.
 * Milliseconds.
 */
const PERIOD_MS = 100
/** Maximum of entries in one event, above what a window shows. */
const MAX_LINES = 200
/** Time between heartbeats, below the minute after which the service closes an idle connection. Milliseconds. */
const HEARTBEAT_MS = 15_000
/**
 * Time for the last bytes of a stream when relay stops. Without a limit, a page that does not read would keep relay
 * running. Milliseconds.
 */
const CLOSE_LIMIT_MS = 500
/**
 * Maximum of unread bytes of a page: 1 MiB. The stream is then closed; the page connects again and reads what it shows.
 */
const MAX_UNREAD = 1_048_576

const HEADERS = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' }
const HEARTBEAT = Buffer.from(':\n\n')

/**
 * Streams of changes to all open pages. {@link PERIOD_MS} after a change, everything that changed is read once. Events
 * are not numbered and not repeated: a page reads what it shows after each connection.
 */
export class LiveHub {
  readonly #parts: InspectorParts
  readonly #clients = new Set<Client>()
  /** Changes to send: entries by number, others by type. */
  #due = new Map<number | string, Change>()
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined

  constructor(parts: InspectorParts) {
    this.#parts = parts
    parts.stopped.addEventListener('abort', () => {
      clearTimeout(this.#timer)
      for (const client of this.#clients) {
        this.#end(client)
        setTimeout(() => client.outgoing?.destroy(), CLOSE_LIMIT_MS).unref()
      }
    })
  }

  /** Handles an event. Must be cheap and does not throw, since every event of the instance passes here. */
  onEvent(event: RelayEvent): void {
    const change = changeOf(event)
    if (change) this.changed(change)
    // Deliveries that wait for the target wait for another reason now.
    if (event.type === 'target') this.changed({ type: 'stale' })
  }

  changed(change: Change): void {
    if (this.#clients.size === 0) return
    this.#due.set(change.type === 'changed' ? change.n : change.type, change)
    this.#schedule()
  }

  /**
   * Opens a stream of {@link LiveEvent}s. The first has the number of refused requests. It ends when the instance
   * stops, or when the page may no longer read.
   * @throws RelayError `unavailable` while {@link MAX_PAGES} streams are open
   */
  open(page: Omit<Client, 'controller'>): Response {
    if (this.#parts.stopped.aborted) throw new RelayError('unavailable', 'relay is stopping')
    if (this.#clients.size >= MAX_PAGES)
      throw new RelayError('unavailable', `${MAX_PAGES} inspectors are open. Close one`, { retryAfter: 10 })
    let gone = (): void => {}
    const start = (controller: Client['controller']): void => {
      const client = { ...page, controller }
      this.#clients.add(client)
      this.#heartbeat ??= setInterval(() => void this.#beat(), HEARTBEAT_MS).unref()
      controller.enqueue(encoded(this.#refused()))
      gone = () => this.#remove(client)
    }
    const size = new ByteLengthQueuingStrategy({ highWaterMark: MAX_UNREAD })
    const stream = new ReadableStream<Uint8Array>({ start, cancel: () => gone() }, size)
    page.outgoing?.once('close', gone)
    // Node keeps a connection that the client has half closed, and that is how a page that ends closes it.
    page.outgoing?.socket?.once('end', () => page.outgoing?.destroy())
    return new Response(stream, { headers: HEADERS })
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => void this.#flush(), PERIOD_MS).unref()
  }

  /** Sends the changes. The next timer starts only afterwards, so that a slow disk slows it down. Does not reject. */
  async #flush(): Promise<void> {
    const changes = [...this.#due.values()]
    this.#due = new Map()
    let isLost = false
    try {
      const events = this.#clients.size > 0 ? await this.#events(changes) : []
      const bytes = Buffer.concat(events.map(encoded))
      if (bytes.length > 0) for (const client of this.#clients) this.#send(client, bytes)
    } catch (error) {
      isLost = true
      this.#parts.log.warn(`open inspectors could not be updated: ${toRelayError(error).message}`)
    }
    this.#timer = undefined
    if (this.#due.size > 0) this.#schedule()
    // Sent with the next change, since reading now would fail again.
    if (isLost) this.#due.set('stale', { type: 'stale' })
  }

  async #events(changes: readonly Change[]): Promise<readonly LiveEvent[]> {
    const numbers = changes.flatMap((change) => (change.type === 'changed' ? [change.n] : []))
    const isTooMany = numbers.length > MAX_LINES
    const isStale = isTooMany || changes.some(({ type }) => type === 'stale')
    const ordered = numbers.toSorted((one, other) => one - other)
    const lines = isTooMany ? [] : await linesOf(this.#parts, await this.#parts.journal.summaries(ordered))
    return [
      ...(isStale ? [{ type: 'stale' } as const] : []),
      ...(lines.length > 0 ? [{ type: 'lines', lines } as const] : []),
      ...changes.flatMap((change): LiveEvent[] => {
        if (change.type === 'refused') return [this.#refused()]
        if (change.type === 'removed') return [{ type: 'removed', below: change.oldest }]
        return change.type === 'state' ? [change] : []
      }),
    ]
  }

  #refused(): LiveEvent {
    const counts = Object.values(this.#parts.refusals.list.counts())
    return { type: 'refused', count: counts.reduce((sum, count) => sum + count, 0) }
  }

  #send(client: Client, bytes: Uint8Array): void {
    if ((client.controller.desiredSize ?? 0) > 0) return client.controller.enqueue(bytes)
    // Destroyed, since closing would first wait for the unread bytes.
    client.outgoing?.destroy()
    this.#remove(client)
  }

  async #beat(): Promise<void> {
    for (const client of this.#clients) {
      const isOpen = await client.isOpen().catch(() => true)
      if (!this.#clients.has(client)) continue
      if (isOpen) this.#send(client, HEARTBEAT)
      else this.#end(client)
    }
  }

  #end(client: Client): void {
    this.#remove(client)
    client.controller.close()
  }

  #remove(client: Client): void {
    this.#clients.delete(client)
    if (this.#clients.size > 0) return
    clearInterval(this.#heartbeat)
    this.#heartbeat = undefined
  }
}

/** Events that change the state page. The journal announces the changes of deliveries and attempts. */
const OF_STATE: ReadonlySet<RelayEvent['type']> = new Set(['target', 'tunnel', 'hook', 'turn', 'settings'])

/** Maps an event to a change; undefined if no page shows it. */
function changeOf(event: RelayEvent): Change | undefined {
  const { type } = event
  if (type === 'changed' || type === 'removed' || type === 'refused' || type === 'stale') return event
  return OF_STATE.has(type) ? { type: 'state' } : undefined
}

function encoded(event: LiveEvent): Uint8Array {
  return Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
}
