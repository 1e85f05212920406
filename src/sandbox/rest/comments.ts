import { Hono } from 'hono'
import { found, GitHubError } from '../github-error.js'
import type { Issue } from '../model.js'
import { injectFault } from '../inject-fault.js'
import { commentEditedPayload, commentPayload } from '../payloads.js'
import { commentResource } from '../resources/issue.js'
import { responseSent, type RestEnv, type RestParts } from './env.js'
import { mayWrite } from './guard.js'
import { findIssue, findRepo, type JsonObject, readObject, readText } from './input.js'
import { pageOf } from './paging.js'

const MAX_COMMENT_LENGTH = 65_536

/** Routes for comments on issues and pull requests (https://docs.github.com/rest/issues/comments). */
export function commentRoutes({ view, faults, webhooks }: RestParts): Hono<RestEnv> {
  const { state } = view
  return new Hono<RestEnv>()
    .post(
      '/repos/:owner/:repo/issues/:number{\\d+}/comments',
      mayWrite('issues'),
      injectFault(faults, 'comment'),
      async (c) => {
        const issue = findIssue(c, state)
        if (issue.locked) throw new GitHubError(403, 'Unable to create comment because issue is locked.')
        const text = readCommentText(await readObject(c))
        const comment = state.addComment(issue, c.get('grant').login, text)
        const commented = found(state.issue(issue.repo, issue.number))
        const payload = () => commentPayload(view, commented, comment)
        webhooks.publish('issue_comment', issue.repo, payload, responseSent(c))
        const resource = commentResource(view, commented, comment)
        return c.json(resource, 201, { Location: resource.url })
      },
    )
    .get('/repos/:owner/:repo/issues/:number{\\d+}/comments', (c) => {
      const issue = findIssue(c, state)
      const page = pageOf(c, state.commentsOn(issue))
      return c.json(page.map((comment) => commentResource(view, issue, comment)))
    })
    .get('/repos/:owner/:repo/issues/comments/:id{\\d+}', (c) => {
      const { fullName } = findRepo(c, state)
      const comment = found(state.comment(fullName, Number(c.req.param('id'))))
      return c.json(commentResource(view, issueOf(comment), comment))
    })
    .patch(
      '/repos/:owner/:repo/issues/comments/:id{\\d+}',
      mayWrite('issues'),
      injectFault(faults, 'comment'),
      async (c) => {
        const { fullName } = findRepo(c, state)
        const known = found(state.comment(fullName, Number(c.req.param('id'))))
        const issue = issueOf(known)
        const comment = state.editComment(known, readCommentText(await readObject(c)))
        const payload = () => commentEditedPayload(view, issue, comment, known.body)
        webhooks.publish('issue_comment', fullName, payload, responseSent(c))
        return c.json(commentResource(view, issue, comment))
      },
    )

  function issueOf({ repo, issueNumber }: { repo: string; issueNumber: number }): Issue {
    return found(state.issue(repo, issueNumber))
  }
}

function readCommentText(body: JsonObject): string {
  const text = readText(body, 'body')
  if (text === undefined) throw new GitHubError(422, 'Invalid request.\n\n"body" wasn\'t supplied.')
  const invalid = (message: string): GitHubError =>
    new GitHubError(422, 'Validation Failed', [
      { resource: 'IssueComment', code: 'unprocessable', field: 'data', message },
    ])
  if (text.trim() === '') throw invalid("Body can't be blank")
  if (text.length > MAX_COMMENT_LENGTH)
    throw invalid(`Body is too long (maximum is ${MAX_COMMENT_LENGTH} characters)`)
  return text
}
