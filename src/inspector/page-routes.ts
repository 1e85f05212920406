import { Hono } from 'hono'
import { RelayError } from '../base/errors.js'
import type { Clock } from '../base/time.js'
import type { HttpEnv } from '../http/body.js'
import { BASE, parseAddress, type View } from './address.js'
import type { InspectorData } from './data.js'
import type { AssetPaths } from './document.js'
import { type Content, renderPage } from './pages.js'

/** The pages: every address of {@link parseAddress}, as HTML that can be read without a script. */
export function pageRoutes(data: InspectorData, assets: AssetPaths, clock: Clock) {
  return new Hono<HttpEnv>().get(`${BASE}/*`, async (c, next) => {
    const { pathname, search } = new URL(c.req.url)
    const view = pathname.startsWith(`${BASE}/api/`) ? undefined : parseAddress(pathname, search)
    if (!view) return next()
    try {
      return c.html(renderPage(await contentOf(view, data), assets, clock()))
    } catch (error) {
      if (!(error instanceof RelayError)) throw error
      return c.html(renderPage({ page: 'missing', message: error.message }, assets, clock()), error.status)
    }
  })
}

async function contentOf(view: View, data: InspectorData): Promise<Content> {
  if (view.page === 'state') return { page: view.page, state: await data.state() }
  if (view.page === 'refused') {
    const refused = await data.refused()
    return { page: view.page, refused, ...(view.id && { detail: await data.refusedEntry(view.id) }) }
  }
  const { query } = view
  if (view.page === 'delivery') return { page: view.page, query, detail: await data.delivery(view.n) }
  if (view.page === 'compare') {
    const [detail, other] = await Promise.all([data.delivery(view.n), data.delivery(view.other)])
    return { page: view.page, query, detail, other }
  }
  const [deliveries, timeline] = await Promise.all([data.list(query), data.timeline()])
  return { page: view.page, query, deliveries, timeline }
}
