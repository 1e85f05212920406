import { onAbort } from '../base/abort.js'
import type { Clock } from '../base/time.js'
import { describeConnectionError } from '../net/connection-error.js'
import { parseRetryAfter } from '../net/retry-after.js'
import type { OutboundResponse, SendOnce } from '../net/send-once.js'
import { type RawEvent, wholeEvents } from './events.js'
import { createWatchdog } from './watchdog.js'

export interface ConnectionOptions {
  /** The channel's address. */
  readonly url: string
  /** The id of the last event that relay read, so that a server that keeps events sends those after it. */
  readonly lastEventId: string | undefined
  readonly sendOnce: SendOnce
  readonly clock: Clock
  readonly limits: ConnectionLimits
  /** Called with each event. Nothing is read until the returned promise resolves. Must not throw. */
  readonly onEvent: (event: RawEvent, connection: Connection) => Promise<void> | undefined
  /** Called for each event that is dropped because of its size. */
  readonly onTooLarge: () => void
  readonly signal: AbortSignal
}

/** Limits of a connection: milliseconds, except for `event`. */
export interface ConnectionLimits {
  /** Time until the server answers. */
  readonly opening: number
  /** Time without traffic. The server pings every 30 s, and one ping may be lost. */
  readonly silence: number
  /** Time without traffic after which nothing more is expected from a connection that was replaced. */
  readonly linger: number
  /** Time between two checks of the clock. */
  readonly tick: number
  /** Bytes of one event. */
  readonly event: number
}

/** Why a connection was not opened. */
export interface Rejection {
  readonly reason: string
  /** Milliseconds that the server asked relay to wait. */
  readonly retryAfter?: number | undefined
  /** Whether the server does not accept `lastEventId`. */
  readonly refusesId?: boolean | undefined
}

/** A connection that receives a channel's events. */
export interface Connection {
  /** Resolves once the server sends events, or with the reason why it does not. */
  readonly opened: Promise<Rejection | undefined>
  /** Resolves with the reason once relay needs another connection. Events that are still on their way arrive nevertheless. */
  readonly lost: Promise<string>
  /** Resolves once nothing more arrives. */
  readonly closed: Promise<void>
  /** Another connection has replaced this one: reads until it ends, or until nothing arrives for `linger`. */
  readonly drain: () => void
  /** Reads no further event. */
  readonly close: () => void
}

const EVENTS = 'text/event-stream'
/** smee's server requires exactly this Accept header. Older gosmee servers send events only to a client named gosmee. */
const HEADERS = { accept: EVENTS, 'user-agent': 'webhook-relay (as gosmee)' }

/** Opens a connection to a channel. It is closed when `signal` aborts. */
export function openConnection(options: ConnectionOptions): Connection {
  const { clock, limits, signal } = options
  const closing = new AbortController()
  let isClosed = false
  const close = (): void => {
    isClosed = true
    closing.abort()
  }
  const opened = settleOnce<Rejection | undefined>()
  const lost = settleOnce<string>()
  const watchdog = createWatchdog({
    clock,
    tick: limits.tick,
    onDead(reason) {
      // Before the server has answered, there is nothing that could still arrive.
      if (opened.settle({ reason })) close()
      lost.settle(reason)
    },
  })
  const linger = createLinger(limits.linger, close)
  const onTraffic = (): void => {
    watchdog.expect(limits.silence, `no traffic for ${limits.silence / 1000} s`)
    linger.restart()
  }
  /** While relay reads nothing, silence means nothing. */
  const onPause = (): void => {
    watchdog.expect(Infinity, '')
    linger.pause()
  }
  watchdog.expect(limits.opening, `no answer within ${limits.opening / 1000} s`)
  // Events that have arrived by then are still read.
  const unsubscribe = onAbort(signal, () => closing.abort())
  const read = async (): Promise<void> => {
    const rejection = await readEvents({ ...options, signal: closing.signal }, connection, {
      onOpen: () => opened.settle(undefined),
      onTraffic,
      onPause,
      isClosed: () => isClosed,
    })
    unsubscribe()
    watchdog[Symbol.dispose]()
    linger.pause()
    opened.settle(rejection)
    lost.settle(rejection.reason)
  }
  const connection: Connection = {
    opened: opened.promise,
    lost: lost.promise,
    // Not before the connection exists, which the events are given.
    closed: Promise.resolve().then(read),
    drain: () => linger.begin(),
    close,
  }
  return connection
}

interface Observer {
  readonly onOpen: () => void
  readonly onTraffic: () => void
  readonly onPause: () => void
  readonly isClosed: () => boolean
}

/** Reads the channel's events until they end. Returns the reason; does not throw. */
async function readEvents(
  options: ConnectionOptions,
  connection: Connection,
  { onOpen, onTraffic, onPause, isClosed }: Observer,
): Promise<Rejection> {
  const { clock, limits, onEvent, onTooLarge } = options
  let response: OutboundResponse
  try {
    response = await request(options)
  } catch (error) {
    return { reason: describeConnectionError(error) }
  }
  const reason = rejectionReason(response)
  if (reason !== undefined) {
    response.discard()
    const refusesId = response.status === 400 && options.lastEventId !== undefined
    return { reason, retryAfter: parseRetryAfter(response.header, clock()), refusesId }
  }
  onTraffic()
  onOpen()
  try {
    for await (const event of wholeEvents(watched(response.body, onTraffic), limits.event, onTooLarge)) {
      if (isClosed()) break
      const busy = onEvent(event, connection)
      if (!busy) continue
      onPause()
      await busy
      onTraffic()
    }
    return { reason: 'the server closed the connection' }
  } catch {
    return { reason: 'the connection was interrupted' }
  }
}

/** Requests the channel's events. gosmee's server has a page at `/channel` and the events at `/events/channel`. */
async function request({ url, lastEventId, sendOnce, signal }: ConnectionOptions): Promise<OutboundResponse> {
  const headers = lastEventId === undefined ? HEADERS : { ...HEADERS, 'last-event-id': lastEventId }
  const get = (address: string): Promise<OutboundResponse> =>
    sendOnce(address, { method: 'GET', headers, signal })
  const first = await get(url)
  if (first.status !== 200 || isEvents(first)) return first
  const second = await get(url.replace(/[^/]*$/, 'events/$&'))
  const isRejected = second.status === 400 && lastEventId !== undefined
  const [used, other] = isEvents(second) || isRejected ? [second, first] : [first, second]
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

async function* watched(body: AsyncIterable<Uint8Array>, onTraffic: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    onTraffic()
    yield chunk
  }
}

/** Calls `onSilent` when `restart` was not called for `ms` milliseconds. Counts from `begin` on, and not during a pause. */
function createLinger(ms: number, onSilent: () => void) {
  let timer: NodeJS.Timeout | undefined
  let begun = false
  let paused = false
  const stop = (): void => clearTimeout(timer)
  const start = (): void => {
    stop()
    if (begun && !paused) timer = setTimeout(onSilent, ms)
  }
  return {
    begin(): void {
      begun = true
      start()
    },
    restart(): void {
      paused = false
      start()
    },
    pause(): void {
      paused = true
      stop()
    },
  }
}

/** A promise that is resolved from outside, once. */
function settleOnce<Value>() {
  let isSettled = false
  let resolve = (_value: Value): void => {}
  const promise = new Promise<Value>((given) => (resolve = given))
  return {
    promise,
    /** Returns whether this call has settled it. */
    settle(value: Value): boolean {
      const isFirst = !isSettled
      isSettled = true
      resolve(value)
      return isFirst
    },
  }
}
