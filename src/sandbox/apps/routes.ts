import { type Context, Hono } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import { found, GitHubError } from '../github-error.js'
import { readForm } from '../oauth/form.js'
import { appRefusalPage, installedPage, installPage, newAppPage } from '../pages/app.js'
import { refusalPage } from '../pages/consent.js'
import { OWNER } from '../seed.js'
import type { App, Apps } from './apps.js'
import { readManifest } from './manifest.js'

/** Names that GitHub gives to accounts: up to 39 letters, digits and single hyphens. */
const ACCOUNT_NAME = /^(?=.{1,39}$)[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$/

/** Pages of the manifest flow and of installing an App. `onInstalled` is called once for each App. */
export function appPages(apps: Apps, onInstalled: (app: App) => void): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/settings/apps/new', () => appRefusalPage('A program sends a manifest to this page.'))
    .post('/settings/apps/new', (c) => ask(c, OWNER))
    .post('/organizations/:organization/settings/apps/new', (c) => ask(c, c.req.param('organization')))
    .post('/settings/apps', async (c) => {
      const form = await readForm(c)
      const registration = apps.pages.take(form.get('authenticity_token') ?? '')
      if (!registration) return refusalPage(422, 'This page was used before, or is older than an hour.')
      const manifest = { ...registration.manifest, name: form.get('name') ?? '' }
      const refusal = apps.refusal(manifest.name)
      if (refusal !== undefined) return newAppPage(registration, apps.pages.put(registration), refusal)
      const location = new URL(manifest.redirectUrl)
      location.searchParams.set('code', apps.issueCode({ ...registration, manifest }))
      if (registration.state !== undefined) location.searchParams.set('state', registration.state)
      return c.redirect(location.href)
    })
    .get('/apps/:slug', (c) => c.redirect(`/apps/${c.req.param('slug')}/installations/new`))
    .get('/apps/:slug/installations/new', (c) => {
      const app = found(apps.bySlug(c.req.param('slug')))
      return app.installation ? installedPage(app) : installPage(app, apps.installPages.put(app.id))
    })
    .post('/apps/:slug/installations', async (c) => {
      const app = found(apps.bySlug(c.req.param('slug')))
      if (apps.installPages.take((await readForm(c)).get('authenticity_token') ?? '') !== app.id)
        return refusalPage(422, 'This page was used before, or is older than an hour.')
      const installed = apps.install(app)
      if (!app.installation) onInstalled(installed)
      return installedPage(installed)
    })

  /** Asks the user to register the App of a manifest. Every organization is the user's. */
  async function ask(c: Context<HttpEnv>, owner: string): Promise<Response> {
    if (!ACCOUNT_NAME.test(owner)) throw new GitHubError(404, 'Not Found')
    const manifest = readManifest((await readForm(c)).get('manifest') ?? '')
    if (typeof manifest === 'string') return appRefusalPage(manifest)
    const registration = { manifest, owner, state: c.req.query('state') }
    return newAppPage(registration, apps.pages.put(registration))
  }
}
