import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { RelayError } from '../base/errors.js'
import { discardBody } from './discard.js'
import type { HttpEnv } from './env.js'

/**
 * The exact bytes of a request's body. Of a body over `limit` bytes nothing beyond the limit is ever kept; the rest is
 * read and thrown away first (see {@link discardBody}), so that the client reads its answer.
 * @throws RelayError `too_large` over the limit, `cancelled` when the client goes away before the end.
 */
export async function readBody(c: Pick<Context<HttpEnv>, 'env' | 'req'>, limit: number): Promise<Uint8Array> {
  // Called in-process the body is in memory already, and there is no connection to keep in order.
  const incoming: HttpBindings['incoming'] | undefined = c.env?.incoming
  const body = incoming ? await readIncoming(incoming, limit) : await readRequest(c.req.raw, limit)
  if (body) return body
  if (incoming) await discardBody(c.env)
  throw new RelayError('too_large', 'Request too large')
}

async function readRequest(request: Request, limit: number): Promise<Uint8Array | undefined> {
  const body = new Uint8Array(await request.arrayBuffer())
  return body.byteLength > limit ? undefined : body
}

/**
 * Undefined when the body is over the limit; what is left of it flows on, or was never asked for.
 * @throws RelayError `cancelled` when the client goes away before the end.
 */
export async function readIncoming(
  incoming: HttpBindings['incoming'],
  limit: number,
): Promise<Uint8Array | undefined> {
  if (Number(incoming.headers['content-length']) > limit) return undefined
  if (incoming.readableDidRead) throw new Error('the body was read before')
  // Nothing more would be heard of it.
  if (incoming.destroyed) throw new RelayError('cancelled', 'The client went away')
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    let settled = false
    const settle = (body: Uint8Array | undefined): void => {
      settled = true
      resolve(body)
    }
    // The listeners stay: what comes when it is settled changes nothing, and taking them off costs more than they do.
    const keep = (chunk: Uint8Array): void => {
      bytes += chunk.byteLength
      if (bytes <= limit) chunks.push(chunk)
      else if (!settled) {
        chunks.length = 0
        settle(undefined)
      }
    }
    const end = (): void => settle(join(chunks, bytes))
    const fail = (): void => {
      if (!settled) reject(new RelayError('cancelled', 'The client went away'))
    }
    incoming.on('data', keep).on('end', end).on('error', fail).on('close', fail)
  })
}

/** Most bodies come in one piece, which is given on as it is. */
function join(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = chunks
  return first && chunks.length === 1 ? first : Buffer.concat(chunks, bytes)
}
