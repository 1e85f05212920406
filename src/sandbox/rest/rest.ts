import { Hono } from 'hono'
import type { Clock } from '../../base/time.js'
import type { Apps } from '../apps/apps.js'
import { GitHubError } from '../github-error.js'
import { injectFault } from '../inject-fault.js'
import type { AccessTokens } from '../oauth/tokens.js'
import { issueResource } from '../resources/issue.js'
import { repositoryResource } from '../resources/repository.js'
import { userResource } from '../resources/user.js'
import { appRoutes } from './app.js'
import { checkRoutes } from './checks.js'
import { commentRoutes } from './comments.js'
import { contentRoutes } from './contents.js'
import type { RestEnv, RestParts } from './env.js'
import { guard, SERVER_VERSION, setCommonHeaders } from './guard.js'
import { hookRoutes } from './hooks.js'
import { findIssue, findRepo } from './input.js'
import { pullRoutes } from './pulls.js'
import { reactionRoutes } from './reactions.js'

/**
 * The part of GitHub's REST API that the actions and hooks use. Everything except `/meta` and an App's own routes requires a user's token
 * (https://docs.github.com/enterprise-server/rest/meta/meta).
 */
export function restRoutes(
  parts: RestParts & { tokens: AccessTokens; apps: Apps; clock: Clock },
): Hono<RestEnv> {
  const { view, faults, tokens, clock } = parts
  return new Hono<RestEnv>()
    .get('/meta', (c) => {
      setCommonHeaders(c, clock)
      return c.json({ verifiable_password_authentication: false, installed_version: SERVER_VERSION })
    })
    .use('/app-manifests/*', injectFault(faults, 'convert'))
    .route('/', appRoutes(parts))
    .use(guard(tokens, clock))
    .get('/user', injectFault(faults, 'user'), (c) => {
      const user = userResource(view, c.get('grant').login)
      if (user.type === 'Bot') throw new GitHubError(403, 'Resource not accessible by integration')
      return c.json(user)
    })
    .get('/repos/:owner/:repo', (c) => c.json(repositoryResource(view, findRepo(c, view.state).fullName)))
    .get('/repos/:owner/:repo/issues/:number{\\d+}', (c) =>
      c.json(issueResource(view, findIssue(c, view.state))),
    )
    .route('/', commentRoutes(parts))
    .route('/', hookRoutes(parts))
    .route('/', checkRoutes(parts))
    .route('/', contentRoutes(parts))
    .route('/', pullRoutes(parts))
    .route('/', reactionRoutes(parts))
}
