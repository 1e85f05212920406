import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { type HttpEnv, readBody, type ReceivedContext, receivedHeaders } from '../http/body.js'
import { pathOf } from '../base/source-names.js'
import type { HeaderRole } from '../senders/sender.js'
import { createSource, type Source } from '../senders/source.js'
import { type Arrived, answerDelivery, answerQuestion } from './arrived.js'
import { shakeHands } from './handshake.js'
import type { AppParts } from './parts.js'
import { Questions } from './reply.js'

const OK = JSON.stringify({ ok: true })
const OK_HEADERS = { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(OK)) }
const NONE = new Uint8Array()

/**
 * POST /webhook, for the code host, and POST /webhook/{source}: 200 `{"ok":true}` once the delivery is on disk. 413
 * `Request too large`, 403 for a browser if the scheme has no proof, 401 `Invalid signature`, 400 `Invalid event`, 503
 * `Delivery could not be stored`.
 *
 * A handshake of the sender is answered as its row says, and not stored, also with another method: 403 `Wrong verify
 * token`, 400 `Invalid challenge`.
 */
export function webhookRoutes(parts: AppParts) {
  const { sources } = parts
  const receive = async (c: Context<HttpEnv>, source: Source): Promise<Response> => {
    const passedOn = await answerDelivery(arrivedIn(c, source.name, parts), source, parts)
    if (passedOn) return passedOn
    // Written to Node's own response if there is one: a `Response` takes 6 to 30 % more processor time for a delivery.
    const outgoing: HttpBindings['outgoing'] | undefined = c.env?.outgoing
    if (!outgoing) return c.body(OK, 200, OK_HEADERS)
    outgoing.writeHead(200, OK_HEADERS).end(OK)
    return RESPONSE_ALREADY_SENT
  }
  const app = new Hono<HttpEnv>()
  for (const source of sources.values()) {
    app.post(pathOf(source.name), (c) => receive(c, source))
    if (source.sender.takesPath) app.post(`${pathOf(source.name)}/*`, (c) => receive(c, source))
  }
  return app.route('/', questionRoutes(parts))
}

/**
 * Requests of other methods than POST to the address of a source: its handshakes, and where a route replies, all others,
 * which its target answers and nothing stores. And the handshakes that bring the secret of a source that is about to be
 * added.
 */
function questionRoutes(parts: AppParts) {
  const { sources, maxBody, instance, expected } = parts
  const questions = new Questions()
  /** Answers a question. What is none is answered 405, and listed. */
  const ask = async (c: Context<HttpEnv>, source: Source): Promise<Response> =>
    (await answerQuestion(arrivedIn(c, source.name, parts), source, parts, questions)) ?? c.notFound()
  const app = new Hono<HttpEnv>()
  for (const source of sources.values()) {
    const path = pathOf(source.name)
    const { handshakeMethods: methods } = source.sender
    // HEAD has the route of GET.
    if (methods.has('GET') || methods.has('HEAD')) app.get(path, (c) => ask(c, source))
    if (methods.has('OPTIONS')) app.options(path, (c) => ask(c, source))
    if (instance?.replies(source.name)) app.all(path, (c) => ask(c, source))
  }
  // A source that is about to be added answers only the handshake that brings its secret.
  for (const { name, scheme } of expected.values()) {
    if (sources.has(name)) continue
    const source = createSource({ name, scheme, secrets: { current: new Secret(''), previous: undefined } })
    app.post(pathOf(name), async (c) => {
      const { body, ...arrived } = arrivedIn(c, name, parts)
      const handshaken = await shakeHands('POST', { ...arrived, body: await body(maxBody) }, source, parts)
      if (handshaken) return handshaken
      throw new RelayError('not_found', 'Not found')
    })
  }
  return app
}

function arrivedIn(c: Context<HttpEnv>, source: string, { addressOf }: Pick<AppParts, 'addressOf'>): Arrived {
  const path = c.req.path.slice(pathOf(source).length)
  return {
    method: c.req.method,
    headers: receivedHeaders(c),
    query: receivedQuery(c),
    payloadUrl: c.env?.payloadUrl ?? addressOf(source),
    ...(path !== '' && { path }),
    body: (limit) => readBody(c, limit),
  }
}

/** Roles of headers that other requests than deliveries do not have. */
const DISTINCTIVE: ReadonlySet<HeaderRole | undefined> = new Set(['event', 'signature', 'token'])

/** Methods with which senders ask an address. */
const QUESTIONS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Returns a detail for the log, and lists the request as refused, if an unrouted request looks like a delivery sent to
 * the wrong path. Lists one of another method than POST to a source's address, which asks something unknown.
 */
export function misdirectedDetail(
  c: Context<HttpEnv>,
  status: number,
  { sources, refusals }: AppParts,
): string | undefined {
  const { method, path } = c.req
  const headers = receivedHeaders(c)
  if (method !== 'POST') {
    const asked = [...sources.values()].find(({ name }) => pathOf(name) === path)
    if (asked && QUESTIONS.has(method))
      refusals.question({ headers, body: NONE, query: receivedQuery(c) }, asked, { method })
    return undefined
  }
  const source = [...sources.values()].find(({ sender }) =>
    headers.some(([name]) => DISTINCTIVE.has(sender.roleOf(name))),
  )
  return source && refusals.misdirected(headers, status, source)
}

/** Returns the query as it was sent: a URL of `fetch` would escape some characters of it. */
function receivedQuery({ env, req }: ReceivedContext): string | undefined {
  const [, query] = /^[^?#]*\?([^#]*)/.exec(env?.incoming?.url ?? req.url) ?? []
  return query
}
