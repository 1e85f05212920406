import { Hono } from 'hono'
import type { Clock } from '../../base/time.js'
import { misbehave } from '../misbehave.js'
import type { AccessTokens } from '../oauth/tokens.js'
import { issueResource } from '../resources/issue.js'
import { repositoryResource } from '../resources/repository.js'
import { userResource } from '../resources/user.js'
import { commentRoutes } from './comments.js'
import type { RestEnv, RestParts } from './env.js'
import { guard } from './guard.js'
import { findIssue, findRepo } from './input.js'
import { pullRoutes } from './pulls.js'
import { reactionRoutes } from './reactions.js'

/** GitHub's REST API, as far as the three actions go; everything needs a bearer token. */
export function restRoutes(parts: RestParts & { tokens: AccessTokens; clock: Clock }): Hono<RestEnv> {
  const { view, faults, tokens, clock } = parts
  return new Hono<RestEnv>()
    .use(guard(tokens, clock))
    .get('/user', misbehave(faults, 'user'), (c) => c.json(userResource(view, c.get('grant').login)))
    .get('/repos/:owner/:repo', (c) => c.json(repositoryResource(view, findRepo(c, view.state).fullName)))
    .get('/repos/:owner/:repo/issues/:number{\\d+}', (c) =>
      c.json(issueResource(view, findIssue(c, view.state))),
    )
    .route('/', commentRoutes(parts))
    .route('/', pullRoutes(parts))
    .route('/', reactionRoutes(parts))
}
