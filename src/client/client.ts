import type { hc, InferRequestType, InferResponseType } from 'hono/client'
import type { Cancellable } from '../base/abort.js'
import type { SendRequest } from '../net/loopback.js'
import type { CommentRef, Merged, Reacted } from '../codehost/host.js'
import type { createApp } from '../server/app.js'
import { post } from './post.js'

/** What the service does for one user. */
export interface RelayClient {
  comment(input: Taken<'comment'>, options?: Cancellable): Promise<CommentRef>
  merge(input: Taken<'merge'>, options?: Cancellable): Promise<Merged>
  react(input: Taken<'react'>, options?: Cancellable): Promise<Reacted>
}

export interface ClientOptions {
  /** Where the service is; an application called in-process still needs an address with a name it answers to. */
  readonly url: string
  readonly bearer: string
  /** Through the network, or the application's own. */
  readonly send: SendRequest
}

/** The routes as the application declares them: the types of what they take and answer, and nothing of their code. */
type Routes = ReturnType<typeof hc<ReturnType<typeof createApp>>>['api']
export type Taken<Name extends keyof Routes> = InferRequestType<Routes[Name]['$post']>['json']
type Given<Name extends keyof Routes> = InferResponseType<Routes[Name]['$post'], 200>

/**
 * Typed calls to a relay. Each sends one request, once; redirects are errors, so that the bearer goes nowhere else.
 * @throws RelayError of the kind of the answer's status, with the answer's text; `unavailable` when the service cannot
 * be reached, the connection breaks or no answer comes for a minute; `cancelled`. The text says so where the request may
 * have been carried out.
 */
export function createClient(options: ClientOptions): RelayClient {
  const call = caller(options)
  return {
    async comment(input, options) {
      const { id, url } = await call('comment', input, options)
      return { id, url }
    },
    async merge(input, options) {
      const { ok: _, ...result } = await call('merge', input, options)
      return result
    },
    async react(input, options) {
      const { id, content, created } = await call('react', input, options)
      return { id, content, created }
    },
  }
}

function caller({ url, bearer, send }: ClientOptions) {
  const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' }
  return async function call<Name extends keyof Routes>(
    name: Name,
    input: Taken<Name>,
    options?: Cancellable,
  ): Promise<Given<Name>> {
    const body = JSON.stringify(input)
    return post(send, new URL(`/api/${name}`, url), { headers, body }, options)
  }
}
