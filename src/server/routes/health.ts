import { Hono } from 'hono'
import type { HttpEnv } from '../../http/body.js'

export interface HealthParts {
  /** Proof that this process is the profile's instance; undefined if it is not. */
  readonly prove: (challenge: string) => string | undefined
}

/** Random bytes in hex or base64, at least 96 bits of them. */
const CHALLENGE = /^[A-Za-z0-9+/=_-]{16,256}$/

/** GET /health: `{"status":"ok"}`. A request with `X-Relay-Challenge` also gets the proof, in `X-Relay-Instance`. */
export function healthRoutes({ prove }: HealthParts) {
  return new Hono<HttpEnv>().get('/health', (c) => {
    const challenge = c.req.header('x-relay-challenge')
    const proof = challenge !== undefined && CHALLENGE.test(challenge) ? prove(challenge) : undefined
    return c.json({ status: 'ok' }, 200, proof === undefined ? {} : { 'X-Relay-Instance': proof })
  })
}
