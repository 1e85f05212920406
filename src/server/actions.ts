import { type Context, Hono } from 'hono'
import type { ZodMiniType } from 'zod/mini'
import { actionRequests, parseRequest, issueRefOf } from '../codehost/requests.js'
import { RelayError } from '../base/errors.js'
import { readBody, type HttpEnv } from '../http/body.js'
import type { Account, CodeHost } from '../codehost/host.js'
import type { Tokens } from '../tokens/tokens.js'
import type { AppParts } from './parts.js'

/** Largest body of an action: 1 MiB, many times the longest comment that a code host accepts. */
const MAX_BODY = 1_048_576
/** Longest bearer token: four times the longest one seen (a JWT of a self-hosted code host). */
const MAX_TOKEN_LENGTH = 8_192

/**
 * Routes of the actions. They fail with 401 (RFC 6750), 415, 413, 400, then with the errors of the code host. A client
 * that disconnects cancels nothing, since the action may have been carried out.
 */
export function actionRoutes({ host, tokens }: AppParts) {
  /**
   * Makes the handler of one action. `run` performs it at the code host as the owner of the token, and its result is
   * the response.
   */
  const handler =
    <In>(schema: ZodMiniType<In>, run: (account: Account, input: In) => Promise<object>) =>
    async (c: Context<HttpEnv>) => {
      const token = await authenticate(c.req.header('authorization'), host, tokens)
      if (!/^application\/json *(?:;|$)/i.test(c.req.header('content-type') ?? ''))
        throw new RelayError('unsupported_media_type', 'Content-Type must be application/json')
      const input = parseRequest(schema, await readBody(c, MAX_BODY))
      return c.json({ ok: true, ...(await run(host.as(token), input)) })
    }
  const requests = actionRequests(host)
  return new Hono<HttpEnv>()
    .post(
      '/api/comment',
      handler(requests.comment, (account, { body, quickActions, ...subject }) =>
        account.comment(issueRefOf(subject), body, { quickActions }),
      ),
    )
    .post(
      '/api/merge',
      handler(requests.merge, (account, { owner, repo, pullNumber: number, ...options }) =>
        account.merge({ owner, repo, number, kind: 'pull' }, options),
      ),
    )
    .post(
      '/api/react',
      handler(requests.react, (account, { content, commentId, reviewCommentId: reviewId, ...subject }) => {
        const review = reviewId === undefined ? undefined : ({ kind: 'review', id: reviewId } as const)
        const comment = commentId === undefined ? review : ({ kind: 'comment', id: commentId } as const)
        return account.react(issueRefOf(subject), content, comment)
      }),
    )
}

/**
 * Returns the access token of the request's user. It must be from this code host's origin, since it is sent there.
 * @throws RelayError `unauthenticated` without a bearer token; `invalid_token` for an unknown or expired one
 */
async function authenticate(header = '', host: CodeHost, tokens: Tokens): Promise<string> {
  const [, given] = /^bearer +(.+)$/i.exec(header) ?? []
  if (given === undefined) throw new RelayError('unauthenticated', 'Missing bearer token')
  const wellFormed = given.length <= MAX_TOKEN_LENGTH && /^[\x21-\x7e]+$/.test(given)
  const holder = wellFormed ? await tokens.findByBearer(given) : undefined
  if (holder?.origin !== host.origin) throw new RelayError('invalid_token', 'Invalid or expired token')
  return holder.accessToken
}
