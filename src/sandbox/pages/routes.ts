import { Hono } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import { found } from '../github-error.js'
import { webPath } from '../resources/issue.js'
import type { View } from '../resources/view.js'
import { conversationPage } from './conversation.js'
import { overviewPage, repositoryPage } from './overview.js'

/** Web site that shows what programs did in the sandbox. Readable without sign-in, like a public repository. */
export function pageRoutes(view: View): Hono<HttpEnv> {
  const repo = (owner: string, name: string) => found(view.state.repo(owner, name))
  return new Hono<HttpEnv>()
    .get('/', () => overviewPage(view))
    .get('/:owner/:repo', (c) => repositoryPage(view, repo(c.req.param('owner'), c.req.param('repo'))))
    .get('/:owner/:repo/:kind{issues|pull}/:number{\\d+}', async (c) => {
      const { owner, repo: name, kind, number } = c.req.param()
      const { fullName, hasIssues } = repo(owner, name)
      const issue = found(hasIssues ? view.state.issue(fullName, Number(number)) : undefined)
      const kinds = issue.pull ? 'pull' : 'issues'
      return kind === kinds ? conversationPage(view, issue) : c.redirect(webPath(issue))
    })
}
