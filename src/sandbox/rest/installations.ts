import { type Context, Hono, type MiddlewareHandler } from 'hono'
import type { Clock } from '../../base/time.js'
import { isObject } from '../../json/parse.js'
import type { App, Apps } from '../apps/apps.js'
import { found, GitHubError } from '../github-error.js'
import type { Repo } from '../model.js'
import { type Permissions, permits } from '../oauth/permissions.js'
import type { AccessTokens } from '../oauth/tokens.js'
import { installationResource, installationTokenResource } from '../resources/app.js'
import type { View } from '../resources/view.js'
import { OWNER } from '../seed.js'
import type { AppEnv } from './env.js'
import { type JsonObject, readObject } from './input.js'
import { pageOf } from './paging.js'

interface InstallationParts {
  readonly view: View
  readonly apps: Apps
  readonly tokens: AccessTokens
  readonly clock: Clock
  /** Middleware that requires the token of an App. */
  readonly asApp: MiddlewareHandler<AppEnv>
}

/** Routes for the installations of an App (https://docs.github.com/rest/apps/apps). */
export function installationRoutes({ view, apps, tokens, asApp }: InstallationParts): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get('/app/installations', asApp, (c) => {
      const installed = c.get('app').installation ? [c.get('app')] : []
      return c.json(pageOf(c, installed).map((app) => installationResource(view, app)))
    })
    .get('/app/installations/:installation{\\d+}', asApp, (c) =>
      c.json(installationResource(view, findInstalled(c))),
    )
    .get('/repos/:owner/:repo/installation', asApp, (c) => {
      const { owner, repo } = c.req.param()
      found(view.state.repo(owner, repo))
      return c.json(installationResource(view, found(c.get('app').installation && c.get('app'))))
    })
    .post('/app/installations/:installation{\\d+}/access_tokens', asApp, async (c) => {
      const app = findInstalled(c)
      const body = await readObject(c)
      const repos = readRepos(body, view.state.repos)
      const permissions = readPermissions(body, app.manifest.permissions)
      const { login } = view.state.account(`${app.slug}[bot]`, 'Bot')
      const isInstalled = (): boolean => apps.find(app.clientId)?.installation !== undefined
      const grant = tokens.issueInstallation(app.clientId, login, {
        permissions: () => (isInstalled() ? permissions : {}),
        repos: repos && new Set(repos.map(({ fullName }) => fullName)),
      })
      return c.json(installationTokenResource(view, grant, permissions, repos), 201)
    })
}

function findInstalled(c: Context<AppEnv>): App {
  const app = c.get('app')
  return found(app.installation?.id === Number(c.req.param('installation')) ? app : undefined)
}

/** Repositories that a token is limited to; undefined for all. @throws GitHubError 422 for one that is not installed */
function readRepos(body: JsonObject, all: readonly Repo[]): readonly Repo[] | undefined {
  const { repositories: names, repository_ids: ids } = body
  if (names === undefined && ids === undefined) return undefined
  const wanted: unknown[] = [names ?? [], ids ?? []].flat()
  return wanted.map((one) => {
    const repo = all.find(({ owner, name, id }) => owner === OWNER && (name === one || id === one))
    if (repo) return repo
    throw new GitHubError(
      422,
      'There is at least one repository that does not exist or is not accessible to the parent installation.',
    )
  })
}

/** Permissions that a token is limited to; all of the App's by default. @throws GitHubError 422 for others */
function readPermissions({ permissions: wanted }: JsonObject, granted: Permissions): Permissions {
  if (wanted === undefined) return granted
  const isGranted = (entry: [string, unknown]): entry is [string, string] => {
    const [name, access] = entry
    return (access === 'read' || access === 'write') && permits(granted, name, access)
  }
  const entries = Object.entries(isObject(wanted) ? wanted : {})
  if (isObject(wanted) && entries.every(isGranted)) return Object.fromEntries(entries)
  throw new GitHubError(422, 'The permissions requested are not granted to this installation.')
}
