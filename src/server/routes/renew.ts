import { Hono } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import { renewalText, revocationText } from '../../instance/running.js'
import type { Revocation } from '../../oauth/revoke.js'
import { parseUserId } from '../../tokens/tokens.js'
import { requireProof } from '../proof.js'

export interface RenewParts {
  /** HMAC with the instance's key; undefined when this process is not the profile's instance. */
  readonly prove: (text: string) => string | undefined
  /** Renews the user's token if it is about to expire. */
  readonly renew: (userId: string) => Promise<unknown>
  /** Revokes the user's token here and at the code host. */
  readonly revoke: (userId: string) => Promise<Revocation>
}

/**
 * What the profile's other commands ask of the instance, which has the OAuth client and its secret. Neither request nor answer has
 * a token. 404, as for an unknown path, without the proof.
 * POST /instance/renew/:userId: 200 when the token is still valid or was renewed | the errors of `renew`.
 * POST /instance/revoke/:userId: 200 with the result here and at the code host | the errors of `revoke`.
 */
export function renewRoutes({ prove, renew, revoke }: RenewParts) {
  return new Hono<HttpEnv>()
    .post('/instance/renew/:userId', async (c) => {
      const { userId } = c.req.param()
      requireProof(c, prove(renewalText(userId)))
      await renew(parseUserId(userId))
      return c.json({ ok: true }, 200)
    })
    .post('/instance/revoke/:userId', async (c) => {
      const { userId } = c.req.param()
      requireProof(c, prove(revocationText(userId)))
      const { removed, upstream } = await revoke(parseUserId(userId))
      const failed = typeof upstream === 'object' ? upstream.failed : undefined
      // The code host's failure is a result here, so that the answer distinguishes it from one of this service.
      const result = failed ? { kind: failed.kind, message: failed.message } : upstream
      return c.json({ removed, upstream: result }, 200)
    })
}
