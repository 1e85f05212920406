import type { IncomingMessage, ServerResponse } from 'node:http'
import { Hono, type MiddlewareHandler } from 'hono'
import type { ZodType } from 'zod'
import { comment, commentRequest } from '../../actions/comment.js'
import { merge, mergeRequest } from '../../actions/merge.js'
import { react, reactRequest } from '../../actions/react.js'
import { parseRequest } from '../../actions/request.js'
import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { readBody, readIncoming } from '../../http/body.js'
import { discardBody } from '../../http/discard.js'
import type { DirectHandler } from '../../http/edge.js'
import type { HttpEnv } from '../../http/env.js'
import { isPlain } from '../../http/plain.js'
import { sendError, sendJson } from '../../http/respond.js'
import type { Provider } from '../../providers/provider.js'
import type { Tokens } from '../../tokens/tokens.js'

export interface ActionParts {
  readonly provider: Provider
  readonly tokens: Tokens
}

export interface ActionListener extends ActionParts {
  readonly hostAllowed: (host: string | undefined) => boolean
  readonly log: Log
}

/** 1 MiB: many times the longest comment a code host takes. */
const MAX_BODY = 1_048_576
/** Four times the longest token seen (a JWT of a self-hosted code host). */
const LONGEST_TOKEN = 8_192

/**
 * POST /api/comment, /api/merge and /api/react: 200, or in this order 401 for the bearer token (RFC 6750), 415, 413,
 * 400 for the body, then what the provider says. A client that goes away cancels nothing: the write may have
 * reached the provider already.
 */
export function actionRoutes({ provider, tokens }: ActionParts) {
  const accept = <T>(schema: ZodType<T>): Accept<T> =>
    async function accept(c, next) {
      const token = await authenticate(c.req.header('authorization'), provider, tokens)
      requireJson(c.req.header('content-type'))
      const input = parseRequest(schema, await readBody(c, MAX_BODY))
      c.req.addValidatedData('json', { token, input })
      await next()
    }
  return new Hono<HttpEnv>()
    .post('/api/comment', accept(commentRequest), async (c) => {
      const { token, input } = c.req.valid('json')
      return c.json(await comment(provider, token, input), 200)
    })
    .post('/api/merge', accept(mergeRequest), async (c) => {
      const { token, input } = c.req.valid('json')
      return c.json(await merge(provider, token, input), 200)
    })
    .post('/api/react', accept(reactRequest), async (c) => {
      const { token, input } = c.req.valid('json')
      return c.json(await react(provider, token, input), 200)
    })
}

/**
 * The same for what comes over the network as nearly all does ({@link isPlain}), on Node's own request and response: to make
 * a Request and a Response of them took a sixth of an action's time.
 */
export function actionListener({ provider, tokens, hostAllowed, log }: ActionListener): DirectHandler {
  const plain = { hostAllowed, limit: MAX_BODY, headers: ['authorization', 'content-type'] }
  const actions = new Map<string | undefined, Act>([
    ['/api/comment', (token, body) => comment(provider, token, parseRequest(commentRequest, body))],
    ['/api/merge', (token, body) => merge(provider, token, parseRequest(mergeRequest, body))],
    ['/api/react', (token, body) => react(provider, token, parseRequest(reactRequest, body))],
  ])
  const answer = async (
    act: Act,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    id: string,
  ): Promise<void> => {
    const { headers, url } = incoming
    try {
      const token = await authenticate(headers.authorization, provider, tokens)
      requireJson(headers['content-type'])
      const body = await readIncoming(incoming, MAX_BODY)
      if (!body) throw new Error('unreachable: its length is within the limit')
      sendJson(outgoing, id, await act(token, body))
    } catch (error) {
      await discardBody({ incoming, outgoing })
      sendError(outgoing, id, error, log, `POST ${url}`)
    }
  }
  return (incoming, outgoing, id) => {
    const act = incoming.method === 'POST' ? actions.get(incoming.url) : undefined
    if (!act || !isPlain(incoming, plain)) return false
    void answer(act, incoming, outgoing, id)
    return true
  }
}

/** Does what the body of a request asks for, as the user whose token it is, and gives the answer. */
type Act = (token: string, body: Uint8Array) => Promise<object>

/** Takes JSON like `T`, and hands it on with the token it came with. */
type Accept<T> = MiddlewareHandler<
  HttpEnv,
  string,
  { in: { json: T }; out: { json: { token: string; input: T } } }
>

/** The access token, if it came from this provider's origin: it is about to be sent there. */
async function authenticate(header = '', provider: Provider, tokens: Tokens): Promise<string> {
  const [, given] = /^bearer +(.+)$/i.exec(header) ?? []
  if (given === undefined) throw new RelayError('unauthenticated', 'Missing bearer token')
  const wellFormed = given.length <= LONGEST_TOKEN && /^[\x21-\x7e]+$/.test(given)
  const holder = wellFormed ? await tokens.findByBearer(given) : undefined
  if (holder?.origin !== provider.origin) throw new RelayError('invalid_token', 'Invalid or expired token')
  return holder.accessToken
}

function requireJson(contentType = ''): void {
  if (!/^application\/json *(?:;|$)/i.test(contentType))
    throw new RelayError('unsupported_media_type', 'Content-Type must be application/json')
}
