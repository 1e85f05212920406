import { Hono } from 'hono'
import { MERGE_METHODS, type MergeMethod } from '../../codehost/host.js'
import { found, GitHubError } from '../github-error.js'
import type { Issue, Pull } from '../model.js'
import { injectFault } from '../inject-fault.js'
import { mergePayload } from '../payloads.js'
import { pullResource } from '../resources/pull.js'
import { responseSent, type RestEnv, type RestParts } from './env.js'
import { mayWrite } from './guard.js'
import { findIssue, type JsonObject, readObject, readText } from './input.js'

/** Routes for pull requests and merges (https://docs.github.com/rest/pulls/pulls). */
export function pullRoutes({ view, faults, webhooks }: RestParts): Hono<RestEnv> {
  const { state } = view
  const fault = injectFault(faults, 'merge')
  return new Hono<RestEnv>()
    .get('/repos/:owner/:repo/pulls/:number{\\d+}', (c) => {
      const issue = findIssue(c, state)
      return c.json(pullResource(view, issue, found(issue.pull)))
    })
    .put('/repos/:owner/:repo/pulls/:number{\\d+}/merge', mayWrite('contents'), fault, async (c) => {
      const body = await readObject(c)
      const issue = findIssue(c, state)
      refuseMerge(issue, found(issue.pull), readText(body, 'sha'))
      const { login } = c.get('grant')
      const { sha } = state.merge(issue, login, readMerge(body))
      const merged = found(state.issue(issue.repo, issue.number))
      const payload = () => mergePayload(view, merged, found(merged.pull), login)
      webhooks.publish('pull_request', issue.repo, payload, responseSent(c))
      return c.json({ sha, merged: true, message: 'Pull Request successfully merged' })
    })
}

function refuseMerge(issue: Issue, pull: Pull, expectedHead: string | undefined): void {
  if (issue.closedAt || !pull.mergeable) throw new GitHubError(405, 'Pull Request is not mergeable')
  if (expectedHead !== undefined && expectedHead !== pull.head.sha) {
    throw new GitHubError(409, 'Head branch was modified. Review and try the merge again.')
  }
}

function readMerge(body: JsonObject): {
  method: MergeMethod
  title: string | undefined
  message: string | undefined
} {
  const requested = readText(body, 'merge_method') ?? 'merge'
  const method = MERGE_METHODS.find((method) => method === requested)
  if (!method) {
    throw new GitHubError(
      422,
      `Invalid request.\n\n${JSON.stringify(requested)} is not a member of ["merge", "squash", "rebase"].`,
    )
  }
  return { method, title: readText(body, 'commit_title'), message: readText(body, 'commit_message') }
}
