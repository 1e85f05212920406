import { describeConnectionError } from '../base/connection-error.js'
import type { Clock } from '../base/time.js'
import { wholeEvents } from './events.js'
import { createWatchdog } from './watchdog.js'

export interface SmeeOptions {
  /** The channel's address. */
  readonly url: string
  readonly fetch: typeof fetch
  readonly clock: Clock
  readonly limits: SmeeLimits
  /** Called once, if the connection comes about. */
  readonly onOpen: () => void
  /** Called with each message's text. */
  readonly onMessage: (text: string) => void
  /** Called for each message that is dropped for its size. */
  readonly onTooLarge: () => void
  readonly signal: AbortSignal
}

/** Milliseconds, but for `event`. */
export interface SmeeLimits {
  /** Until the server answers. */
  readonly opening: number
  /** Between two signs of life: the server pings every 30 s, and one ping may be lost. */
  readonly silence: number
  /** Between two looks at the clock. */
  readonly tick: number
  /** Bytes of one message. */
  readonly event: number
}

/** Nothing listens on port 9 of this machine, should the client ever forward by itself. */
const NOWHERE = 'http://127.0.0.1:9/'
const QUIET = { info: () => {}, error: () => {} }
const EVENTS = 'text/event-stream'
/** smee's server compares Accept with exactly this; gosmee's once gave events only to a client that says it is one. */
const HEADERS = { accept: EVENTS, 'user-agent': 'webhook-relay (as gosmee)' }

/**
 * Listens on a channel until the connection ends, and says why it did. Each connection has a client of its own: smee's
 * comes to grief over a server that is away for a moment, and after a second start it forwards unasked.
 */
export async function listenToSmee(options: SmeeOptions): Promise<string> {
  const { url, onOpen, onMessage, clock, limits, signal } = options
  const { SmeeClient } = await import('smee-client')
  const closing = new AbortController()
  let failure = 'the server closed the connection'
  const fail = (why: string): void => void (failure = why)
  const fetch = (): Promise<Response> => openStream(options, alive, fail, closing.signal)
  const client = new SmeeClient({ source: url, target: NOWHERE, logger: QUIET, forward: false, fetch })
  let end = (_why: string): void => {}
  const ended = new Promise<string>((resolve) => (end = resolve))
  using watchdog = createWatchdog({ clock, tick: limits.tick, onDead: (why) => end(why) })
  const alive = (): void => watchdog.expect(limits.silence, `no traffic for ${limits.silence / 1000} s`)
  const stopped = (): void => end('stopped')
  Object.assign(client, {
    onopen: () => onOpen(),
    onmessage: ({ data }: MessageEvent) => onMessage(String(data)),
    onerror: () => end(failure),
  })
  signal.addEventListener('abort', stopped)
  if (signal.aborted) stopped()
  watchdog.expect(limits.opening, `no answer within ${limits.opening / 1000} s`)
  try {
    // Why it did not start is known from the request.
    client.start().catch(() => {})
    return await ended
  } finally {
    signal.removeEventListener('abort', stopped)
    await client.stop()
    closing.abort()
  }
}

/** The channel's event stream, watched. The client's own wishes for the request (its proxy, among them) do not count. */
async function openStream(
  options: SmeeOptions,
  alive: () => void,
  fail: (why: string) => void,
  signal: AbortSignal,
): Promise<Response> {
  const response = await request(options, signal).catch((error: unknown) => {
    fail(describeConnectionError(error))
    throw error
  })
  const { body } = response
  const refusal = whyNot(response)
  if (refusal !== undefined || !body) {
    fail(refusal ?? 'the server answers nothing')
    await body?.cancel().catch(() => {})
    throw new Error(refusal)
  }
  alive()
  const events = wholeEvents(watched(body, alive, fail), options.limits.event, options.onTooLarge)
  return new Response(ReadableStream.from(events), { headers: { 'content-type': EVENTS } })
}

/** gosmee's server has the events of `/channel`, where its page is, at `/events/channel`. */
async function request({ url, fetch }: SmeeOptions, signal: AbortSignal): Promise<Response> {
  const get = (address: string): Promise<Response> =>
    fetch(address, { headers: HEADERS, redirect: 'manual', signal })
  const first = await get(url)
  if (first.status !== 200 || isEvents(first)) return first
  const second = await get(url.replace(/[^/]*$/, 'events/$&'))
  const [used, other] = isEvents(second) ? [second, first] : [first, second]
  await other.body?.cancel().catch(() => {})
  return used
}

function whyNot(response: Response): string | undefined {
  const { status, headers } = response
  const location = headers.get('location')
  if (location) return `the server answers ${status}: it is at ${location}`
  if (status !== 200) return `the server answers ${status}`
  if (isEvents(response)) return undefined
  return `no channel is there: the server answers with ${headers.get('content-type') ?? 'no type'}`
}

function isEvents({ status, headers }: Response): boolean {
  return status === 200 && /^text\/event-stream\b/.test(headers.get('content-type') ?? '')
}

async function* watched(
  body: AsyncIterable<Uint8Array>,
  alive: () => void,
  fail: (why: string) => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) {
      alive()
      yield chunk
    }
  } catch (error) {
    fail('the connection broke off')
    throw error
  }
}
