import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { type HttpEnv, readBody } from '../http/body.js'
import { type Header, indexHeaders } from '../http/headers.js'
import type { CodeHost } from '../codehost/host.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'

export interface WebhookParts {
  /** The sender. */
  readonly host: Pick<CodeHost, 'name' | 'webhook'>
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly refusals: Refusals
}

const OK = { ok: true } as const
const NONE = new Uint8Array()

/**
 * POST /webhook: 200 `{"ok":true}` once the delivery is on disk; 413 `Request too large`, 401 `Invalid signature`,
 * 400 `Invalid event`, 503 `Delivery could not be stored`.
 */
export function webhookRoutes({ host, intake, maxBody, refusals }: WebhookParts) {
  return new Hono<HttpEnv>().post('/webhook', async (c) => {
    const headers = receivedHeaders(c)
    let body: Uint8Array = NONE
    try {
      body = await readBody(c, maxBody)
      await intake.receive({ headers, body }, { source: host.name })
    } catch (error) {
      throw refusals.http(error, { headers, body })
    }
    // On Node's own response where there is one: a `Response` takes 6 to 30 % more processor time for a delivery.
    const outgoing: HttpBindings['outgoing'] | undefined = c.env?.outgoing
    if (!outgoing) return c.json(OK)
    const json = JSON.stringify(OK)
    outgoing.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': json.length }).end(json)
    return RESPONSE_ALREADY_SENT
  })
}

/**
 * The detail for the log of a request that no route takes, answered with `status`, if it looks like a delivery that was sent to
 * another path than /webhook. It is then in the list of refused requests.
 */
export function misdirectedDetail(
  c: Context<HttpEnv>,
  status: number,
  { host, refusals }: Pick<WebhookParts, 'host' | 'refusals'>,
): string | undefined {
  if (c.req.method !== 'POST') return undefined
  const { eventHeader, proof } = host.webhook
  const headers = receivedHeaders(c)
  const lines = indexHeaders(headers)
  const isDelivery = [eventHeader, ...Object.keys(proof)].some((name) => lines.has(name))
  return isDelivery ? refusals.misdirected(headers, status) : undefined
}

/**
 * All header lines, from Node's flat list of names and values, which keeps spelling, order and repetition. A request made
 * in-process has only fetch's `Headers`, which keep none of these.
 */
function receivedHeaders({ env, req }: Pick<Context<HttpEnv>, 'env' | 'req'>): readonly Header[] {
  if (!env?.incoming) return [...req.raw.headers]
  const { rawHeaders } = env.incoming
  const lines: Header[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''])
  return lines
}
