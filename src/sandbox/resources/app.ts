import { nodeId } from './node-id.js'
import type { App } from '../apps/apps.js'
import type { Hook } from '../hooks/hook.js'
import type { Repo } from '../model.js'
import type { Permissions } from '../oauth/permissions.js'
import type { Grant } from '../oauth/tokens.js'
import { OWNER } from '../seed.js'
import { timestamp } from '../state.js'
import { configResource } from './hook.js'
import { repositoryResource } from './repository.js'
import { userResource } from './user.js'
import type { View } from './view.js'

/** App (https://docs.github.com/rest/apps/apps#get-the-authenticated-app). */
export function appResource(view: View, app: App) {
  const { id, slug, owner, manifest, clientId, createdAt } = app
  return {
    id,
    slug,
    client_id: clientId,
    node_id: nodeId('Integration', id),
    owner: userResource(view, owner),
    name: manifest.name,
    description: manifest.description,
    external_url: manifest.url,
    html_url: `${view.web}/apps/${slug}`,
    created_at: createdAt,
    updated_at: createdAt,
    permissions: manifest.permissions,
    events: manifest.events,
    installations_count: app.installation ? 1 : 0,
  }
}

/** Installation of an App (https://docs.github.com/rest/apps/apps#list-installations-for-the-authenticated-app). */
export function installationResource(view: View, { id, slug, manifest, installation }: App) {
  if (!installation) throw new Error(`the App ${id} is not installed`)
  const account = userResource(view, OWNER)
  return {
    id: installation.id,
    account,
    repository_selection: 'all',
    access_tokens_url: `${view.api}/app/installations/${installation.id}/access_tokens`,
    repositories_url: `${view.api}/installation/repositories`,
    html_url: `${view.web}/settings/installations/${installation.id}`,
    app_id: id,
    app_slug: slug,
    target_id: account.id,
    target_type: 'User',
    permissions: manifest.permissions,
    events: manifest.events,
    created_at: installation.createdAt,
    updated_at: installation.createdAt,
    single_file_name: null,
    has_multiple_single_files: false,
    single_file_paths: [],
    suspended_by: null,
    suspended_at: null,
  }
}

/**
 * Token of an installation, limited to `repos` if given
 * (https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app).
 */
export function installationTokenResource(
  view: View,
  { accessToken, expiresAt }: Grant,
  permissions: Permissions,
  repos: readonly Repo[] | undefined,
) {
  return {
    token: accessToken,
    expires_at: timestamp(expiresAt),
    permissions,
    repository_selection: repos ? 'selected' : 'all',
    ...(repos && { repositories: repos.map(({ fullName }) => repositoryResource(view, fullName)) }),
  }
}

/** Webhook of an App, as `ping` shows it (https://docs.github.com/webhooks/webhook-events-and-payloads#ping). */
export function appHookResource(view: View, app: App, hook: Hook) {
  return {
    type: 'App',
    id: hook.id,
    name: 'web',
    active: app.manifest.hook?.active ?? false,
    events: app.manifest.events,
    config: configResource(hook.config),
    updated_at: hook.updatedAt,
    created_at: hook.createdAt,
    app_id: app.id,
    deliveries_url: `${view.api}/app/hook/deliveries`,
  }
}
