import { type Log, silentLog } from '../base/log.js'
import { readBody, type ReceivedContext, receivedHeaders } from '../http/body.js'
import type { HostCheck } from '../http/host-check.js'
import type { FetchHandler } from '../http/listen.js'
import { createRouter, errorResponse } from '../http/router.js'
import type { SenderAnswer } from './exchanges.js'
import type { Hub } from './hub.js'
import { CALL_PATH } from './protocol.js'
import { WorkstationCalls } from './calls.js'

export interface HubAppParts {
  readonly hub: Hub
  readonly log: Log
  readonly hostAllowed: HostCheck
  /** Rejects while nothing can be stored. */
  readonly ready: () => Promise<void>
  /** Answers GET /metrics. Undefined if they are off. */
  readonly metrics: { readonly fetch: FetchHandler } | undefined
  /** Aborts when the hub stops. */
  readonly stopped: AbortSignal
}

/** A channel and a source in an address, and what follows. Sources are named as in `relay serve --source`. */
const ADDRESS = /^\/([\w-]{32})\/([a-z][a-z0-9_-]{0,63})((?:\/[^?#]*)?)(?:\?([^#]*))?$/i
const OK = { ok: true }
/**
 * A browser runs no script of an answer, and treats it as from another origin than the hub, since many workstations share
 * the hub's origin.
 */
const GUARD = { 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': 'sandbox' }
/**
 * Headers of a workstation's answer that its sender gets: those that describe the body, and those that senders ask for.
 * Others may be meant for all of the hub's name (HSTS, cookies), or for the proxy before it (X-Accel-Redirect).
 */
const PASSED_ON: ReadonlySet<string> = new Set([
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-type',
  'etag',
  'last-modified',
  'location',
  'retry-after',
  'vary',
  // Answers of handshakes: src/senders/handshakes.ts.
  'smartsheet-hook-response',
  'webhook-allowed-origin',
  'webhook-allowed-rate',
  'x-hook-secret',
])
/** Statuses of answers without a body (Fetch, section 2.2.3). */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Makes the hub's HTTP service. It does not listen by itself. Any request to `/{channel}/{source}` is stored before it is
 * answered: 200 `{"ok":true}`, or as its workstation says. 404 for a channel that does not exist, as for any other
 * address, 413, 429, 507 over the channel's bounds, 503 `Delivery could not be stored`.
 */
export function createHubApp(parts: HubAppParts) {
  const { hub, log, ready, metrics, stopped } = parts
  const calls = new WorkstationCalls(hub, stopped)
  const app = createRouter({ hostAllowed: parts.hostAllowed, log, shownPath: withoutAddress })
  app.get('/health', (c) => c.json({ status: 'ok' }))
  app.get('/ready', async (c) => {
    try {
      await ready()
      return c.json({ status: 'ready' })
    } catch (error) {
      return errorResponse(error, silentLog)
    }
  })
  if (metrics) app.all('/metrics', (c) => metrics.fetch(c.req.raw, c.env))
  app.post(`${CALL_PATH}:call`, (c) => calls.answer(c, c.req.param('call')))
  app.all('*', async (c) => {
    const [, channel, source = '', path = '', query] = ADDRESS.exec(receivedUrl(c)) ?? []
    if (channel === undefined) return c.notFound()
    const { method } = c.req
    const answer = await hub.take(channel, {
      method,
      source,
      path,
      query,
      headers: receivedHeaders(c),
      body: (limit) => readBody(c, limit),
    })
    return answer ? responseOf(answer, method) : c.json(OK)
  })
  return app
}

function responseOf({ status, headers, body }: SenderAnswer, method: string): Response {
  const own = new Headers()
  for (const [name, value] of headers) if (PASSED_ON.has(name.toLowerCase())) own.append(name, value)
  for (const [name, value] of Object.entries(GUARD)) own.set(name, value)
  const isEmpty = method === 'HEAD' || BODILESS.has(status)
  return new Response(isEmpty ? null : new Uint8Array(body), { status, headers: own })
}

/** Address as it was sent: a URL of `fetch` would escape some characters of it. */
function receivedUrl({ env, req }: ReceivedContext): string {
  const { pathname, search } = new URL(req.url)
  return env?.incoming?.url ?? pathname + search
}

/** Paths of the hub itself, which are no secrets. */
const OWN_PATH = /^\/(?:health|ready|metrics|hub\/v1\/[a-z]{1,16})$/
/** Characters that the log shows of any other path, with the slash: enough for an operator to recognize the channel. */
const SHOWN = 5

/** A path without a channel's address, in any spelling: readers of the log could send to it. */
function withoutAddress(path: string): string {
  return OWN_PATH.test(path) || path.length <= SHOWN ? path : `${path.slice(0, SHOWN)}…`
}
