import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { RelayError } from '../base/errors.js'
import { inTime } from '../base/wait.js'

/** Type of `c.env`. Its parts are missing when the application is called in-process, so a handler must work without them. */
export type HttpEnv = {
  Bindings: HttpBindings & {
    readonly bodies: BodyTotal
    /** Called when bytes of a wanted body arrive. */
    readonly onProgress: () => void
    /** Calls `run` once the answer is made, which the client need not have read. */
    readonly onAnswer: (run: () => void) => void
  }
}

/** 64 MiB: 64 of the largest bodies at the default limit, and far less than a workstation has. */
const MIN_TOTAL = 67_108_864
/** With a higher limit per body, all may have as much as four of the largest. */
const LARGEST_BODIES = 4
/** 512 bytes: what Node holds for one chunk of a body besides its bytes (measured: 400 to 500). */
const CHUNK_OVERHEAD = 512
/** 5 s: by then the bodies read at the same time have ended, unless their senders stall. */
const RETRY_AFTER_SECONDS = 5

/** A body in memory. */
interface Held {
  /** When it began, by `performance.now()`. */
  readonly began: number
  /** Bytes that are counted for it. */
  size: number
  /** Ends it, and gives its bytes back. */
  readonly end: (refusal: RelayError) => void
}

/**
 * Room for the bodies in memory, from their arrival until the answer: an announced length costs a client nothing. Where there is no room
 * for more bytes, the unfinished body that has held most for longest is ended. So clients that keep bodies back, or send a byte now and then,
 * which needs no signature, take no room from a delivery that arrives, although a slow line has it pause.
 */
export class BodyTotal {
  readonly #limit: number
  #used = 0
  /** Those that are not whole. */
  readonly #unfinished = new Set<Held>()

  /** `maxBody`: the largest body that a handler reads, in bytes. */
  constructor(maxBody: number) {
    this.#limit = Math.max(MIN_TOTAL, LARGEST_BODIES * maxBody)
  }

  /** Counts these bytes of an unfinished body, which may end other ones, or this one where all others are whole. */
  take(body: Held, bytes: number): void {
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

  /** By its size and its age. One that just began has held nothing yet, whatever its size. */
  #dearest(): Held | undefined {
    const now = performance.now()
    let [found, most]: [Held | undefined, number] = [undefined, -1]
    for (const body of this.#unfinished) {
      const cost = (now - body.began) * body.size
      if (cost > most) [found, most] = [body, cost]
    }
    return found
  }

  /** From now on its bytes are kept until they are released. */
  finish(body: Held): void {
    this.#unfinished.delete(body)
  }

  release(body: Held): void {
    this.#unfinished.delete(body)
    this.#used -= body.size
    body.size = 0
  }
}

/**
 * Reads the exact bytes of a request's body. The bytes past `limit` are never kept. The router reads the rest of a refused body
 * before it answers (see {@link discardBody}), so that the client reads the answer.
 * @throws RelayError `too_large` over the limit (in bytes), `cancelled` when the client disconnects before the end,
 * `unavailable` when it is ended for other bodies (see {@link BodyTotal}).
 */
export async function readBody(
  { env, req }: Pick<Context<HttpEnv>, 'env' | 'req'>,
  limit: number,
): Promise<Uint8Array> {
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
    bodies.take(held, chunk.byteLength + CHUNK_OVERHEAD)
    onProgress()
  })
  const held = { began: performance.now(), size: 0, end: reading.end }
  const release = (): void => {
    socket.off('close', release)
    bodies.release(held)
  }
  outgoing.once('close', release)
  onAnswer(release)
  // The response to a pipelined request has no socket yet, and then does not close.
  socket.once('close', release)
  const refusal = await reading.ended
  bodies.finish(held)
  // The listeners hold on to `chunks` until the request closes.
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

/** A body that is read. */
interface Reading {
  /** Resolves at the end; with an error if it was ended before, or with `cancelled` when the client goes away first. */
  readonly ended: Promise<RelayError | undefined>
  /** Ends it: no more chunks are taken. */
  readonly end: (refusal?: RelayError) => void
}

/** Reads a body. `take` is called with each chunk, in order. */
function readChunks(incoming: IncomingMessage, take: (chunk: Uint8Array) => void): Reading {
  let isOver = false
  let settle: (refusal?: RelayError) => void = () => {}
  const ended = new Promise<RelayError | undefined>((resolve) => (settle = resolve))
  const end = (refusal?: RelayError): void => {
    isOver = true
    settle(refusal)
  }
  // Each request closes: an error is made only for one that was not read to its end.
  const gone = (): void => {
    if (!isOver) end(new RelayError('cancelled', 'The client went away'))
  }
  // A destroyed request emits no more events.
  if (incoming.destroyed) gone()
  // The listeners stay when it is over: removing them costs more than ignoring their events.
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

/** 32 MiB: above the largest body any provider sends (25 MiB), so that an honest client always reads its answer. */
const MAX_DISCARD_BYTES = 33_554_432
/** 5 s: half of the time that a provider waits for an answer. */
const DISCARD_TIMEOUT_MS = 5_000

/** Reads the rest of a body, at most 32 MiB or 5 s, before a refusal: an answer sent while the client still writes is lost. Never rejects. */
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
  const refusal = await inTime(DISCARD_TIMEOUT_MS, reading.ended).catch(tooLarge)
  if (refusal?.kind !== 'too_large') return
  incoming.pause()
  if (outgoing) outgoing.shouldKeepAlive = false
  // Node calls this once the answer is written. Its own version would reset the connection of a client that still writes.
  incoming.socket.destroySoon = () => closeGently(incoming.resume().socket)
}

/** 1 s: time for a client that still writes to read the answer. */
const LINGER_MS = 1_000

/** Writes `last`, and destroys the socket a second later: at once would reset a client that still writes (RFC 9112 section 9.6). */
export function closeGently(socket: Duplex, last?: string): void {
  socket.end(last)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
