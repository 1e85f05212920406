import { randomBytes } from 'node:crypto'
import { RelayError, toRelayError } from '../base/errors.js'
import { MAX_LINES } from './activity.js'
import type { LiveEvent } from './api.js'
import { createChanges } from './changes.js'
import type { InspectorData } from './data.js'
import { linesOf } from './lines.js'
import type { InspectorParts } from './parts.js'

/** The stream of changes for open pages. */
export interface Live {
  /**
   * A stream of {@link LiveEvent}s: the instance's state and the counts of refused requests at once, then what changes; after a break, what changed since
   * `lastEventId`. It ends when the instance stops, or when the page may no longer read.
   * @throws RelayError `unavailable` when {@link MAX_CLIENTS} streams are open.
   */
  open(lastEventId: string | undefined, page: Page): Response
}

/** The page that reads a stream. */
export interface Page {
  /** Whether it may still read. */
  readonly isOpen: () => boolean
  /** Calls `listener` once when its connection has ended. */
  readonly onGone: (listener: () => void) => void
  /** Ends its connection, whatever it has not read. */
  readonly cut: () => void
}

/** Streams at once: more pages than a person keeps open. */
export const MAX_CLIENTS = 20
/** Ten times a second: as often as a person can see rows change. */
const PERIOD_MS = 100
/** Shorter than the minute after which the service closes a connection without a byte. */
const HEARTBEAT_MS = 15_000
/** For the last bytes of a stream at the end of relay, in milliseconds. */
const CLOSE_LIMIT_MS = 500
/** 1 MiB: what a stream may hold for a page that reads slowly. Then it skips. */
const MAX_UNREAD = 1_048_576

/** The entries that changed, or how many they are when they are too many. */
interface Changed {
  readonly numbers: readonly number[]
  readonly skipped: number
}

/** An open stream. */
interface Client {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  readonly page: Page
  /** Changes that it did not get since it began to read slowly. */
  skipped: number
}

const HEADERS = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' }
const HEARTBEAT = Buffer.from(':\n\n')

export function openLive(parts: InspectorParts, state: InspectorData['state']): Live {
  return new LiveStreams(parts, state)
}

class LiveStreams implements Live {
  readonly #parts: InspectorParts
  readonly #state: InspectorData['state']
  readonly #changes = createChanges()
  readonly #clients = new Set<Client>()
  /** Distinguishes the ids of this instance from those of an earlier one. */
  readonly #epoch = randomBytes(6).toString('base64url')
  /** What is to be sent besides deliveries. */
  readonly #due = new Set<'refused' | 'state'>()
  #oldest: number | undefined
  /** Up to this change, everything was sent. */
  #sent = 0
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined

  constructor(parts: InspectorParts, state: InspectorData['state']) {
    this.#parts = parts
    this.#state = state
    // For as long as the instance runs: what changes while no page is open is what a page that returns asks for.
    parts.activity.subscribe((activity) => {
      if (activity.type === 'changed') this.#changes.add(activity.n)
      else if (activity.type === 'removed') this.#oldest = activity.oldest
      else this.#due.add(activity.type)
      this.#schedule()
    })
    parts.stopped.addEventListener('abort', () => this.#close())
  }

  open(lastEventId: string | undefined, page: Page): Response {
    if (this.#parts.stopped.aborted) throw new RelayError('unavailable', 'relay is stopping')
    if (this.#clients.size >= MAX_CLIENTS)
      throw new RelayError('unavailable', `${MAX_CLIENTS} inspectors are open. Close one`, { retryAfter: 10 })
    let client: Client | undefined
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const opened: Client = { controller, page, skipped: 0 }
          client = opened
          page.onGone(() => this.#remove(opened))
          this.#add(opened, lastEventId)
        },
        pull: () => client && this.#catchUp(client),
        cancel: () => client && this.#remove(client),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_UNREAD }),
    )
    return new Response(stream, { headers: HEADERS })
  }

  #add(client: Client, lastEventId: string | undefined): void {
    this.#clients.add(client)
    this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_MS).unref()
    void this.#logged(async () => {
      const missed = this.#missed(lastEventId)
      const id = this.#idOf(this.#changes.latest)
      const state = await this.#state()
      const counts = this.#parts.refusals.list.counts()
      this.#send(client, encoded({ type: 'state', state }), 0)
      this.#send(client, encoded({ type: 'refused', counts }), 0)
      const lines = await this.#lines(missed.numbers)
      const { skipped } = missed
      if (lines.length + skipped > 0)
        this.#send(client, encoded({ type: 'deliveries', deliveries: lines, skipped }, id), lines.length)
    })
  }

  /** What a page has missed that saw everything up to this id. Of another instance's id: all that there may be. */
  #missed(id: string | undefined): Changed {
    if (id === undefined) return { numbers: [], skipped: 0 }
    const [epoch, at] = id.split('.')
    return this.#changedAfter(epoch === this.#epoch ? Number(at) : Number.NaN)
  }

  #changedAfter(change: number): Changed {
    const numbers = this.#changes.since(change)
    if (!numbers) return { numbers: [], skipped: 1 }
    return numbers.length > MAX_LINES ? { numbers: [], skipped: numbers.length } : { numbers, skipped: 0 }
  }

  #schedule(): void {
    if (this.#clients.size === 0) return
    this.#timer ??= setTimeout(() => void this.#logged(() => this.#flush()), PERIOD_MS).unref()
  }

  /** Sends what has changed to every client. Nothing is scheduled meanwhile, so that a slow disk sets the pace. */
  async #flush(): Promise<void> {
    try {
      for (const event of await this.#collect()) this.#sendAll(event)
    } finally {
      this.#timer = undefined
    }
    if (this.#changes.latest > this.#sent || this.#due.size > 0) this.#schedule()
  }

  async #collect(): Promise<readonly LiveEvent[]> {
    const { numbers, skipped } = this.#changedAfter(this.#sent)
    this.#sent = this.#changes.latest
    const due = new Set(this.#due)
    this.#due.clear()
    const oldest = this.#oldest
    this.#oldest = undefined
    const deliveries = await this.#lines(numbers)
    return [
      ...(deliveries.length + skipped > 0 ? [{ type: 'deliveries', deliveries, skipped } as const] : []),
      ...(due.has('refused')
        ? [{ type: 'refused', counts: this.#parts.refusals.list.counts() } as const]
        : []),
      ...(due.has('state') ? [{ type: 'state', state: await this.#state() } as const] : []),
      ...(oldest === undefined ? [] : [{ type: 'removed', below: oldest } as const]),
    ]
  }

  /** Oldest first. */
  async #lines(numbers: readonly number[]) {
    const summaries = await this.#parts.journal.summaries(numbers.toSorted((one, other) => one - other))
    return linesOf(this.#parts, summaries)
  }

  #sendAll(event: LiveEvent): void {
    const bytes = encoded(event, event.type === 'deliveries' ? this.#idOf(this.#sent) : undefined)
    const count = event.type === 'deliveries' ? event.deliveries.length + event.skipped : 1
    for (const client of this.#clients) this.#send(client, bytes, count)
  }

  /** Sends, or counts what is not sent to a client that reads slowly. */
  #send(client: Client, bytes: Uint8Array, count: number): void {
    if (!this.#clients.has(client)) return
    if (client.skipped > 0 || (client.controller.desiredSize ?? 0) <= 0) client.skipped += count
    else client.controller.enqueue(bytes)
  }

  /** A client that read slowly has read everything: it gets to know that it has missed something. */
  #catchUp(client: Client): void {
    const { skipped } = client
    if (skipped === 0) return
    client.skipped = 0
    this.#send(
      client,
      encoded({ type: 'deliveries', deliveries: [], skipped }, this.#idOf(this.#sent)),
      skipped,
    )
    this.#due.add('refused').add('state')
    this.#schedule()
  }

  #beat(): void {
    for (const client of this.#clients) {
      if (!client.page.isOpen()) this.#end(client)
      else if ((client.controller.desiredSize ?? 0) > 0) client.controller.enqueue(HEARTBEAT)
    }
  }

  #close(): void {
    clearTimeout(this.#timer)
    for (const client of this.#clients) {
      this.#end(client)
      // A page that does not read would keep its connection for as long as relay waits for requests in flight.
      setTimeout(client.page.cut, CLOSE_LIMIT_MS).unref()
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

  #idOf(change: number): string {
    return `${this.#epoch}.${change}`
  }

  /** The next change tries again what failed. */
  async #logged(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#parts.log.warn(`the inspector could not be kept up to date: ${toRelayError(error).message}`)
    }
  }
}

function encoded(event: LiveEvent, id?: string): Uint8Array {
  const start = id === undefined ? '' : `id: ${id}\n`
  return Buffer.from(`${start}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}
