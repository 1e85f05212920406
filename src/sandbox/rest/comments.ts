import { Hono } from 'hono'
import { found, GitHubError } from '../github-error.js'
import type { Issue } from '../model.js'
import { injectFault } from '../inject-fault.js'
import { commentPayload } from '../payloads.js'
import { commentResource } from '../resources/issue.js'
import { responseSent, type RestEnv, type RestParts } from './env.js'
import { mayWrite } from './guard.js'
import { findIssue, findRepo, type JsonObject, readObject, readText } from './input.js'

const MAX_COMMENT_LENGTH = 65_536
/** GitHub's page sizes. */
const PAGE_SIZE = { default: 30, max: 100 }

/** Routes for comments on issues and pull requests (https://docs.github.com/rest/issues/comments). */
export function commentRoutes({ view, faults, webhooks }: RestParts): Hono<RestEnv> {
  const { state } = view
  return new Hono<RestEnv>()
    .post(
      '/repos/:owner/:repo/issues/:number{\\d+}/comments',
      mayWrite,
      injectFault(faults, 'comment'),
      async (c) => {
        const issue = findIssue(c, state)
        if (issue.locked) throw new GitHubError(403, 'Unable to create comment because issue is locked.')
        const text = readCommentText(await readObject(c))
        const comment = state.addComment(issue, c.get('grant').login, text)
        const commented = found(state.issue(issue.repo, issue.number))
        webhooks.send('issue_comment', () => commentPayload(view, commented, comment), responseSent(c))
        const resource = commentResource(view, commented, comment)
        return c.json(resource, 201, { Location: resource.url })
      },
    )
    .get('/repos/:owner/:repo/issues/:number{\\d+}/comments', (c) => {
      const issue = findIssue(c, state)
      const size = Math.min(Number(c.req.query('per_page')) || PAGE_SIZE.default, PAGE_SIZE.max)
      const start = ((Number(c.req.query('page')) || 1) - 1) * size
      const page = state.commentsOn(issue).slice(start, start + size)
      return c.json(page.map((comment) => commentResource(view, issue, comment)))
    })
    .get('/repos/:owner/:repo/issues/comments/:id{\\d+}', (c) => {
      const { fullName } = findRepo(c, state)
      const comment = found(state.comment(fullName, Number(c.req.param('id'))))
      return c.json(commentResource(view, issueOf(comment), comment))
    })

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
