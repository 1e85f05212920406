import { requireForwardedHost, createRouter } from '../http/router.js'
import type { FetchHandler } from '../http/listen.js'
import { createAccess } from './access.js'
import { apiRoutes } from './api-routes.js'
import { ASSETS_PATH, openAssets } from './assets.js'
import { createData } from './data.js'
import { requireCookie, withSafeHeaders } from './guard.js'
import { openLive } from './live.js'
import { openRoutes } from './open-routes.js'
import { pageRoutes } from './page-routes.js'
import type { InspectorParts } from './parts.js'

export interface Inspector {
  readonly fetch: FetchHandler
  /** A one-time code, with which a browser opens the inspector. */
  issueCode(): string
  /** Whether the code still waits to be used. */
  isPending(code: string): boolean
}

/** The web inspector: everything below /inspect/. It is loaded, and made, when it is first asked for. */
export function createInspector(parts: InspectorParts): Inspector {
  const { clock, hostAllowed, log } = parts
  const access = createAccess(clock)
  const assets = openAssets()
  const data = createData(parts)
  const live = openLive(parts, () => data.state())
  const app = createRouter({ hostAllowed, log })
  app.use(withSafeHeaders)
  app.use(requireForwardedHost(hostAllowed))
  app.route(
    '/',
    openRoutes(access, assets, () => parts.journal.newest()),
  )
  app.get(`${ASSETS_PATH}:file`, async (c) => {
    const found = await assets.respond(c.req.param('file'), c.req.header('accept-encoding') ?? '')
    return found ?? c.notFound()
  })
  app.use('/inspect/*', requireCookie(access, assets))
  app.route('/', apiRoutes({ parts, data, live, access }))
  app.route('/', pageRoutes(data, assets, clock))
  return {
    fetch: app.fetch,
    issueCode: () => access.issueCode(),
    isPending: (code) => access.isPending(code),
  }
}
