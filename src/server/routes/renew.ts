import { Hono } from 'hono'
import type { HttpEnv } from '../../http/env.js'
import { renewalText } from '../../instance/record.js'
import { parseUserId } from '../../tokens/user-id.js'
import { requireProof } from '../proof.js'

export interface RenewParts {
  /** HMAC with the instance's key; undefined when this process is not the profile's instance. */
  readonly prove: (text: string) => string | undefined
  /** Renews the user's token if it is about to expire. */
  readonly renew: (userId: string) => Promise<unknown>
}

/**
 * POST /instance/renew/:userId: lets the profile's other commands renew a token without the client secret. 200 when the
 * token is still valid or was renewed, without any token in the answer | 404, as for an unknown path, without the proof | the
 * errors of `renew`.
 */
export function renewRoutes({ prove, renew }: RenewParts) {
  return new Hono<HttpEnv>().post('/instance/renew/:userId', async (c) => {
    const { userId } = c.req.param()
    requireProof(c, prove(renewalText(userId)))
    await renew(parseUserId(userId))
    return c.json({ ok: true }, 200)
  })
}
