import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { RelayError } from '../base/errors.js'
import { bodyBudgetOf } from './body-budget.js'
import { discardBody } from './discard.js'
import type { HttpEnv } from './env.js'

/**
 * Reads the exact bytes of a request's body. The bytes past `limit` are never kept: the rest of the body is read and
 * discarded first (see {@link discardBody}), so that the client reads its answer.
 * @throws RelayError `too_large` over the limit (in bytes), `cancelled` when the client disconnects before the end,
 * `unavailable` when too many bodies are read at the same time (see {@link BodyBudget}).
 */
export async function readBody(c: Pick<Context<HttpEnv>, 'env' | 'req'>, limit: number): Promise<Uint8Array> {
  // A request made in-process has its body in memory and no connection.
  const incoming: HttpBindings['incoming'] | undefined = c.env?.incoming
  const body = incoming ? await readIncoming(c.env, limit) : await readRequest(c.req.raw, limit)
  if (body) return body
  if (incoming) await discardBody(c.env)
  throw new RelayError('too_large', 'Request too large')
}

async function readRequest(request: Request, limit: number): Promise<Uint8Array | undefined> {
  const body = new Uint8Array(await request.arrayBuffer())
  return body.byteLength > limit ? undefined : body
}

/**
 * Undefined when the body is over the limit. It then flows on, as after `unavailable`, or was never started; the caller
 * discards the rest.
 */
async function readIncoming(
  { incoming, outgoing }: HttpBindings,
  limit: number,
): Promise<Uint8Array | undefined> {
  if (Number(incoming.headers['content-length']) > limit) return undefined
  if (incoming.readableDidRead) throw new Error('the body was read before')
  // A destroyed request emits no more events.
  if (incoming.destroyed) throw new RelayError('cancelled', 'The client went away')
  return new Promise((resolve, reject) => {
    let chunks: Uint8Array[] = []
    let bytes = 0
    let settled = false
    // The listeners stay after settling: removing them costs more than ignoring their events.
    const settle = (done: () => void, free = share?.release): void => {
      if (settled) return
      settled = true
      free?.()
      done()
      chunks = []
    }
    const share = bodyBudgetOf(incoming.socket)?.open((error) => settle(() => reject(error)))
    const keep = (chunk: Uint8Array): void => {
      if (settled) return
      bytes += chunk.byteLength
      if (bytes > limit) return settle(() => resolve(undefined))
      chunks.push(chunk)
      share?.add(chunk.byteLength)
    }
    const end = (): void => settle(() => resolve(join(chunks, bytes)), share?.complete)
    outgoing.once('close', () => share?.release())
    const fail = (): void => settle(() => reject(new RelayError('cancelled', 'The client went away')))
    incoming.on('data', keep).on('end', end).on('error', fail).on('close', fail)
  })
}

/** Most bodies are one chunk, which needs no copy. */
function join(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = chunks
  return first && chunks.length === 1 ? first : Buffer.concat(chunks, bytes)
}
