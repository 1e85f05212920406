import { onAbort, onSleep, isTimeout, withTimeLimit } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import type { Clock } from '../base/time.js'
import type { OutboundResponse, SendOnce } from '../net/client.js'
import { tunnelFailure, redirectNote, tunnelRefusal } from './channel.js'
import { parseEvents } from './smee-parser.js'

/** Milliseconds, except for `message` and `waiting`. */
export const LIMITS = {
  /** Until the server answers. */
  opening: 15_000,
  /** Without traffic, until the connection counts as lost. The server pings every 30 s, and one ping may be lost. */
  silence: 65_000,
  /** Without traffic, until nothing more is expected from a connection that was replaced. */
  linger: 5000,
  /** Until a connection that was replaced is closed although it still delivers: the new one delivers the same. */
  replaced: 30_000,
  /** Between two looks at the clock. */
  tick: 1000,
  /** After which a connection counts as stable, which resets the backoff. */
  steady: 10_000,
  /** The first wait after a failure. */
  retry: 1000,
  /** In which the message to itself must come back. */
  roundTrip: 10_000,
  /** Bytes of one message, which is in memory whole: the largest body of any code host, 25 MiB, in base64 or escaped. */
  message: 67_108_864,
  /** Bytes of a message for each byte of a body that relay takes: in base64 1.4, as escaped text 2, with long escapes 6, which none has. */
  escaped: 3,
  /** Bytes of a message besides its body: the headers that HTTP takes, escaped, and more. */
  besides: 1_048_576,
  /** Characters of the messages that may wait: 4,000 pushes of GitHub, since gosmee's server drops what is unread beyond 100. */
  waiting: 33_554_432,
}

export type TunnelLimits = Readonly<typeof LIMITS>

interface ConnectionOptions {
  /** The channel's address. */
  readonly url: string
  /** The id of the last message that relay read, so that a server that keeps messages sends those after it. */
  readonly lastEventId: string | undefined
  readonly sendOnce: SendOnce
  readonly clock: Clock
  readonly limits: TunnelLimits
  /** The largest body that is taken, in bytes. */
  readonly maxBody: number
  /** Called before each read. Nothing is read until its promise resolves. */
  readonly ready: () => Promise<void>
  /** Called with each message's text and id, which is empty if it has none. Must not throw. */
  readonly onMessage: (text: string, id: string) => void
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

const EVENTS = 'text/event-stream'
/** What gosmee's server sends if its stream has lost messages after `Last-Event-ID`. */
const GAP = 'gosmee-gap'

/**
 * Opens a connection to a channel, which ends when `signal` aborts.
 * @throws RelayError `provider_failed` that says why there is none
 */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { limits, clock, signal, ready } = options
  const { body, discard } = await request(options)
  const ignore = onAbort(signal, discard)
  const [lost, ended] = [new AbortController(), new AbortController()]
  let isReading = false
  /** Milliseconds of reading since something arrived, and since it was replaced. */
  let [idle, age] = [0, -Infinity]
  const timer = setInterval(() => {
    // While relay reads nothing, silence means nothing.
    if (!isReading) return
    idle += limits.tick
    age += limits.tick
    if (idle >= limits.silence) lost.abort(`no traffic for ${limits.silence / 1000} s`)
    if (age >= limits.replaced || (age > 0 && idle >= limits.linger)) discard()
  }, limits.tick)
  const stopWatching = onSleep(() => lost.abort('this machine slept'), { clock, every: limits.tick })

  async function* read(): AsyncGenerator<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]()
    const cut = cutMessages(Math.min(limits.message, limits.escaped * options.maxBody + limits.besides))
    for (;;) {
      await ready()
      idle = 0
      isReading = true
      const next = await chunks.next().catch(() => undefined)
      isReading = false
      if (next && next.done !== true) {
        yield cut(next.value)
        continue
      }
      ignore()
      clearInterval(timer)
      stopWatching()
      lost.abort(next ? 'the server closed the connection' : 'the connection was interrupted')
      ended.abort()
      return
    }
  }

  await parseEvents(options.url, read(), {
    onMessage: options.onMessage,
    gap: { type: GAP, on: options.onGap },
  })
  return {
    lost: lost.signal,
    ended: ended.signal,
    replace() {
      idle = 0
      age = 0
    },
  }
}

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d]
const MESSAGE_END = Buffer.from('\n\n')
/** Bytes that a line counts for besides its own: smee-client keeps each by itself. A server sends a message in a handful. */
const LINE_OVERHEAD = 512

/**
 * Leaves out what a message has beyond `limit` bytes, up to its blank line. It is then no JSON, and refused. Each line ends with a line feed
 * alone, since smee-client looks for the other ends again and again. Bytes may come in any parts. Takes time linear in them.
 */
function cutMessages(limit: number): (chunk: Uint8Array) => Uint8Array {
  /** Bytes of the message that is being read, and of its last line. */
  let [size, line] = [0, 0]
  let endedWithReturn = false
  return (chunk) => {
    const read = withLineFeeds(chunk, endedWithReturn)
    endedWithReturn = chunk.length > 0 ? chunk[chunk.length - 1] === CARRIAGE_RETURN : endedWithReturn
    const kept: Uint8Array[] = []
    /** Where what is kept begins; -1 while the rest of a message is left out. */
    let from = size > limit ? -1 : 0
    for (let at = 0; at < read.length;) {
      const feed = read.indexOf(LINE_FEED, at)
      const end = feed === -1 ? read.length : feed
      line += end - at
      const isBlank = feed !== -1 && line === 0
      const room = limit - size
      size += end - at + (feed === -1 || isBlank ? 0 : LINE_OVERHEAD)
      if (size > limit && from !== -1) {
        kept.push(read.subarray(from, at + Math.min(room, end - at)))
        from = -1
      }
      at = end + 1
      if (feed !== -1) line = 0
      if (!isBlank) continue
      size = 0
      if (from !== -1) continue
      kept.push(MESSAGE_END)
      from = at
    }
    if (from !== -1) kept.push(read.subarray(from))
    return kept.length === 1 ? (kept[0] ?? read) : Buffer.concat(kept)
  }
}

/** The bytes with every line end as a line feed. `isAfterReturn`: a line feed that comes first belongs to the end before. */
function withLineFeeds(chunk: Uint8Array, isAfterReturn: boolean): Buffer {
  const from = isAfterReturn && chunk[0] === LINE_FEED ? 1 : 0
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset + from, chunk.byteLength - from)
  if (!bytes.includes(CARRIAGE_RETURN)) return bytes
  return Buffer.from(bytes.toString('latin1').replaceAll(/\r\n?/g, '\n'), 'latin1')
}

/** smee's server requires exactly this Accept header. Older gosmee servers send events only to a client named gosmee. */
const HEADERS = { accept: EVENTS, 'user-agent': 'webhook-relay (as gosmee)' }

/** The server's answer with the channel's events. @throws RelayError `provider_failed` for another answer, or none in time */
async function request(options: ConnectionOptions): Promise<OutboundResponse> {
  const { limits, signal } = options
  const response = await withTimeLimit(limits.opening, signal, (limited) =>
    firstUsable(options, limited),
  ).catch((error: unknown) => {
    if (!isTimeout(error)) throw tunnelFailure(error)
    throw new RelayError('provider_failed', `no answer within ${limits.opening / 1000} s`)
  })
  if (isEvents(response)) return response
  const { status, header } = response
  if (status === 200) {
    const type = header('content-type') ?? 'no type'
    throw tunnelRefusal(`no channel at this address: the server answers with ${type}`, response)
  }
  throw tunnelRefusal(`the server answers ${status}${redirectNote(response, options.url)}`, response)
}

/** An answer with events, else the one that says why there are none, whose body is discarded. */
async function firstUsable(
  { url, lastEventId, sendOnce }: ConnectionOptions,
  signal: AbortSignal,
): Promise<OutboundResponse> {
  let [address, id] = [url, lastEventId]
  let page: OutboundResponse | undefined
  for (;;) {
    const headers = id === undefined ? HEADERS : { ...HEADERS, 'last-event-id': id }
    const response = await sendOnce(address, { method: 'GET', headers, signal })
    if (isEvents(response)) return response
    response.discard()
    if (response.status === 400 && id !== undefined) id = undefined
    else if (response.status !== 200 || page) return page ?? response
    else {
      // gosmee's server has a page at `/channel`, and the events at `/events/channel`.
      page = response
      address = url.replace(/[^/]*$/, 'events/$&')
    }
  }
}

function isEvents({ status, header }: OutboundResponse): boolean {
  return status === 200 && /^text\/event-stream\b/.test(header('content-type') ?? '')
}
