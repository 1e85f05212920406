import { hc, type ClientResponse } from 'hono/client'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type {
  CommentInput,
  CommentResult,
  MergeInput,
  MergeResult,
  ReactInput,
  ReactResult,
} from '../providers/provider.js'
import type { createApp } from '../server/app.js'
import { lost, refused } from './failure.js'

/** What the service does for one user. */
export interface RelayClient {
  comment(input: CommentInput, options?: Cancellable): Promise<CommentResult>
  merge(input: MergeInput, options?: Cancellable): Promise<MergeResult>
  react(input: ReactInput, options?: Cancellable): Promise<ReactResult>
}

export interface ClientOptions {
  /** Where the service is; an application called in-process still needs an address with a name it answers to. */
  readonly url: string
  readonly bearer: string
  /** The network's, or the application's own. */
  readonly fetch: typeof fetch
}

/**
 * Typed calls to a relay. Each sends one request, once; redirects are errors, so that the bearer goes nowhere else.
 * @throws RelayError of the kind of the answer's status, with the answer's text; `unavailable` when the service cannot
 * be reached or the connection breaks; `cancelled`. The text says so where the request may have been carried out.
 */
export function createClient({ url, bearer, fetch }: ClientOptions): RelayClient {
  const headers = { authorization: `Bearer ${bearer}` }
  const { api } = hc<ReturnType<typeof createApp>>(url, { fetch, headers })
  const call = caller(url)
  return {
    async comment(json, options) {
      const { id, url } = await call((init) => api.comment.$post({ json }, { init }), options)
      return { id, url }
    },
    async merge(json, options) {
      const { ok: _, ...result } = await call((init) => api.merge.$post({ json }, { init }), options)
      return result
    },
    async react(json, options) {
      const { id, content, created } = await call((init) => api.react.$post({ json }, { init }), options)
      return { id, content, created }
    },
  }
}

type Send<Answer> = (init: RequestInit) => Promise<ClientResponse<Answer, 200, 'json'>>

function caller(url: string) {
  return async function call<Answer>(send: Send<Answer>, { signal }: Cancellable = {}) {
    signal?.throwIfAborted()
    try {
      const response = await send({ redirect: 'error', signal: signal ?? null })
      // The types know the answers of the routes alone; a refusal is `{"error": …}`.
      if (!response.ok) throw await refused(response)
      return await response.json()
    } catch (error) {
      if (signal?.aborted) throw interrupted(error)
      throw error instanceof RelayError ? error : lost(url, error)
    }
  }
}

function interrupted(cause: unknown): RelayError {
  return new RelayError('cancelled', 'Interrupted; the request may have been carried out all the same', {
    cause,
  })
}
