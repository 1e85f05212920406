import { senderOf } from '../senders/senders.js'
import { pathOf } from '../base/source-names.js'
import type { Context, MiddlewareHandler } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { z } from 'zod/mini'
import { silentLog } from '../base/log.js'
import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { fixtureText, toFixture } from '../replay/fixture.js'
import { type HttpEnv, readBody } from '../http/body.js'
import type { FetchHandler } from '../http/listen.js'
import { createRouter, requireForwardedHost, errorResponse } from '../http/router.js'
import { parseJson } from '../json/parse.js'
import { addHook, addRoute, addSource, readChoices, removeRoute } from './add.js'
import type { Opened, OpenRequest } from './api.js'
import { MAX_SECRET } from '../webhook/add-source.js'
import { curlCommand } from './curl.js'
import { describeDelivery, readEntry, listDeliveries } from './deliveries.js'
import { LiveHub } from './live.js'
import type { InspectorParts } from './parts.js'
import { describeRefused, listRefused } from './refused.js'
import { forwardAgain, sendEdited, skipWaiting } from './send.js'
import { Sessions } from './sessions.js'
import { openShell, type StaticFile } from './shell.js'
import { createStateReader, readTimeline } from './state.js'
import { listTriggers, readExample, sendTriggered } from './trigger.js'

/** The web inspector: all paths below /inspect/. */
export interface Inspector {
  readonly fetch: FetchHandler
  /** Issues a one-time code, with which a browser opens the inspector. */
  issueCode(): string
  /** True until the code is used or expires. */
  isPending(code: string): boolean
}

/**
 * Headers of every response: only own files are loaded, no frame may embed the page, other windows have no access to
 * it, and no cache stores it.
 */
const HEADERS = Object.entries({
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src data: 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
})

/** Addresses of the page, which all have the same response. */
const PAGES = [
  '/inspect/',
  '/inspect/deliveries/:n{[0-9]+|last}',
  '/inspect/deliveries/:n{[0-9]+}/compare/:other{[0-9]+}',
  '/inspect/refused',
  '/inspect/refused/:id{[0-9]+}',
  '/inspect/state',
  '/inspect/open',
]

/** Makes the inspector. Loaded on first use: see serve/instance.ts. */
export async function createInspector(parts: InspectorParts): Promise<Inspector> {
  const { clock, store, hostAllowed, log } = parts
  const sessions = new Sessions(store, clock, parts.onCodeUsed)
  const live = new LiveHub(parts)
  parts.instance.subscribe((event) => live.onEvent(event))
  const { page, preloading, missing, assets } = await openShell(parts.place)
  const app = createRouter({ hostAllowed, log })
  app.use(async (c, next) => {
    await next()
    for (const [name, value] of HEADERS) if (!c.res.headers.has(name)) c.res.headers.set(name, value)
  })
  app.use(requireForwardedHost(hostAllowed))
  for (const address of PAGES)
    app.get(address, (c) => sendFile(c, cookieOf(c) === undefined ? page : preloading))
  for (const [address, file] of assets) app.get(address, (c) => sendFile(c, file))
  app.use('/inspect/api/*', refuseOtherSites)
  app.post('/inspect/api/open', async (c) => {
    const { code } = await readJson(c, OPEN, MAX_REQUEST)
    const session = await sessions.open(code)
    if (!session)
      throw new RelayError(
        'unauthenticated',
        'That code is wrong, was used before, or is older than 5 minutes',
      )
    const { cookie, key } = session
    setCookie(c, cookieName(c), cookie, { path: '/inspect', httpOnly: true, sameSite: 'Strict' })
    return c.json<Opened>({ key })
  })
  app.use('/inspect/api/*', requireSession(sessions, parts.command('inspect')))
  addReads(app, parts)
  addChanges(app, parts)
  app.get('/inspect/api/live', (c) => {
    const cookie = cookieOf(c)
    return live.open({ isOpen: () => sessions.mayRead(cookie), outgoing: c.env?.outgoing })
  })
  app.use(async (c, next) => {
    if (!isNavigation(c)) return next()
    return c.body(missing.body, 404, { 'Content-Type': missing.type })
  })
  return {
    fetch: app.fetch,
    issueCode: () => sessions.issueCode(),
    isPending: (code) => sessions.isPending(code),
  }
}

type Router = ReturnType<typeof createRouter>

function addReads(app: Router, parts: InspectorParts): void {
  const readState = createStateReader(parts)
  app
    .get('/inspect/api/deliveries', async (c) => c.json(await listDeliveries(parts, c.req.query())))
    .get('/inspect/api/deliveries/:n', async (c) => c.json(await describeDelivery(parts, readNumber(c, 'n'))))
    .get('/inspect/api/deliveries/:n/body', async (c) => {
      const { n, body, provider, scheme = provider } = await readEntry(parts, readNumber(c, 'n'))
      const shown = senderOf(scheme).hideSecrets(body, 'show')
      return c.body(new Uint8Array(shown), 200, download(`delivery-${n}`, 'application/octet-stream'))
    })
    .get('/inspect/api/deliveries/:n/fixture', async (c) => {
      const entry = await readEntry(parts, readNumber(c, 'n'))
      const name = `${entry.event.replaceAll(/[^\w-]/g, '-')}-${entry.n}.json`
      return c.body(fixtureText(toFixture(entry)), 200, download(name, 'application/json'))
    })
    .get('/inspect/api/deliveries/:n/curl', async (c) => {
      const entry = await readEntry(parts, readNumber(c, 'n'))
      const sender = senderOf(entry.scheme ?? entry.provider)
      const isSignature = (name: string): boolean => sender.roleOf(name) === 'signature'
      const body = sender.hideSecrets(entry.body, 'pass on')
      return c.text(curlCommand({ ...entry, body }, parts.url + pathOf(entry.provider), isSignature))
    })
    .get('/inspect/api/refused', async (c) => c.json(await listRefused(parts)))
    .get('/inspect/api/refused/:id', async (c) => c.json(await describeRefused(parts, readNumber(c, 'id'))))
    .get('/inspect/api/state', async (c) => c.json(await readState()))
    .get('/inspect/api/triggers', (c) => c.json(listTriggers(parts)))
    .get('/inspect/api/triggers/example', (c) => c.json(readExample(parts, c.req.query())))
    .get('/inspect/api/choices', async (c) => c.json(await readChoices(parts)))
    .get('/inspect/api/timeline', async (c) => c.json(await readTimeline(parts)))
}

/** Largest request, except for sending an edit: 16 KiB, enough for the ids of all targets. */
const MAX_REQUEST = 16_384
/** Largest headers of an edit: 16 KiB, which is Node's limit for the headers of a request, and so of a delivery. */
const MAX_HEADERS = 16_384
/** Bytes that JSON may need for each byte of text. */
const ESCAPED = 6

const OPEN: z.ZodMiniType<OpenRequest> = z.strictObject({ code: z.string() })
const NOTHING = z.strictObject({})
const FORWARD = z.strictObject({ targets: z.optional(z.array(z.string())) })
const SEND = z.strictObject({
  from: z.int().check(z.positive()),
  event: z.string(),
  headers: z.optional(z.array(z.tuple([z.string(), z.string()]))),
  body: z.string(),
  target: z.optional(z.string()),
})
const TRIGGER = z.strictObject({
  source: z.string(),
  example: z.optional(z.string()),
  event: z.optional(z.string()),
  body: z.string(),
  target: z.optional(z.string()),
})
const ROUTE = z.strictObject({
  name: z.optional(z.string()),
  match: z.optional(z.string()),
  where: z.optional(z.string()),
  forward: z.string(),
})
const REMOVED_ROUTE = z.strictObject({ target: z.string() })
const SOURCE = z.strictObject({
  name: z.optional(z.string()),
  scheme: z.string(),
  secret: z.string().check(z.maxLength(MAX_SECRET)),
})
const HOOK = z.strictObject({
  repo: z.string(),
  user: z.string(),
  url: z.optional(z.string()),
  events: z.optional(z.string()),
})

function addChanges(app: Router, parts: InspectorParts): void {
  const maxSend = (parts.maxBody + MAX_HEADERS) * ESCAPED + MAX_REQUEST
  app
    .post('/inspect/api/deliveries/:n/forward', async (c) => {
      const request = await readJson(c, FORWARD, MAX_REQUEST)
      return c.json(await forwardAgain(parts, readNumber(c, 'n'), request))
    })
    .post('/inspect/api/deliveries/:n/skip', async (c) => {
      await readJson(c, NOTHING, MAX_REQUEST)
      return c.json(await skipWaiting(parts, readNumber(c, 'n')))
    })
    .post('/inspect/api/send', async (c) => c.json(await sendEdited(parts, await readJson(c, SEND, maxSend))))
    .post('/inspect/api/trigger', async (c) =>
      c.json(await sendTriggered(parts, await readJson(c, TRIGGER, maxSend))),
    )
    .post('/inspect/api/routes', async (c) =>
      c.json(await addRoute(parts, await readJson(c, ROUTE, MAX_REQUEST))),
    )
    .post('/inspect/api/routes/remove', async (c) =>
      c.json(await removeRoute(parts, (await readJson(c, REMOVED_ROUTE, MAX_REQUEST)).target)),
    )
    .post('/inspect/api/sources', async (c) =>
      c.json(await addSource(parts, await readJson(c, SOURCE, MAX_REQUEST))),
    )
    .post('/inspect/api/hooks', async (c) =>
      c.json(await addHook(parts, await readJson(c, HOOK, MAX_REQUEST))),
    )
}

/**
 * Refuses requests from pages of other sites, even with the cookie: another port of this machine counts as the same
 * site. Every request of a browser that can change something has an Origin header.
 * @throws RelayError `forbidden`
 */
const refuseOtherSites: MiddlewareHandler<HttpEnv> = (c, next) => {
  const [origin, site] = [c.req.header('origin'), c.req.header('sec-fetch-site')]
  const isOwn = origin === undefined ? isRead(c) : parseUrl(origin)?.host === addressOf(c).host
  if (!isOwn || !OWN_SITES.has(site)) throw new RelayError('forbidden', 'This request came from another page')
  return next()
}

/** Values of Sec-Fetch-Site for requests of this page or made by the user. Undefined for other programs. */
const OWN_SITES: ReadonlySet<string | undefined> = new Set(['same-origin', 'none', undefined])

/**
 * Lets only browsers read that opened the inspector with a code. Changes need the key, too, which only the page's own
 * scripts have.
 * @throws RelayError `unauthenticated` without the cookie, `forbidden` without the key
 */
function requireSession(sessions: Sessions, inspect: string): MiddlewareHandler<HttpEnv> {
  return async (c, next) => {
    const cookie = cookieOf(c)
    if (!(await sessions.mayRead(cookie))) {
      const closed = new RelayError('unauthenticated', `Not open in this browser: run ${inspect}`)
      // The page itself asks before it has a session, so a read is no line of the log.
      if (isRead(c)) return errorResponse(closed, silentLog)
      throw closed
    }
    if (!isRead(c) && !(await sessions.mayChange(cookie, c.req.header('x-relay-key'))))
      throw new RelayError('forbidden', `This tab may only read: run ${inspect} to change something`)
    return next()
  }
}

function isRead(c: Context<HttpEnv>): boolean {
  return c.req.method === 'GET' || c.req.method === 'HEAD'
}

/** True if a browser navigates to an address, and gets a page for people. Other programs get JSON. */
function isNavigation(c: Context<HttpEnv>): boolean {
  const isHtml = c.req.header('accept')?.includes('text/html') === true
  return isRead(c) && isHtml && !c.req.path.startsWith('/inspect/api/')
}

function addressOf(c: Context<HttpEnv>): URL {
  return new URL(c.req.url)
}

/**
 * Returns the name of the session's cookie. Cookies ignore ports, so the name says which relay of this machine it is
 * for.
 */
function cookieName(c: Context<HttpEnv>): string {
  return `relay_inspect_${addressOf(c).port || '80'}`
}

function cookieOf(c: Context<HttpEnv>): string | undefined {
  return getCookie(c, cookieName(c))
}

function sendFile(c: Context<HttpEnv>, { type, body, encoding, etag }: StaticFile): Response {
  const headers = { 'Cache-Control': 'no-cache', ETag: etag }
  if (c.req.header('if-none-match') === etag) return c.body(null, 304, headers)
  const content = { 'Content-Type': type, ...(encoding && { 'Content-Encoding': encoding }) }
  return c.body(body, 200, { ...headers, ...content })
}

/** Parses a JSON body. @throws RelayError `bad_request` for any other form, `too_large` */
async function readJson<Schema extends z.ZodMiniType>(
  c: Context<HttpEnv>,
  schema: Schema,
  limit: number,
): Promise<z.infer<Schema>> {
  const body = await readBody(c, limit)
  try {
    return schema.parse(parseJson(body))
  } catch (cause) {
    throw new RelayError('bad_request', 'Invalid request', { cause })
  }
}

function download(name: string, type: string): Record<string, string> {
  return { 'Content-Type': type, 'Content-Disposition': `attachment; filename="${name}"` }
}

/** Parses a number in a path. @throws RelayError `not_found` for anything else */
function readNumber(c: Context<HttpEnv>, name: string): number {
  const text = c.req.param(name) ?? ''
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new RelayError('not_found', 'Not found')
}
