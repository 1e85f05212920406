import { onAbort, onSleep, isTimeout, withTimeLimit } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import type { Clock } from '../base/time.js'
import type { OutboundResponse, SendOnce } from '../net/client.js'
import { tunnelFailure, hubNote, redirectNote, tunnelRefusal } from './channel.js'
import { RECONNECT_LIMITS } from './reconnect.js'
import { parseEvents } from './smee-parser.js'

/** Limits of a connection. Milliseconds, except for `message` and `waiting`. */
export const LIMITS = {
  ...RECONNECT_LIMITS,
  /** Until the server responds. */
  opening: 15_000,
  /** Without traffic, until the connection counts as lost. The server pings every 30 s, and one ping may be lost. */
  silence: 65_000,
  /** Without traffic, until a replaced connection is closed. */
  linger: 5000,
  /** Until a replaced connection is closed although messages still arrive: the new one receives the same. */
  replaced: 30_000,
  /** Interval at which the clock is checked. */
  tick: 1000,
  /** Until relay's own test message must arrive. */
  roundTrip: 10_000,
  /**
   * Bytes of one message, which is held in memory whole: the largest body of any code host, 25 MiB, in base64 or
   * escaped.
   */
  message: 67_108_864,
  /**
   * Bytes of a message for each accepted byte of a body: base64 takes 1.4, escaped text 2. Long escapes would take 6,
   * but no sender uses only those.
   */
  escaped: 3,
  /** Bytes of a message besides its body: the escaped headers that HTTP accepts, and more. */
  besides: 1_048_576,
  /**
   * Characters of all unread messages: 4,000 pushes of GitHub, since gosmee's server drops unread messages beyond 100.
   */
  waiting: 33_554_432,
}

export type TunnelLimits = Readonly<typeof LIMITS>

interface ConnectionOptions {
  /** Address of the channel. */
  readonly url: string
  /** Id of the last message that relay read. A server that stores messages then sends those after it. */
  readonly lastEventId: string | undefined
  readonly sendOnce: SendOnce
  readonly clock: Clock
  readonly limits: TunnelLimits
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  /** Called before each read, which waits until the promise resolves. */
  readonly ready: () => Promise<void>
  /** Called with each message's text and its id, which may be empty. Must not throw. */
  readonly onMessage: (text: string, id: string) => void
  /** Called if the server reports that it no longer has all messages after `lastEventId`. */
  readonly onGap: () => void
  readonly signal: AbortSignal
}

/** A connection that receives the messages of a channel. */
export interface Connection {
  /** Aborts with the reason, a string, once relay needs another connection. Messages on their way still arrive. */
  readonly lost: AbortSignal
  /** Aborts once nothing more arrives. */
  readonly ended: AbortSignal
  /** Marks the connection as replaced. It reads on until it ends or nothing arrives for `linger`. */
  replace(): void
}

const EVENTS = 'text/event-stream'
/** Event that gosmee's server sends if its stream has lost messages after `Last-Event-ID`. */
const GAP = 'gosmee-gap'

/**
 * Opens a connection to a channel, which ends when `signal` aborts.
 * @throws RelayError `provider_failed` with the reason
 */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { limits, clock, signal, ready } = options
  const { body, discard } = await request(options)
  const ignore = onAbort(signal, discard)
  const [lost, ended] = [new AbortController(), new AbortController()]
  let isReading = false
  /** Milliseconds of reading since something arrived, and since the connection was replaced. */
  let [idle, age] = [0, -Infinity]
  const timer = setInterval(() => {
    // Silence is not counted while relay does not read.
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
/**
 * Bytes added for each line, since smee-client stores each separately. A server sends a message in a handful of lines.
 */
const LINE_OVERHEAD = 512

/**
 * Makes a filter that drops the bytes of a message beyond `limit`, up to its blank line. Such a message is no JSON, and
 * is refused. Line ends become line feeds, since smee-client searches for the other kinds again and again. Chunks may
 * be split anywhere. Takes linear time.
 */
function cutMessages(limit: number): (chunk: Uint8Array) => Uint8Array {
  /** Bytes of the current message, and of its last line. */
  let [size, line] = [0, 0]
  let endedWithReturn = false
  return (chunk) => {
    const read = withLineFeeds(chunk, endedWithReturn)
    endedWithReturn = chunk.length > 0 ? chunk[chunk.length - 1] === CARRIAGE_RETURN : endedWithReturn
    const kept: Uint8Array[] = []
    /** Start of the bytes to keep; -1 while the rest of a message is dropped. */
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

/** Converts every line end to a line feed. `isAfterReturn`: a leading line feed belongs to the previous line end. */
function withLineFeeds(chunk: Uint8Array, isAfterReturn: boolean): Buffer {
  const from = isAfterReturn && chunk[0] === LINE_FEED ? 1 : 0
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset + from, chunk.byteLength - from)
  if (!bytes.includes(CARRIAGE_RETURN)) return bytes
  return Buffer.from(bytes.toString('latin1').replaceAll(/\r\n?/g, '\n'), 'latin1')
}

/** smee's server requires exactly this Accept header. Older gosmee servers send events only to a client named gosmee. */
const HEADERS = { accept: EVENTS, 'user-agent': 'webhook-relay (as gosmee)' }

/** Requests the channel's events. @throws RelayError `provider_failed` for any other response, or none in time */
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
    const note = hubNote(response, options.url)
    throw tunnelRefusal(`no channel at this address: the server answers with ${type}${note}`, response)
  }
  throw tunnelRefusal(`the server answers ${status}${redirectNote(response, options.url)}`, response)
}

/** Returns a response with events, else the one that explains why there are none, whose body is discarded. */
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
