import type { Clock } from '../base/time.js'
import { describeConnectionError } from '../net/connection-error.js'
import type { OutboundResponse, SendOnce } from '../net/send-once.js'
import { messageText, type RawEvent, wholeEvents } from './events.js'
import { createWatchdog } from './watchdog.js'

/** A message's text or, for a large message, its event, which would take too long to read here. */
export type Received = string | RawEvent

export interface SmeeOptions {
  /** The channel's address. */
  readonly url: string
  readonly sendOnce: SendOnce
  readonly clock: Clock
  readonly limits: SmeeLimits
  /** Called once, when the connection is open. */
  readonly onOpen: () => void
  /** Called with each message. Must not throw. */
  readonly onMessage: (message: Received) => void
  /** Called for each message that is dropped because of its size. */
  readonly onTooLarge: () => void
  readonly signal: AbortSignal
}

/** Limits of a connection: milliseconds, except for `event`. */
export interface SmeeLimits {
  /** Time until the server answers. */
  readonly opening: number
  /** Time without traffic. The server pings every 30 s, and one ping may be lost. */
  readonly silence: number
  /** Time between two checks of the clock. */
  readonly tick: number
  /** Bytes of one event. */
  readonly event: number
}

/**
 * Bytes. Larger messages are read in a worker thread, since a message may be slow on purpose. At this size, the slowest
 * step takes some 10 ms.
 */
const MAX_INLINE = 32_768
const EVENTS = 'text/event-stream'
/** smee's server requires exactly this Accept header. Older gosmee servers send events only to a client named gosmee. */
const HEADERS = { accept: EVENTS, 'user-agent': 'webhook-relay (as gosmee)' }

/** Listens on a channel until the connection ends. Returns the reason. */
export async function listenToSmee(options: SmeeOptions): Promise<string> {
  const { clock, limits, signal } = options
  const closing = new AbortController()
  let end = (_reason: string): void => {}
  const ended = new Promise<string>((resolve) => (end = resolve))
  using watchdog = createWatchdog({ clock, tick: limits.tick, onDead: (reason) => end(reason) })
  const onTraffic = (): void => watchdog.expect(limits.silence, `no traffic for ${limits.silence / 1000} s`)
  const stopped = (): void => end('stopped')
  signal.addEventListener('abort', stopped)
  if (signal.aborted) stopped()
  watchdog.expect(limits.opening, `no answer within ${limits.opening / 1000} s`)
  const reading = read(options, onTraffic, closing.signal).then(end)
  try {
    return await ended
  } finally {
    signal.removeEventListener('abort', stopped)
    closing.abort()
    await reading
  }
}

/** Reads the channel's events until they end. Returns the reason; does not throw. */
async function read(options: SmeeOptions, onTraffic: () => void, signal: AbortSignal): Promise<string> {
  let response: OutboundResponse
  try {
    response = await request(options, signal)
  } catch (error) {
    return describeConnectionError(error)
  }
  const rejection = rejectionReason(response)
  if (rejection !== undefined) {
    response.discard()
    return rejection
  }
  onTraffic()
  options.onOpen()
  try {
    const chunks = watched(response.body, onTraffic)
    for await (const event of wholeEvents(chunks, options.limits.event, options.onTooLarge)) {
      const message = event.length > MAX_INLINE ? event : messageText(event)
      if (message !== undefined) options.onMessage(message)
    }
    return 'the server closed the connection'
  } catch {
    return 'the connection was interrupted'
  }
}

/** Requests the channel's events. gosmee's server has a page at `/channel` and the events at `/events/channel`. */
async function request({ url, sendOnce }: SmeeOptions, signal: AbortSignal): Promise<OutboundResponse> {
  const get = (address: string): Promise<OutboundResponse> =>
    sendOnce(address, { method: 'GET', headers: HEADERS, signal })
  const first = await get(url)
  if (first.status !== 200 || isEvents(first)) return first
  const second = await get(url.replace(/[^/]*$/, 'events/$&'))
  const [used, other] = isEvents(second) ? [second, first] : [first, second]
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
