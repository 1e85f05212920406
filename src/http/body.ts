import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { RelayError } from '../base/errors.js'
import { awaitWithin } from '../base/wait.js'
import type { Header } from './headers.js'

/**
 * Type of `c.env`. Its members are missing when the application is called in-process, so a handler must work without
 * them.
 */
export type HttpEnv = {
  Bindings: HttpBindings & {
    readonly bodies: BodyMemory
    /** Called when bytes of a body arrive that a handler reads. */
    readonly onProgress: () => void
    /** Calls `run` once the response is made, even if the client has not read it yet. */
    readonly onAnswer: (run: () => void) => void
    /** Address at which the sender posted, where a program that embeds relay has taken the request. */
    readonly payloadUrl?: string
  }
}

/** 64 MiB: 64 of the largest bodies at the default limit, and far less than the memory of a workstation. */
const MIN_TOTAL = 67_108_864
/** With a higher limit per body, all bodies together may be as large as four of the largest. */
const LARGEST_BODIES = 4
/** 512 bytes: Node's memory for a chunk of a body in addition to its bytes (measured: 400 to 500). */
const CHUNK_OVERHEAD = 512
/** 5 s: by then the bodies that are read now have ended, unless their senders stall. */
const RETRY_AFTER_SECONDS = 5

/** A body in memory. */
interface HeldBody {
  /** Start of the body, by `performance.now()`. */
  readonly began: number
  /** Bytes that are counted for the body. */
  size: number
  /** Ends the body with an error. */
  readonly end: (refusal: RelayError) => void
}

/**
 * Limits the memory of all bodies, from their arrival until the response. An announced length is not counted, since it
 * costs a client nothing. When the limit is exceeded, the unfinished body with the largest product of size and age is
 * refused. So clients that hold bodies back, or send a byte now and then, take no room from a delivery that arrives,
 * even over a slow line.
 */
export class BodyMemory {
  readonly #limit: number
  #used = 0
  /** Bodies that have not arrived completely. */
  readonly #unfinished = new Set<HeldBody>()

  /** @param maxBody the largest body that a handler reads, in bytes */
  constructor(maxBody: number) {
    this.#limit = Math.max(MIN_TOTAL, LARGEST_BODIES * maxBody)
  }

  /**
   * Counts bytes of an unfinished body. Over the limit, this refuses other unfinished bodies, or this one if all others
   * are complete.
   */
  add(body: HeldBody, bytes: number): void {
    this.#unfinished.add(body)
    body.size += bytes
    this.#used += bytes
    while (this.#used > this.#limit) {
      const dearest = this.#dearest()
      if (!dearest) return
      this.release(dearest)
      dearest.end(
        new RelayError('unavailable', 'Too many request bodies at once', { retryAfter: RETRY_AFTER_SECONDS }),
      )
    }
  }

  /**
   * The unfinished body with the largest product of size and age. A new body has cost nothing yet, whatever its size.
   */
  #dearest(): HeldBody | undefined {
    const now = performance.now()
    let [found, most]: [HeldBody | undefined, number] = [undefined, -1]
    for (const body of this.#unfinished) {
      const cost = (now - body.began) * body.size
      if (cost > most) [found, most] = [body, cost]
    }
    return found
  }

  /** Marks a body as complete: it is not refused any more, and counts until it is released. */
  finish(body: HeldBody): void {
    this.#unfinished.delete(body)
  }

  release(body: HeldBody): void {
    this.#unfinished.delete(body)
    this.#used -= body.size
    body.size = 0
  }
}

/** A request that a router received, with its connection. */
export type ReceivedContext = Pick<Context<HttpEnv>, 'env' | 'req'>

/**
 * Returns all header lines. Node's flat list preserves spelling, order and repetition; a request made in-process has
 * only the headers of `fetch`.
 */
export function receivedHeaders({ env, req }: ReceivedContext): readonly Header[] {
  if (!env?.incoming) return [...req.raw.headers]
  const { rawHeaders } = env.incoming
  const lines: Header[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''])
  return lines
}

/**
 * Reads the exact bytes of a request's body. Bytes past `limit` are dropped. The router reads the rest of a refused
 * body before it responds (see {@link discardBody}), so that the client reads the response.
 * @throws RelayError `too_large` over the limit (in bytes), `cancelled` when the client disconnects before the end,
 * `unavailable` when other bodies need the room (see {@link BodyMemory})
 */
export async function readBody({ env, req }: ReceivedContext, limit: number): Promise<Uint8Array> {
  // A request made in-process has its body in memory and no connection.
  const connected: HttpEnv['Bindings'] | undefined = env?.incoming && env
  if (connected) return receive(connected, limit)
  const body = new Uint8Array(await req.raw.arrayBuffer())
  if (body.byteLength > limit) throw tooLarge()
  return body
}

async function receive(
  { incoming, outgoing, bodies, onProgress, onAnswer }: HttpEnv['Bindings'],
  limit: number,
): Promise<Uint8Array> {
  const { socket, headers } = incoming
  if (Number(headers['content-length']) > limit) throw tooLarge()
  let chunks: Uint8Array[] = []
  let bytes = 0
  const reading = readChunks(incoming, (chunk) => {
    bytes += chunk.byteLength
    if (bytes > limit) return reading.end(tooLarge())
    chunks.push(chunk)
    bodies.add(held, chunk.byteLength + CHUNK_OVERHEAD)
    onProgress()
  })
  const held = { began: performance.now(), size: 0, end: reading.end }
  const release = (): void => {
    socket.off('close', release)
    bodies.release(held)
  }
  outgoing.once('close', release)
  onAnswer(release)
  // The response to a pipelined request has no socket yet, so it does not close.
  socket.once('close', release)
  const refusal = await reading.ended
  bodies.finish(held)
  // Cleared here, because the listeners reference `chunks` until the request closes.
  const all = chunks
  chunks = []
  if (refusal) {
    release()
    throw refusal
  }
  // Most bodies are one chunk, which needs no copy.
  const [first] = all
  return first && all.length === 1 ? first : Buffer.concat(all, bytes)
}

/** A body that is being read. */
interface Reading {
  /**
   * Resolves at the end of the body. Resolves with an error if {@link end} was called with one, or with `cancelled` if
   * the client disconnects first.
   */
  readonly ended: Promise<RelayError | undefined>
  /** Stops reading: further chunks are ignored. */
  readonly end: (refusal?: RelayError) => void
}

/** Reads a body. Calls `onChunk` with each chunk, in order. */
function readChunks(incoming: IncomingMessage, take: (chunk: Uint8Array) => void): Reading {
  let isOver = false
  let settle: (refusal?: RelayError) => void = () => {}
  const ended = new Promise<RelayError | undefined>((resolve) => (settle = resolve))
  const end = (refusal?: RelayError): void => {
    isOver = true
    settle(refusal)
  }
  // Every request emits `close`. Only an incomplete one is an error.
  const gone = (): void => {
    if (!isOver) end(new RelayError('cancelled', 'The client went away'))
  }
  // A destroyed request emits no more events.
  if (incoming.destroyed) gone()
  // The listeners stay at the end: removing them costs more than ignoring their events.
  else
    incoming
      .on('data', (chunk: Uint8Array) => isOver || take(chunk))
      .on('end', () => end())
      .on('error', gone)
      .on('close', gone)
  return { ended, end }
}

function tooLarge(): RelayError {
  return new RelayError('too_large', 'Request too large')
}

/**
 * 32 MiB: more than the largest body that any provider sends (25 MiB), so that an honest client always reads its
 * response.
 */
const MAX_DISCARD_BYTES = 33_554_432
/** 5 s: half of the time that a provider waits for a response. */
const DISCARD_TIMEOUT_MS = 5_000

/**
 * Reads the rest of a body, at most 32 MiB or 5 s, before a refusal, because a client that still writes misses the
 * response. Never rejects.
 */
export async function discardBody(env: Partial<HttpBindings> | undefined): Promise<void> {
  const { incoming, outgoing } = env ?? {}
  // A destroyed request emits no more events.
  if (!incoming || incoming.readableEnded || incoming.destroyed) return
  const { expect, 'content-length': length, 'transfer-encoding': encoding } = incoming.headers
  if (length === undefined && encoding === undefined) return
  // The client still waits for `100 Continue`, which is sent when reading starts (see listen.ts).
  if (expect !== undefined && incoming.readableFlowing === null) return
  let bytes = 0
  const reading = readChunks(incoming, ({ byteLength }) => {
    if ((bytes += byteLength) > MAX_DISCARD_BYTES) reading.end(tooLarge())
  })
  const refusal = await awaitWithin(DISCARD_TIMEOUT_MS, reading.ended).catch(tooLarge)
  if (refusal?.kind !== 'too_large') return
  incoming.pause()
  if (outgoing) outgoing.shouldKeepAlive = false
  // Node calls this once the response is written. Its own version would reset the connection of a client that still
  // writes.
  incoming.socket.destroySoon = () => closeGently(incoming.resume().socket)
}

/** 1 s: time for a client that still writes to read the response. */
const LINGER_MS = 1_000

/**
 * Writes `last`, and destroys the socket a second later. At once would reset a client that still writes (RFC 9112
 * section 9.6).
 */
export function closeGently(socket: Duplex, last?: string): void {
  socket.end(last)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
