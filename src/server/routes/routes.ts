import { Hono } from 'hono'
import type { LiveRoutes } from '../../dispatch/live-routes.js'
import type { HttpEnv } from '../../http/body.js'
import { ROUTES_TEXT } from '../../instance/running.js'
import { requireProof } from '../proof.js'

export interface RoutesParts {
  /** HMAC with the instance's key; undefined when this process is not the profile's instance. */
  readonly prove: (text: string) => string | undefined
  readonly routes: () => Promise<LiveRoutes>
}

/** GET /instance/routes: where deliveries go now, for the profile's other commands. 404, as for an unknown path, without the proof. */
export function routesRoutes({ prove, routes }: RoutesParts) {
  return new Hono<HttpEnv>().get('/instance/routes', async (c) => {
    requireProof(c, prove(ROUTES_TEXT))
    return c.json<LiveRoutes>(await routes(), 200)
  })
}
