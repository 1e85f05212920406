import { type Context, Hono } from 'hono'
import { checkRunResource, checkSuiteResource, latestRuns } from '../resources/checks.js'
import type { StatusState } from '../commits.js'
import { GitHubError } from '../github-error.js'
import { injectFault } from '../inject-fault.js'
import { context, statusEvent } from '../payloads.js'
import { repositoryResource } from '../resources/repository.js'
import { combinedStatus, statusResource } from '../resources/status.js'
import { responseSent, type RestEnv, type RestParts } from './env.js'
import { mayWrite } from './guard.js'
import { findRepo, type JsonObject, readObject, readText } from './input.js'
import { pageOf } from './paging.js'

const COMMIT = '/repos/:owner/:repo/commits/:ref{.+}'
const STATES: readonly StatusState[] = ['error', 'failure', 'pending', 'success']

/** Routes for the checks and statuses of a commit (https://docs.github.com/rest/checks, https://docs.github.com/rest/commits/statuses). */
export function checkRoutes({ view, faults, webhooks }: RestParts): Hono<RestEnv> {
  const { state } = view
  const fault = injectFault(faults, 'checks')
  return new Hono<RestEnv>()
    .get(`${COMMIT}/check-runs`, fault, (c) => {
      const { repo, sha } = findCommit(c, 'ref')
      const checks = state.commits.checks(repo, sha)
      const runs = pageOf(c, checks).map((check) => checkRunResource(owned(repo), check))
      return c.json({ total_count: checks.length, check_runs: runs })
    })
    .get(`${COMMIT}/check-suites`, fault, (c) => {
      const { repo, sha } = findCommit(c, 'ref')
      const checks = state.commits.checks(repo, sha)
      const repository = repositoryResource(view, repo)
      const suites = pageOf(c, checks).map((check) => ({
        ...checkSuiteResource(owned(repo), check),
        ...latestRuns(owned(repo), check),
        repository,
      }))
      return c.json({ total_count: checks.length, check_suites: suites })
    })
    .get(`${COMMIT}/status`, fault, (c) => {
      const commit = findCommit(c, 'ref')
      const all = state.commits.statuses(commit.repo, commit.sha)
      return c.json(combinedStatus(view, commit, all, pageOf(c, all)))
    })
    .post('/repos/:owner/:repo/statuses/:sha', mayWrite('statuses'), fault, async (c) => {
      const commit = findCommit(c, 'sha')
      const status = state.addStatus({
        ...commit,
        ...readStatus(await readObject(c)),
        user: c.get('grant').login,
      })
      webhooks.publish('status', status.repo, () => statusEvent(view, status), responseSent(c))
      const resource = statusResource(view, status)
      return c.json(resource, 201, { Location: resource.url })
    })

  function findCommit(c: Context<RestEnv>, parameter: 'ref' | 'sha'): { repo: string; sha: string } {
    const { fullName: repo } = findRepo(c, state)
    const ref = c.req.param(parameter) ?? ''
    const sha = state.commits.resolve(repo, ref)
    if (sha === undefined) throw new GitHubError(422, `No commit found for SHA: ${ref}`)
    return { repo, sha }
  }

  /** The owner pushed everything that is checked. */
  function owned(repo: string) {
    return context(view, repo, view.repo(repo).owner)
  }
}

function readStatus(body: JsonObject) {
  const given = readText(body, 'state')
  const state = STATES.find((each) => each === given)
  if (!state) {
    const message = 'State is not included in the list'
    throw new GitHubError(422, 'Validation Failed', [
      { resource: 'Status', code: 'custom', field: 'state', message },
    ])
  }
  return {
    state,
    context: readText(body, 'context') ?? 'default',
    description: readText(body, 'description') ?? null,
    targetUrl: readText(body, 'target_url') ?? null,
  }
}
