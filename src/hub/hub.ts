import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { type ErrorKind, RelayError, toRelayError } from '../base/errors.js'
import type { Clock } from '../base/time.js'
import { onAbort } from '../base/wait.js'
import type { Header } from '../http/headers.js'
import type { Journal } from '../journal/journal.js'
import { storedBytes } from '../journal/types.js'
import type { Delivery, Entry } from '../journal/types.js'
import type { Database } from '../store/open.js'
import { Exchanges, type SenderAnswer } from './exchanges.js'
import {
  batchOf,
  type HubMessage,
  MAX_ANSWER_WAIT_MS,
  MAX_BATCH,
  MAX_BATCH_BYTES,
  MAX_REQUEST_HEAD,
} from './protocol.js'
import { Rates } from './rates.js'
import { type Channel, HubRecords } from './records.js'

/** A request to a channel's address. */
export interface Posted {
  readonly method: string
  readonly source: string
  /** Rest of the address after the source: empty, or `/…`. */
  readonly path: string
  readonly query: string | undefined
  readonly headers: readonly Header[]
  /** Reads the body. @throws RelayError `too_large` over `limit` bytes */
  readonly body: (limit: number) => Promise<Uint8Array>
}

interface NextOptions {
  /** Milliseconds. */
  readonly wait: number
  /** False: no request is returned. A new one still ends the wait. */
  readonly takes: boolean
  readonly signal: AbortSignal
  /** Called each second, and before a request is returned. False ends the wait. */
  readonly isOpen: () => Promise<boolean>
}

export interface HubParts {
  readonly database: Pick<Database, 'store' | 'shared'>
  readonly journal: Journal
  readonly clock: Clock
  /** Largest body, in bytes. */
  readonly maxBody: number
  /** Called with the outcome of each request. Must not throw. */
  readonly onTaken?: ((result: TakeResult) => void) | undefined
}

/** Outcome of a request. `unknown`: no such channel. `unavailable`: it could not be stored. `failed`: its connection broke. */
export const TAKE_RESULTS = [
  'stored',
  'unknown',
  'rate_limited',
  'full',
  'too_large',
  'unavailable',
  'failed',
] as const
export type TakeResult = (typeof TAKE_RESULTS)[number]

/** Milliseconds after which the queue is read again without a notice, since another process may not send one. */
const LOOK_MS = 1000
/** Age in milliseconds of a sum of bytes that other hubs may have changed. */
const SUM_AGE_MS = 5000
/** Seconds after which a sender may try a full channel again. */
const FULL_RETRY_S = 60
/** Event of a change in some channel. Ids of channels are longer. */
const ANY = 'any'

/**
 * A hub: takes requests for channels, keeps them in its journal, and gives them to the workstations. To the journal, a
 * channel is a source and a target at once: what waits for a workstation is the channel's queue.
 */
export class Hub {
  readonly records: HubRecords
  readonly exchanges: Exchanges
  readonly journal: Journal
  readonly #parts: HubParts
  readonly #rates = new Rates()
  /** Emits the id of a channel that has something new, and {@link ANY}. */
  readonly #news = new EventEmitter().setMaxListeners(0)
  /** Waiting bytes by channel, and when they were read. */
  readonly #bytes = new Map<string, { bytes: number; at: number }>()

  constructor(parts: HubParts) {
    const { database, clock } = parts
    const { store, shared } = database
    this.#parts = parts
    this.journal = parts.journal
    this.records = new HubRecords(store, clock)
    this.exchanges = new Exchanges({ store, isShared: shared !== undefined, clock })
  }

  /**
   * Stores a request to a channel. Resolves once it is durable, with the workstation's answer if its sender gets one in
   * time.
   * @throws RelayError `not_found` for a channel that does not exist; `rate_limited`, `full`, `too_large` over the bounds
   * of the channel; `header_too_large` for a head that no answer to a workstation could hold; `storage` if it could not be stored
   */
  async take(id: string, posted: Posted): Promise<SenderAnswer | undefined> {
    try {
      return await this.#take(id, posted)
    } catch (error) {
      this.#parts.onTaken?.(resultOf(error))
      throw error
    }
  }

  async #take(id: string, posted: Posted): Promise<SenderAnswer | undefined> {
    const { journal, clock, maxBody, onTaken } = this.#parts
    const channel = await this.#named(() => this.records.channel(id))
    if (!channel || channel.isWithdrawn) throw new RelayError('not_found', 'Not found')
    this.#rates.count(id, channel.maxRequests)
    requireBoundedHead(posted)
    const body = await posted.body(Math.min(maxBody, channel.maxBody ?? maxBody))
    const session = await this.#named(() => this.records.session(id))
    const within = Math.min(session?.answers[posted.source] ?? 0, MAX_ANSWER_WAIT_MS)
    const deliveryId = requestId(clock())
    using expected = within > 0 ? this.exchanges.expect(deliveryId) : undefined
    const delivery = deliveryOf(posted, { id, deliveryId, body, receivedAt: clock(), within })
    const size = storedBytes(delivery)
    await this.#named(() => this.#reserve(channel, size))
    const storing = journal.append(delivery, { targets: [id], onDuplicate: 'never' })
    storing.catch(() => this.#release(id, size))
    await this.#named(() => storing)
    onTaken?.('stored')
    this.#news.emit(id)
    // Awaited here, before `expected` is disposed of.
    return await expected?.within(within)
  }

  /**
   * Gives what waits for a channel, oldest first, or nothing after `wait` milliseconds or when the signal aborts.
   */
  async next(id: string, { wait, takes, signal, isOpen }: NextOptions): Promise<readonly HubMessage[]> {
    const { journal, clock } = this.#parts
    const until = performance.now() + wait
    for (;;) {
      // Listens before it reads, so that nothing comes in between.
      using news = this.#listen(id, signal)
      if (!(await isOpen())) return []
      const entries = takes ? await journal.oldest(id, { count: MAX_BATCH, bytes: MAX_BATCH_BYTES }) : []
      const left = until - performance.now()
      if (entries.length > 0 || signal.aborted || left <= 0)
        return batchOf(entries.map((entry) => messageOf(entry, clock())))
      await news.within(Math.min(LOOK_MS, left))
    }
  }

  /** Notes what a workstation has stored. */
  async stored(id: string, last: { readonly n: number; readonly id: string }): Promise<void> {
    this.#release(id, await this.#parts.journal.acknowledge(id, last))
  }

  /** Looks for what other hubs have stored. Does not reject. */
  async look(): Promise<void> {
    this.#news.emit(ANY)
    await this.exchanges.look()
  }

  #listen(id: string, signal: AbortSignal): { readonly within: (ms: number) => Promise<void> } & Disposable {
    let resolve = (): void => {}
    const heard = new Promise<void>((settle) => (resolve = settle))
    const ignore = onAbort(signal, resolve)
    let timer: NodeJS.Timeout | undefined
    for (const event of [id, ANY]) this.#news.on(event, resolve)
    return {
      within(ms) {
        timer = setTimeout(resolve, ms)
        return heard
      },
      [Symbol.dispose]: () => {
        clearTimeout(timer)
        ignore()
        for (const event of [id, ANY]) this.#news.off(event, resolve)
      },
    }
  }

  /** Counts bytes that are about to be stored. @throws RelayError `full` if there is no room for them */
  async #reserve({ id, maxBytes }: Channel, size: number): Promise<void> {
    const { journal, database } = this.#parts
    const now = performance.now()
    let known = this.#bytes.get(id)
    if (!known || (database.shared && now - known.at > SUM_AGE_MS)) {
      known = { bytes: await journal.waitingBytes(id), at: now }
      this.#bytes.set(id, known)
    }
    if (known.bytes + size > maxBytes)
      throw new RelayError('full', 'This channel is full: its workstation has not fetched what waits', {
        retryAfter: FULL_RETRY_S,
      })
    known.bytes += size
  }

  #release(id: string, size: number): void {
    const known = this.#bytes.get(id)
    if (known) known.bytes -= size
  }

  /** The message for a sender. */
  async #named<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (cause) {
      if (!(cause instanceof RelayError) || cause.kind !== 'storage') throw cause
      throw new RelayError('storage', 'Delivery could not be stored', { cause, forClients: true })
    }
  }
}

/** Only a listener with larger limits than Node's can bring a head that is too large. */
function requireBoundedHead({ path, query, headers }: Posted): void {
  if (Buffer.byteLength(JSON.stringify([path, query, headers])) > MAX_REQUEST_HEAD)
    throw new RelayError('header_too_large', 'Request header fields too large')
}

/** Results by the kinds of errors. Others are of a connection that broke, or a bug. */
const RESULTS: Partial<Record<ErrorKind, TakeResult>> = {
  not_found: 'unknown',
  rate_limited: 'rate_limited',
  full: 'full',
  too_large: 'too_large',
  header_too_large: 'too_large',
  storage: 'unavailable',
}

function resultOf(error: unknown): TakeResult {
  return RESULTS[toRelayError(error).kind] ?? 'failed'
}

/** Names of values besides a request's headers, as HTTP/2 has them (RFC 9113 section 8.3.1): no header begins so. */
const METHOD = ':method'
const PATH = ':path'
/** When the sender stops waiting for an answer. Milliseconds since 1970-01-01 UTC. */
const UNTIL = ':until'

function deliveryOf(
  { method, source, path, query, headers }: Posted,
  given: {
    readonly id: string
    readonly deliveryId: string
    readonly body: Uint8Array
    readonly receivedAt: number
    readonly within: number
  },
): Delivery {
  const { id, deliveryId, body, receivedAt, within } = given
  const own: Header[] = [
    [METHOD, method],
    [PATH, path],
    ...(within > 0 ? [[UNTIL, String(receivedAt + within)] as const] : []),
  ]
  return {
    provider: id,
    event: source,
    action: null,
    deliveryId,
    hookId: '',
    repo: null,
    number: null,
    headers: [...own, ...headers],
    ...(query !== undefined && { query }),
    body,
    receivedAt,
    verifiedBy: 'none',
  }
}

function messageOf(
  { n, deliveryId: id, event: source, headers, query, body, receivedAt }: Entry,
  now: number,
): HubMessage {
  const own = new Map(headers.filter(([name]) => name.startsWith(':')))
  const answerWithin = Number(own.get(UNTIL) ?? 0) - now
  return {
    n,
    id,
    age: Math.max(0, now - receivedAt),
    source,
    method: own.get(METHOD) ?? 'POST',
    path: own.get(PATH) ?? '',
    ...(query !== undefined && { query }),
    headers: headers.filter(([name]) => !name.startsWith(':')),
    body,
    ...(answerWithin > 0 && { answerWithin }),
  }
}

/**
 * Id of a request: a UUID of version 7, so that a burst writes few pages of the index.
 * @see RFC 9562 section 5.7
 */
function requestId(now: number): string {
  const time = Math.max(0, now).toString(16).padStart(12, '0').slice(-12)
  const random = randomBytes(10).toString('hex')
  const variant = ((parseInt(random[3] ?? '0', 16) & 3) | 8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
}
