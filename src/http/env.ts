import type { HttpBindings } from '@hono/node-server'

/**
 * Type of `c.env`: Node's own request and response. Both are missing when the application is called in-process, with
 * `app.request`, so a handler must work without them.
 */
export type HttpEnv = { Bindings: HttpBindings }
