import type { SmeeClient } from 'smee-client'
import { onAbort } from '../base/abort.js'
import { onSleep } from '../base/on-sleep.js'
import { type Clock } from '../base/time.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import type { OutboundResponse, SendOnce } from '../net/client.js'

/** Milliseconds, except for `message`. */
export interface ConnectionLimits {
  /** Until the server answers. */
  readonly opening: number
  /** Without traffic, until the connection counts as lost. The server pings every 30 s, and one ping may be lost. */
  readonly silence: number
  /** Without traffic, until nothing more is expected from a connection that was replaced. */
  readonly linger: number
  /** Until a connection that was replaced is closed although it still delivers: the new one delivers the same. */
  readonly replaced: number
  /** Between two looks at the clock. */
  readonly tick: number
  /** Bytes of one message. */
  readonly message: number
}

export interface ConnectionOptions {
  /** The channel's address. */
  readonly url: string
  /** The id of the last message that relay read, so that a server that keeps messages sends those after it. */
  readonly lastEventId: string | undefined
  readonly sendOnce: SendOnce
  readonly clock: Clock
  readonly limits: ConnectionLimits
  /** Called before each read. Nothing is read until its promise resolves. */
  readonly ready: () => Promise<void> | undefined
  /** Called with each message's text and id, which is empty if it has none. Must not throw. */
  readonly onMessage: (text: string, id: string) => void
  /** Called for each message that is dropped because of its size. */
  readonly onTooLarge: () => void
  /** Called if the server says that it no longer has all messages after `lastEventId`. */
  readonly onGap: () => void
  readonly signal: AbortSignal
}

/** A connection that receives a channel's messages. */
export interface Connection {
  /** Aborts with the reason, a string, once relay needs another connection. What is still on its way arrives nevertheless. */
  readonly lost: AbortSignal
  /** Aborts once nothing more arrives. */
  readonly ended: AbortSignal
  /** Another connection has replaced this one, which reads on until it ends or nothing arrives for `linger`. */
  replace(): void
}

/** Why there is no connection. */
export class NotConnected extends Error {
  /** Milliseconds that the server asked relay to wait. */
  readonly retryAfter: number | undefined

  constructor(reason: string, retryAfter?: number) {
    super(reason)
    this.retryAfter = retryAfter
  }
}

const EVENTS = 'text/event-stream'
/** What gosmee's server sends if its stream has lost messages after `Last-Event-ID`. */
const GAP = 'gosmee-gap'

/**
 * Opens a connection to a channel, which ends when `signal` aborts. smee-client parses the events. To request, pause and end the
 * stream is left to this: the client's EventSource would reconnect by itself after some ends, and after a 502 never again.
 * @throws NotConnected
 */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { url, limits, clock, signal, ready, onTooLarge } = options
  const closing = new AbortController()
  const ignore = onAbort(signal, () => closing.abort())
  const { body } = await request(options, closing).catch((error: unknown) => {
    ignore()
    throw error
  })
  const chunks = body[Symbol.asyncIterator]()
  const [lost, ended] = [new AbortController(), new AbortController()]
  const cut = createCutter(limits.message, onTooLarge)
  let isReading = false
  /** Milliseconds of reading since something arrived, and since it was replaced. */
  let [idle, age] = [0, -Infinity]
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await subscribed
        await ready()
        idle = 0
        isReading = true
        const next = await chunks.next().catch(() => undefined)
        isReading = false
        if (next && next.done !== true) return controller.enqueue(cut(next.value))
        ignore()
        clearInterval(timer)
        stopWatching()
        lost.abort(next ? 'the server closed the connection' : 'the connection was interrupted')
        ended.abort()
        // Only now: the client takes the end of the stream for a reason to reconnect.
        await client.stop()
        controller.close()
      },
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  )
  const timer = setInterval(() => {
    // While relay reads nothing, silence means nothing.
    if (!isReading) return
    idle += limits.tick
    age += limits.tick
    if (idle >= limits.silence) lost.abort(`no traffic for ${limits.silence / 1000} s`)
    if (age >= limits.replaced || (age > 0 && idle >= limits.linger)) closing.abort()
  }, limits.tick)
  const stopWatching = onSleep(() => lost.abort('this machine slept'), { clock, every: limits.tick })
  const client = await createClient(url, stream)
  // Until it has subscribed, nothing is read.
  const subscribed = subscribe(client, options)
  return {
    lost: lost.signal,
    ended: ended.signal,
    replace() {
      idle = 0
      age = 0
    },
  }
}

/** A client that reads these events. */
async function createClient(url: string, events: ReadableStream<Uint8Array>): Promise<SmeeClient> {
  const { SmeeClient } = await import('smee-client')
  const answer = { status: 200, headers: new Headers({ 'content-type': EVENTS }), body: events }
  return new SmeeClient({
    source: url,
    target: url,
    fetch: () => Promise.resolve(answer),
    forward: false,
    logger: { info: () => {}, error: () => {} },
  })
}

async function subscribe(client: SmeeClient, { onMessage, onGap }: ConnectionOptions): Promise<void> {
  const events = await client.start()
  events.addEventListener('message', ({ data, lastEventId }) => onMessage(String(data), lastEventId))
  events.addEventListener(GAP, onGap)
}

/** smee's server requires exactly this Accept header. Older gosmee servers send events only to a client named gosmee. */
const HEADERS = { accept: EVENTS, 'user-agent': 'webhook-relay (as gosmee)' }

/** The server's answer with the channel's events. @throws NotConnected */
async function request(options: ConnectionOptions, closing: AbortController): Promise<OutboundResponse> {
  const { url, lastEventId, clock, limits } = options
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    closing.abort()
  }, limits.opening)
  const { signal } = closing
  try {
    const first = await get(url, lastEventId, { ...options, signal })
    const hasRefusedId = first.status === 400 && lastEventId !== undefined
    if (hasRefusedId) first.discard()
    const response = hasRefusedId ? await get(url, undefined, { ...options, signal }) : first
    const reason = rejectionReason(response)
    if (reason === undefined) return response
    response.discard()
    throw new NotConnected(reason, parseRetryAfter(response.header, clock()))
  } catch (error) {
    if (error instanceof NotConnected) throw error
    const reason = isLate ? `no answer within ${limits.opening / 1000} s` : describeConnectionError(error)
    throw new NotConnected(reason)
  } finally {
    clearTimeout(timer)
  }
}

/** gosmee's server has a page at `/channel`, and the events at `/events/channel`. */
async function get(
  url: string,
  id: string | undefined,
  { sendOnce, signal }: Pick<ConnectionOptions, 'sendOnce' | 'signal'>,
): Promise<OutboundResponse> {
  const headers = id === undefined ? HEADERS : { ...HEADERS, 'last-event-id': id }
  const page = await sendOnce(url, { method: 'GET', headers, signal })
  if (page.status !== 200 || isEvents(page)) return page
  const events = await sendOnce(url.replace(/[^/]*$/, 'events/$&'), { method: 'GET', headers, signal })
  const isUsed = isEvents(events) || (events.status === 400 && id !== undefined)
  const [used, other] = isUsed ? [events, page] : [page, events]
  other.discard()
  return used
}

/** Why the response is not an event stream; undefined if it is. */
function rejectionReason(response: OutboundResponse): string | undefined {
  const { status, header } = response
  const location = header('location')
  if (location) return `the server answers ${status}: it redirects to ${location}`
  if (status !== 200) return `the server answers ${status}`
  if (isEvents(response)) return undefined
  return `no channel at this address: the server answers with ${header('content-type') ?? 'no type'}`
}

function isEvents({ status, header }: OutboundResponse): boolean {
  return status === 200 && /^text\/event-stream\b/.test(header('content-type') ?? '')
}

/** Ends an event, wherever it is cut, as one of a type that nothing listens to. */
const ABANDON = Buffer.from(':\nevent: abandoned\n\n')
const END = /\n\r?\n/

/**
 * Cuts events over `limit` bytes out of a stream, since the parser holds each until it is complete. Called with one chunk after
 * the other. What a single chunk adds may pass.
 */
function createCutter(limit: number, onCut: () => void): (chunk: Uint8Array) => Uint8Array {
  /** The empty line after an event can lie across two chunks. */
  let before = ''
  let size = 0
  let isCutting = false
  return (chunk) => {
    const text = before + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
    const start = text.length - chunk.length
    before = text.slice(-2)
    let from = start
    if (isCutting) {
      const end = END.exec(text)
      if (!end) return new Uint8Array()
      from = end.index + end[0].length
      isCutting = false
      size = 0
    }
    const last = Math.max(text.lastIndexOf('\n\n') + 2, text.lastIndexOf('\n\r\n') + 3)
    size = last > from ? text.length - last : size + text.length - from
    const rest = chunk.subarray(from - start)
    if (size <= limit) return rest
    isCutting = true
    onCut()
    return Buffer.concat([rest, ABANDON])
  }
}
