import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { RelayError } from '../base/errors.js'
import { inTime } from '../base/wait.js'

/** Type of `c.env`. Its parts are missing when the application is called in-process, so a handler must work without them. */
export type HttpEnv = { Bindings: HttpBindings & { readonly bodies: BodyTotal } }

/** 64 MiB: 64 of the largest bodies at the default limit, and far less than a workstation has. */
const MIN_TOTAL = 67_108_864
/** With a higher limit per body, all may have as much as four of the largest. */
const LARGEST_BODIES = 4
/** 512 bytes: what Node holds for one chunk of a body besides its bytes (measured: 400 to 500). */
const CHUNK_OVERHEAD = 512
/** 5 s: by then the bodies read at the same time have ended, unless their senders stall. */
const RETRY_AFTER_SECONDS = 5

/** Limit for the bodies in memory, from their arrival until the answer: an announced length costs a client nothing. */
export class BodyTotal {
  readonly #limit: number
  #used = 0

  /** `maxBody`: the largest body that a handler reads, in bytes. */
  constructor(maxBody: number) {
    this.#limit = Math.max(MIN_TOTAL, LARGEST_BODIES * maxBody)
  }

  /** Counts these bytes; false, and counts nothing, where they do not fit. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#limit) return false
    this.#used += bytes
    return true
  }

  release(bytes: number): void {
    this.#used -= bytes
  }
}

/**
 * Reads the exact bytes of a request's body. The bytes past `limit` are never kept. The router reads the rest of a refused body
 * before it answers (see {@link discardBody}), so that the client reads the answer.
 * @throws RelayError `too_large` over the limit (in bytes), `cancelled` when the client disconnects before the end,
 * `unavailable` when too many bodies are read at the same time (see {@link BodyTotal}).
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
  { incoming, outgoing, bodies }: HttpEnv['Bindings'],
  limit: number,
): Promise<Uint8Array> {
  const { socket, headers } = incoming
  if (Number(headers['content-length']) > limit) throw tooLarge()
  const chunks: Uint8Array[] = []
  let [bytes, taken] = [0, 0]
  const release = (): void => {
    socket.off('close', release)
    bodies.release(taken)
    taken = 0
  }
  outgoing.once('close', release)
  // The response to a pipelined request has no socket yet, and then does not close.
  socket.once('close', release)
  const refusal = await readChunks(incoming, (chunk) => {
    bytes += chunk.byteLength
    if (bytes > limit) return tooLarge()
    const size = chunk.byteLength + CHUNK_OVERHEAD
    if (!bodies.take(size))
      return new RelayError('unavailable', 'Too many request bodies at once', {
        retryAfter: RETRY_AFTER_SECONDS,
      })
    taken += size
    chunks.push(chunk)
    return undefined
  })
  // The listeners hold on to `chunks` until the request closes.
  const all = chunks.splice(0)
  // Most bodies are one chunk, which needs no copy.
  const [first] = all
  if (!refusal) return first && all.length === 1 ? first : Buffer.concat(all, bytes)
  release()
  throw refusal
}

/** Reads a body until `take` refuses a chunk. Resolves with that error, or with `cancelled` when the client goes away first. */
function readChunks(
  incoming: IncomingMessage,
  take: (chunk: Uint8Array) => RelayError | undefined,
): Promise<RelayError | undefined> {
  return new Promise((resolve) => {
    let isOver = false
    const end = (refusal?: RelayError): void => {
      isOver = true
      resolve(refusal)
    }
    // Each request closes: an error is made only for one that was not read to its end.
    const gone = (): void => {
      if (!isOver) end(new RelayError('cancelled', 'The client went away'))
    }
    // A destroyed request emits no more events.
    if (incoming.destroyed) return gone()
    // The listeners stay when it is over: removing them costs more than ignoring their events.
    incoming
      .on('data', (chunk: Uint8Array) => {
        const refusal = isOver ? undefined : take(chunk)
        if (refusal) end(refusal)
      })
      .on('end', () => end())
      .on('error', gone)
      .on('close', gone)
  })
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
  const reading = readChunks(incoming, ({ byteLength }) =>
    (bytes += byteLength) > MAX_DISCARD_BYTES ? tooLarge() : undefined,
  )
  const refusal = await inTime(DISCARD_TIMEOUT_MS, reading).catch(tooLarge)
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
