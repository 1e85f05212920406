import { Hono, type Context } from 'hono'
import { REACTIONS, type Reaction } from '../../codehost/host.js'
import { found, GitHubError } from '../github-error.js'
import { injectFault } from '../inject-fault.js'
import type { Issue, Subject } from '../model.js'
import { reactionResource } from '../resources/reaction.js'
import type { RestEnv, RestParts } from './env.js'
import { mayWrite } from './guard.js'
import { findIssue, findRepo, type JsonObject, readObject } from './input.js'

/** Routes for reactions to issues, comments and review comments (https://docs.github.com/rest/reactions/reactions). */
export function reactionRoutes({ view, faults }: RestParts): Hono<RestEnv> {
  const { state } = view
  const fault = injectFault(faults, 'react')
  return new Hono<RestEnv>()
    .post('/repos/:owner/:repo/issues/:number{\\d+}/reactions', mayWrite('issues'), fault, (c) => {
      const issue = findIssue(c, state)
      return react(c, issue, { kind: 'issue', id: issue.id })
    })
    .post('/repos/:owner/:repo/issues/comments/:id{\\d+}/reactions', mayWrite('issues'), fault, (c) => {
      const { fullName } = findRepo(c, state)
      const { id, issueNumber } = found(state.comment(fullName, Number(c.req.param('id'))))
      return react(c, found(state.issue(fullName, issueNumber)), { kind: 'comment', id })
    })
    .post('/repos/:owner/:repo/pulls/comments/:id{\\d+}/reactions', mayWrite('issues'), fault, (c) => {
      const { fullName } = findRepo(c, state)
      const { id, issueNumber } = found(state.reviewComment(fullName, Number(c.req.param('id'))))
      return react(c, found(state.issue(fullName, issueNumber)), { kind: 'review_comment', id })
    })

  async function react(c: Context<RestEnv>, { locked }: Issue, subject: Subject): Promise<Response> {
    const content = readContent(await readObject(c))
    if (locked) throw new GitHubError(403, 'Unable to create reaction because issue is locked.')
    const { reaction, created } = state.addReaction(subject, c.get('grant').login, content)
    return c.json(reactionResource(view, reaction), created ? 201 : 200)
  }
}

function readContent(body: JsonObject): Reaction {
  const content = REACTIONS.find((reaction) => reaction === body['content'])
  if (content) return content
  throw new GitHubError(422, 'Validation Failed', [
    { resource: 'Reaction', code: 'invalid', field: 'content' },
  ])
}
