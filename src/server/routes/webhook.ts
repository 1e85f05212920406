import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { readBody } from '../../http/body.js'
import type { HttpEnv } from '../../http/env.js'
import type { Header } from '../../http/headers.js'
import type { Provider, WebhookScheme } from '../../providers/provider.js'
import { indexHeaders } from '../../webhook/headers.js'
import { claimedIdentity } from '../../webhook/identity.js'
import type { Intake } from '../../webhook/intake.js'
import { withRefusalDetail } from '../../webhook/refusal-detail.js'
import { SIGNATURE_HEADER } from '../../webhook/signature.js'

export interface WebhookParts {
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly provider: Pick<Provider, 'webhook'>
}

const PATH = '/webhook'
const OK = { ok: true } as const

/**
 * POST /webhook: 200 `{"ok":true}` once the delivery is on disk; 413 `Request too large`, 401 `Invalid signature`,
 * 400 `Invalid event`, 503 `Delivery could not be stored`.
 */
export function webhookRoutes({ intake, maxBody, provider }: WebhookParts) {
  return new Hono<HttpEnv>().post(PATH, async (c) => {
    const headers = headersOf(c)
    try {
      await intake.receive({ headers, body: await readBody(c, maxBody) })
    } catch (error) {
      throw withRefusalDetail(error, headers, { maxBody, scheme: provider.webhook })
    }
    return accepted(c)
  })
}

/** Answers 200. On Node's own response where there is one: a `Response` takes 6 to 30 % more processor time for a delivery. */
function accepted(c: Context<HttpEnv>): Response {
  const outgoing: HttpBindings['outgoing'] | undefined = c.env?.outgoing
  if (!outgoing) return c.json(OK)
  const json = JSON.stringify(OK)
  outgoing.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': json.length }).end(json)
  return RESPONSE_ALREADY_SENT
}

/** For the log: why a request that no route takes looks like a delivery that was sent to another path than /webhook. */
export function explainMisdirected(c: HttpRequest, scheme: WebhookScheme): string | undefined {
  if (c.req.method !== 'POST') return undefined
  const lines = indexHeaders(headersOf(c))
  if (!lines.has(SIGNATURE_HEADER) && !lines.has(scheme.eventHeader)) return undefined
  const claim = claimedIdentity(lines, scheme)
  return `it looks like a delivery: the payload URL of the webhook must end in ${PATH} (${claim})`
}

type HttpRequest = Pick<Context<HttpEnv>, 'env' | 'req'>

/**
 * All header lines, from Node's flat list of names and values, which keeps spelling, order and repetition. A request made
 * in-process has only fetch's `Headers`, which keep none of these.
 */
function headersOf({ env, req }: HttpRequest): readonly Header[] {
  if (!env?.incoming) return [...req.raw.headers]
  const { rawHeaders } = env.incoming
  const lines: Header[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''])
  return lines
}
