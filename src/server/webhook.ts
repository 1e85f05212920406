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
 * POST /webhook, the code host's, and POST /webhook/{source}: 200 `{"ok":true}` once the delivery is on disk, also for a test of the
 * address, which is not stored; or 200 with the sender's challenge. 413 `Request too large`, 403 for a browser where nothing is proved,
 * 401 `Invalid signature`, 400 `Invalid event`, 503 `Delivery could not be stored`.
 */
export function webhookRoutes({
  sources,
  intake,
  maxBody,
  refusals,
}: Pick<AppParts, 'sources' | 'intake' | 'maxBody' | 'refusals'>) {
  const take = async (c: Context<HttpEnv>, source: Source): Promise<Response> => {
    const headers = receivedHeaders(c)
    // Any web page can have its reader's browser send something here. A browser then says so (Fetch, section 3.1).
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
    // On Node's own response where there is one: a `Response` takes 6 to 30 % more processor time for a delivery.
    const outgoing: HttpBindings['outgoing'] | undefined = c.env?.outgoing
    if (!outgoing) return c.json(answer)
    const json = JSON.stringify(answer)
    outgoing
      .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) })
      .end(json)
    return RESPONSE_ALREADY_SENT
  }
  const app = new Hono<HttpEnv>()
  for (const source of sources.values()) app.post(pathOf(source.name), (c) => take(c, source))
  return app
}

/** Bytes: a test of an address has two short fields, and anybody may send one. */
const MAX_CHECK = 1024

/** Whether a request only tests the address, and is no delivery. */
function isCheck(headers: readonly Header[], body: Uint8Array, { scheme: { check } }: Source): boolean {
  if (check === undefined || body.byteLength > MAX_CHECK) return false
  return isForm(indexHeaders(headers)) && formFields(body)[check] === '1'
}

/** A detail for the log, if a request that no route takes looks like a delivery to another path than its source's. It is then listed. */
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

/** All header lines, from Node's flat list, which keeps spelling, order and repetition. A request made in-process has only fetch's. */
function receivedHeaders({ env, req }: Pick<Context<HttpEnv>, 'env' | 'req'>): readonly Header[] {
  if (!env?.incoming) return [...req.raw.headers]
  const { rawHeaders } = env.incoming
  const lines: Header[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''])
  return lines
}
