import { type Context, Hono, type MiddlewareHandler } from 'hono'
import type { Clock } from '../../base/time.js'
import type { Apps } from '../apps/apps.js'
import { authenticateApp } from '../apps/jwt.js'
import { found } from '../github-error.js'
import type { Hook } from '../hooks/hook.js'
import { injectFault } from '../inject-fault.js'
import type { AccessTokens } from '../oauth/tokens.js'
import { appPing } from '../payloads.js'
import { appResource } from '../resources/app.js'
import { configResource } from '../resources/hook.js'
import { deliveryRoutes } from './deliveries.js'
import { type AppEnv, responseSent, type RestParts } from './env.js'
import { bearerOf, setCommonHeaders } from './guard.js'
import { readConfig } from './hook-input.js'
import { readObject } from './input.js'
import { installationRoutes } from './installations.js'

/** The last step of the manifest flow, and the routes for the App itself (https://docs.github.com/rest/apps). */
export function appRoutes(
  parts: RestParts & { apps: Apps; tokens: AccessTokens; clock: Clock },
): Hono<AppEnv> {
  const { view, hooks, webhooks, faults, apps, clock } = parts
  const asApp = appGuard(apps, clock)
  const fault = injectFault(faults, 'hook')
  return new Hono<AppEnv>()
    .post('/app-manifests/:code/conversions', async (c) => {
      setCommonHeaders(c, clock)
      const { app, secrets } = found(await apps.convert(c.req.param('code')))
      view.state.account(app.owner, 'Organization')
      const hook = apps.hookOf(app)
      if (hook && app.manifest.hook?.active)
        webhooks.send(hook, 'ping', appPing(view, app, hook), responseSent(c))
      const { clientSecret, webhookSecret, pem } = secrets
      return c.json(
        { ...appResource(view, app), client_secret: clientSecret, webhook_secret: webhookSecret, pem },
        201,
      )
    })
    .route('/', installationRoutes({ ...parts, asApp }))
    .use('/app/*', asApp)
    .get('/app', (c) => c.json(appResource(view, c.get('app'))))
    .get('/app/hook/config', fault, (c) => c.json(configResource(findHook(c).config)))
    .patch('/app/hook/config', fault, async (c) => {
      const hook = findHook(c)
      const { active, events } = hook
      const config = readConfig(await readObject(c), hook.config)
      return c.json(configResource(hooks.change(hook, { active, events, config }).config))
    })
    .route('/app/hook/deliveries', deliveryRoutes(parts, findHook))

  function findHook(c: Context<AppEnv>): Hook {
    return found(apps.hookOf(c.get('app')))
  }
}

/** Middleware that sets the common headers and requires the token of an App. */
function appGuard(apps: Apps, clock: Clock): MiddlewareHandler<AppEnv> {
  return async function appGuard(c, next) {
    setCommonHeaders(c, clock)
    c.set('app', authenticateApp(apps, bearerOf(c), clock()))
    await next()
  }
}
