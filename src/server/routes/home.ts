import { Hono } from 'hono'
import { html } from 'hono/html'
import type { HttpEnv } from '../../http/env.js'
import { htmlPage } from '../../http/html.js'

// Says both outcomes rather than the one that happened: the query is for the application, and reflecting it would let
// any link put words on this page.
const BODY = html` <h1>relay is running</h1>
  <p>If you came here from signing in, you can close this page and go back to your terminal.</p>
  <p>
    This page’s address says how it went: <code>auth=success</code> means you are signed in,
    <code>auth=error</code> that you are not, and its <code>reason</code> says why.
  </p>`

/** GET /: where a browser lands after signing in, unless an application of the user's own is named. */
export function homeRoutes() {
  return new Hono<HttpEnv>().get('/', () => htmlPage({ title: 'relay', body: BODY }))
}
