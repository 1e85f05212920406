import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { formFields } from '../http/forms.js'
import { RelayError } from '../base/errors.js'
import { type HttpEnv, readBody } from '../http/body.js'
import { type Header, indexHeaders } from '../http/headers.js'
import { isForm, pathOf, type Source } from '../webhook/signature.js'
import type { AppParts } from './parts.js'

const OK = { ok: true } as const
const NONE = new Uint8Array()

/**
 * POST /webhook, for the code host, and POST /webhook/{source}: 200 `{"ok":true}` once the delivery is on disk, or for
 * a test of the address, which is not stored; or 200 with the sender's challenge. 413 `Request too large`, 403 for a
 * browser if the scheme has no proof, 401 `Invalid signature`, 400 `Invalid event`, 503 `Delivery could not be stored`.
 */
export function webhookRoutes({
  sources,
  intake,
  maxBody,
  refusals,
}: Pick<AppParts, 'sources' | 'intake' | 'maxBody' | 'refusals'>) {
  const receive = async (c: Context<HttpEnv>, source: Source): Promise<Response> => {
    const headers = receivedHeaders(c)
    // Any web page can make its reader's browser send a request here. The browser then adds an Origin header (Fetch,
    // section 3.1).
    if (source.scheme.proofs.length === 0 && c.req.header('origin') !== undefined)
      throw new RelayError('forbidden', 'Deliveries that nothing proves are not taken from a browser')
    let body: Uint8Array = NONE
    let challenge: string | undefined
    try {
      body = await readBody(c, maxBody)
      if (isCheck(headers, body, source)) return c.json(OK)
      challenge = (await intake.receive({ headers, body }, { source })).challenge
    } catch (error) {
      throw refusals.http(error, { headers, body }, source)
    }
    const answer = challenge === undefined ? OK : { challenge }
    // Written to Node's own response if there is one: a `Response` takes 6 to 30 % more processor time for a delivery.
    const outgoing: HttpBindings['outgoing'] | undefined = c.env?.outgoing
    if (!outgoing) return c.json(answer)
    const json = JSON.stringify(answer)
    outgoing
      .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) })
      .end(json)
    return RESPONSE_ALREADY_SENT
  }
  const app = new Hono<HttpEnv>()
  for (const source of sources.values()) app.post(pathOf(source.name), (c) => receive(c, source))
  return app
}

/** Largest test of an address, in bytes: a test has two short fields, and anybody may send one. */
const MAX_CHECK = 1024

/** True if a request only tests the address and is no delivery. */
function isCheck(headers: readonly Header[], body: Uint8Array, { scheme: { check } }: Source): boolean {
  if (check === undefined || body.byteLength > MAX_CHECK) return false
  return isForm(indexHeaders(headers)) && formFields(body)[check] === '1'
}

/**
 * Returns a detail for the log, and lists the request as refused, if an unrouted request looks like a delivery sent to
 * the wrong path.
 */
export function misdirectedDetail(
  c: Context<HttpEnv>,
  status: number,
  { sources, refusals }: Pick<AppParts, 'sources' | 'refusals'>,
): string | undefined {
  if (c.req.method !== 'POST') return undefined
  const headers = receivedHeaders(c)
  const lines = indexHeaders(headers)
  const source = [...sources.values()].find(({ scheme: { event, proofs } }) =>
    [...event, ...proofs.map(({ header }) => header)].some((name) => lines.has(name)),
  )
  return source && refusals.misdirected(headers, status, source)
}

/**
 * Returns all header lines. Node's flat list preserves spelling, order and repetition; a request made in-process has
 * only the headers of `fetch`.
 */
function receivedHeaders({ env, req }: Pick<Context<HttpEnv>, 'env' | 'req'>): readonly Header[] {
  if (!env?.incoming) return [...req.raw.headers]
  const { rawHeaders } = env.incoming
  const lines: Header[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''])
  return lines
}
