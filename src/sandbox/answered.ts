import type { Context } from 'hono'
import type { HttpEnv } from '../http/env.js'

/** Resolves once the answer to this request has left, or its connection is gone; at once when called in-process. */
export function answered(c: Pick<Context<HttpEnv>, 'env'>): Promise<void> {
  const outgoing: HttpEnv['Bindings']['outgoing'] | undefined = c.env?.outgoing
  if (!outgoing || outgoing.closed) return Promise.resolve()
  return new Promise((resolve) => outgoing.once('close', resolve))
}
