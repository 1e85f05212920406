import type { ServerResponse } from 'node:http'
import { RelayError, toRelayError } from '../base/errors.js'
import type { RelayEvent } from '../events/events.js'
import type { JournalChange } from '../journal/journal.js'
import type { LiveEvent } from './api.js'
import { linesOf } from './deliveries.js'
import type { InspectorParts } from './parts.js'

/** Something that an open page shows has changed. Says what to read again, not what it is now. */
export type Change =
  | JournalChange
  /** Another relay of the profile has changed entries, which are not known. */
  | { readonly type: 'stale' }
  /** A request was refused. */
  | { readonly type: 'refused' }
  /** A target, a tunnel, a hook or the settings have changed. */
  | { readonly type: 'state' }

/** A page that reads a stream. */
interface Client {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** Whether it may still read. @throws RelayError `storage` */
  readonly isOpen: () => Promise<boolean>
  /** Its answer; undefined for a request made in-process. */
  readonly outgoing: ServerResponse | undefined
}

/** Open streams at once: more pages than a person keeps open. */
const MAX_PAGES = 20
/** Ten times a second: as often as a person can see rows change. */
const PERIOD_MS = 100
/** Entries that one event has: more than a window shows. */
const MAX_LINES = 200
/** Shorter than the minute after which the service closes a connection without a byte. */
const HEARTBEAT_MS = 15_000
/** For the last bytes of a stream at the end of relay: a page that does not read would keep relay from ending. Milliseconds. */
const CLOSE_LIMIT_MS = 500
/** 1 MiB: what a stream may hold for a page that reads slowly. Then it is closed; the page connects again and reads what it shows. */
const MAX_UNREAD = 1_048_576

const HEADERS = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' }
const HEARTBEAT = Buffer.from(':\n\n')

/**
 * Sends all open pages what changes: {@link PERIOD_MS} after a change, what has changed by then is read once. Nothing is numbered or
 * sent again; a page that connects reads what it shows.
 */
export class LiveHub {
  readonly #parts: InspectorParts
  readonly #clients = new Set<Client>()
  /** What is to be sent: entries by their number, the rest by its type. */
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

  /** Must be cheap, and does not throw: everything that happens in the instance passes here. */
  onEvent(event: RelayEvent): void {
    const change = changeOf(event)
    if (change) this.changed(change)
  }

  changed(change: Change): void {
    if (this.#clients.size === 0) return
    this.#due.set(change.type === 'changed' ? change.n : change.type, change)
    this.#schedule()
  }

  /**
   * A stream of {@link LiveEvent}s, the first with the number of refused requests. It ends when the instance stops, or when the page may no
   * longer read. @throws RelayError `unavailable` while {@link MAX_PAGES} streams are open
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
    // The service leaves a connection open that a client has half closed; a page that is gone closes it so.
    page.outgoing?.socket?.once('end', () => page.outgoing?.destroy())
    return new Response(stream, { headers: HEADERS })
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => void this.#flush(), PERIOD_MS).unref()
  }

  /** Sends what has changed. No timer runs meanwhile, so that a slow disk sets the pace. Does not reject. */
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
    // With the next change: what has just failed would fail again.
    if (isLost) this.#due.set('stale', { type: 'stale' })
  }

  async #events(changes: readonly Change[]): Promise<readonly LiveEvent[]> {
    const numbers = changes.flatMap((change) => (change.type === 'changed' ? [change.n] : []))
    const isStale = numbers.length > MAX_LINES || changes.some(({ type }) => type === 'stale')
    const ordered = numbers.toSorted((one, other) => one - other)
    const lines = isStale ? [] : await linesOf(this.#parts, await this.#parts.journal.summaries(ordered))
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
    // What it has not read would come before its end.
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

/** Of what the page's state shows. The journal announces what deliveries and attempts change. */
const OF_STATE: ReadonlySet<RelayEvent['type']> = new Set(['target', 'tunnel', 'hook', 'turn', 'settings'])

/** What of an event an open page shows; undefined for nothing. */
function changeOf(event: RelayEvent): Change | undefined {
  const { type } = event
  if (type === 'changed' || type === 'removed' || type === 'refused' || type === 'stale') return event
  return OF_STATE.has(type) ? { type: 'state' } : undefined
}

function encoded(event: LiveEvent): Uint8Array {
  return Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
}
