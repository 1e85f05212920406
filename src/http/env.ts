import type { HttpBindings } from '@hono/node-server'

/**
 * What a handler finds in `c.env`: Node's own request and response. An application called in-process, with
 * `app.request`, is given none, so code that uses them must do without.
 */
export type HttpEnv = { Bindings: HttpBindings }
