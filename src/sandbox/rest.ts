import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { MERGE_METHODS, REACTIONS } from '../codehost/host.js'
import type { HttpEnv } from '../http/body.js'
import type { Hooks, RestEnv } from './hooks.js'
import type { Json } from './payloads.js'
import {
  bearerOf,
  findIssue,
  findRepo,
  found,
  GitHubError,
  type Host,
  invalidField,
  pageOf,
  readObject,
  readText,
  responseSent,
  SERVER_VERSION,
  setCommonHeaders,
} from './protocol.js'
import {
  type Comment,
  type Commit,
  hashOf,
  type Issue,
  type PullIssue,
  type Status,
  type Subject,
} from './state.js'
import type { OAuth } from './tokens.js'

const MAX_COMMENT_LENGTH = 65_536
const STATES: readonly Status['state'][] = ['error', 'failure', 'pending', 'success']

const ISSUE = '/repos/:owner/:repo/issues/:number{\\d+}'
const COMMENT = '/repos/:owner/:repo/issues/comments/:id{\\d+}'
const PULL = '/repos/:owner/:repo/pulls/:number{\\d+}'
/** The name of a branch may have slashes. */
const COMMIT = '/repos/:owner/:repo/commits/:ref{.+}'

/** How relay, without a token, recognises GitHub Enterprise Server (https://docs.github.com/enterprise-server/rest/meta/meta). */
export function metaRoute({ clock }: Host): Hono<HttpEnv> {
  return new Hono<HttpEnv>().get('/meta', (c) => {
    setCommonHeaders(c, clock)
    return c.json({ verifiable_password_authentication: false, installed_version: SERVER_VERSION })
  })
}

/** Middleware that sets the common response headers and requires a valid bearer token, which may do everything. */
export function guard(oauth: OAuth, { clock }: Host): MiddlewareHandler<RestEnv> {
  return async (c, next) => {
    setCommonHeaders(c, clock)
    if (!c.req.header('user-agent'))
      throw new GitHubError(
        403,
        'Request forbidden by administrative rules. Please make sure your request has a User-Agent header.',
      )
    const grant = oauth.find(bearerOf(c))
    if (!grant) throw new GitHubError(401, 'Bad credentials')
    if (grant.scopes) c.header('X-OAuth-Scopes', grant.scopes.join(', '))
    if (grant.clientId !== undefined) c.header('X-OAuth-Client-Id', grant.clientId)
    c.set('grant', grant)
    await next()
  }
}

/** The part of GitHub's REST API that the actions use. `check` starts the check of a pushed commit. */
export function restRoutes(hooks: Hooks, host: Host, check: (commit: Commit) => void): Hono<RestEnv> {
  const { state, payloads, faults } = host
  return new Hono<RestEnv>()
    .get('/user', faults.inject('user'), (c) => c.json(payloads.user(c.get('grant').login)))
    .get('/repos/:owner/:repo', (c) => c.json(payloads.repository(findRepo(c, state).fullName)))
    .get(ISSUE, (c) => c.json(payloads.issue(findIssue(c, state))))
    .route('/', commentRoutes(hooks, host))
    .route('/', reactionRoutes(host))
    .route('/', pullRoutes(hooks, host))
    .route('/', contentRoutes(hooks, host, check))
    .route('/', checkRoutes(hooks, host))
}

/** Comments on issues and pull requests (https://docs.github.com/rest/issues/comments). */
function commentRoutes(hooks: Hooks, { state, payloads, faults }: Host): Hono<RestEnv> {
  const fault = faults.inject('comment')
  return new Hono<RestEnv>()
    .post(`${ISSUE}/comments`, fault, async (c) => {
      const before = findIssue(c, state)
      if (before.locked) throw new GitHubError(403, 'Unable to create comment because issue is locked.')
      const comment = state.addComment(before, c.get('grant').login, readComment(await readObject(c)))
      const issue = issueOf(comment)
      const describe = (): Json => payloads.commentEvent(issue, comment)
      hooks.publish('issue_comment', issue.repo, describe, responseSent(c))
      const resource = payloads.comment(issue, comment)
      return c.json(resource, 201, { Location: String(resource['url']) })
    })
    .get(`${ISSUE}/comments`, (c) => {
      const issue = findIssue(c, state)
      return c.json(pageOf(c, state.commentsOn(issue)).map((comment) => payloads.comment(issue, comment)))
    })
    .get(COMMENT, (c) => {
      const comment = findComment(c)
      return c.json(payloads.comment(issueOf(comment), comment))
    })
    .patch(COMMENT, fault, async (c) => {
      const before = findComment(c)
      const comment = state.editComment(before, readComment(await readObject(c)))
      const issue = issueOf(comment)
      const describe = (): Json => payloads.commentEvent(issue, comment, before.body)
      hooks.publish('issue_comment', issue.repo, describe, responseSent(c))
      return c.json(payloads.comment(issue, comment))
    })

  function findComment(c: Context<RestEnv>): Comment {
    return found(state.comment(findRepo(c, state).fullName, Number(c.req.param('id'))))
  }

  function issueOf({ repo, issueNumber }: Comment): Issue {
    return found(state.issue(repo, issueNumber))
  }
}

function readComment(body: Json): string {
  const text = readText(body, 'body')
  if (text === undefined) throw new GitHubError(422, 'Invalid request.\n\n"body" wasn\'t supplied.')
  const invalid = (message: string): GitHubError =>
    invalidField('IssueComment', { code: 'unprocessable', field: 'data', message })
  if (text.trim() === '') throw invalid("Body can't be blank")
  if (text.length > MAX_COMMENT_LENGTH)
    throw invalid(`Body is too long (maximum is ${MAX_COMMENT_LENGTH} characters)`)
  return text
}

/** Reactions to issues, comments and review comments (https://docs.github.com/rest/reactions/reactions). */
function reactionRoutes({ state, payloads, faults }: Host): Hono<RestEnv> {
  const fault = faults.inject('react')
  return new Hono<RestEnv>()
    .post(`${ISSUE}/reactions`, fault, (c) => {
      const issue = findIssue(c, state)
      return react(c, issue, { kind: 'issue', id: issue.id })
    })
    .post(`${COMMENT}/reactions`, fault, (c) => {
      const { fullName } = findRepo(c, state)
      const { id, issueNumber } = found(state.comment(fullName, Number(c.req.param('id'))))
      return react(c, found(state.issue(fullName, issueNumber)), { kind: 'comment', id })
    })
    .post('/repos/:owner/:repo/pulls/comments/:id{\\d+}/reactions', fault, (c) => {
      const { fullName } = findRepo(c, state)
      const { id, issueNumber } = found(state.reviewComment(fullName, Number(c.req.param('id'))))
      return react(c, found(state.issue(fullName, issueNumber)), { kind: 'review_comment', id })
    })

  async function react(c: Context<RestEnv>, { locked }: Issue, subject: Subject): Promise<Response> {
    const wanted = (await readObject(c))['content']
    const content = REACTIONS.find((reaction) => reaction === wanted)
    if (!content) throw invalidField('Reaction', { code: 'invalid', field: 'content' })
    if (locked) throw new GitHubError(403, 'Unable to create reaction because issue is locked.')
    const { reaction, created } = state.addReaction(subject, c.get('grant').login, content)
    return c.json(payloads.reaction(reaction), created ? 201 : 200)
  }
}

/** Pull requests and merges (https://docs.github.com/rest/pulls/pulls). */
function pullRoutes(hooks: Hooks, { state, payloads, faults }: Host): Hono<RestEnv> {
  return new Hono<RestEnv>()
    .get(PULL, (c) => c.json(payloads.pull(findPull(c))))
    .put(`${PULL}/merge`, faults.inject('merge'), async (c) => {
      const body = await readObject(c)
      const issue = findPull(c)
      const { mergeable, head } = issue.pull
      if (issue.closedAt || !mergeable) throw new GitHubError(405, 'Pull Request is not mergeable')
      if ((readText(body, 'sha') ?? head.sha) !== head.sha)
        throw new GitHubError(409, 'Head branch was modified. Review and try the merge again.')
      const wanted = readText(body, 'merge_method') ?? 'merge'
      const method = MERGE_METHODS.find((each) => each === wanted)
      if (!method)
        throw new GitHubError(
          422,
          `Invalid request.\n\n${JSON.stringify(wanted)} is not a member of ["merge", "squash", "rebase"].`,
        )
      const [title, message] = [readText(body, 'commit_title'), readText(body, 'commit_message')]
      const { login } = c.get('grant')
      const merged = state.merge(issue, login, { method, title, message })
      const describe = (): Json => payloads.pullEvent('closed', merged, login)
      hooks.publish('pull_request', issue.repo, describe, responseSent(c))
      const sha = merged.pull.merge?.sha
      return c.json({ sha, merged: true, message: 'Pull Request successfully merged' })
    })

  function findPull(c: Context<RestEnv>): PullIssue {
    const { pull, ...issue } = findIssue(c, state)
    return { ...issue, pull: found(pull) }
  }
}

/**
 * Writing a file, which pushes a commit to a branch and to its pull requests, and starts its check. The file itself is not stored
 * (https://docs.github.com/rest/repos/contents#create-or-update-file-contents).
 */
function contentRoutes(
  hooks: Hooks,
  { state, payloads, faults }: Host,
  check: (commit: Commit) => void,
): Hono<RestEnv> {
  const CONTENTS = '/repos/:owner/:repo/contents/:path{.+}'
  return new Hono<RestEnv>().put(CONTENTS, faults.inject('push'), async (c) => {
    const { fullName: repo } = findRepo(c, state)
    const body = await readObject(c)
    const [message, content] = [readText(body, 'message'), readText(body, 'content')]
    if (message === undefined || content === undefined)
      throw new GitHubError(422, 'Invalid request.\n\n"message" and "content" weren\'t supplied.')
    const branch = readText(body, 'branch') ?? 'main'
    const { login } = c.get('grant')
    const commit = state.push(repo, branch, login, message)
    if (!commit) throw new GitHubError(404, `Branch ${branch} not found`)
    const sent = responseSent(c)
    hooks.publish('push', repo, () => payloads.pushEvent(commit), sent)
    const { sha, before } = commit
    for (const issue of state.pullsFrom(repo, branch)) {
      const more = { before, after: sha }
      hooks.publish('pull_request', repo, () => payloads.pullEvent('synchronize', issue, login, more), sent)
    }
    check(commit)
    const path = c.req.param('path')
    const bytes = Buffer.from(content, 'base64')
    const blob = hashOf(`blob ${bytes.byteLength}\0${bytes.toString('latin1')}`)
    const file = { type: 'file', name: path.split('/').at(-1), path, sha: blob, size: bytes.byteLength }
    const html = `${payloads.web}/${repo}/commit/${sha}`
    return c.json(
      { content: file, commit: { sha, html_url: html, message, parents: [{ sha: before }] } },
      201,
    )
  })
}

/** Checks and statuses of a commit (https://docs.github.com/rest/checks, https://docs.github.com/rest/commits/statuses). */
function checkRoutes(hooks: Hooks, { state, payloads, faults }: Host): Hono<RestEnv> {
  const fault = faults.inject('checks')
  return new Hono<RestEnv>()
    .get(`${COMMIT}/check-runs`, fault, (c) => {
      const { repo, sha } = findCommit(c, c.req.param('ref'))
      const checks = [state.check(repo, sha) ?? []].flat()
      return c.json({ total_count: checks.length, check_runs: checks.map((each) => payloads.checkRun(each)) })
    })
    .get(`${COMMIT}/status`, fault, (c) => {
      const { repo, sha } = findCommit(c, c.req.param('ref'))
      const all = state.statuses(repo, sha)
      const url = `${payloads.repoApi(repo)}/commits/${sha}`
      return c.json({
        state: combined(all.map(({ state }) => state)),
        statuses: pageOf(c, all).map((status) => payloads.status(status)),
        sha,
        total_count: all.length,
        repository: payloads.repository(repo),
        commit_url: url,
        url: `${url}/status`,
      })
    })
    .post('/repos/:owner/:repo/statuses/:sha', fault, async (c) => {
      const commit = findCommit(c, c.req.param('sha'))
      const given = readStatus(await readObject(c))
      const status = state.addStatus({ ...commit, ...given, user: c.get('grant').login })
      hooks.publish('status', status.repo, () => payloads.statusEvent(status), responseSent(c))
      const resource = { ...payloads.status(status), creator: payloads.user(status.user) }
      return c.json(resource, 201, { Location: String(payloads.status(status)['url']) })
    })

  function findCommit(c: Context<RestEnv>, ref: string): { repo: string; sha: string } {
    const { fullName: repo } = findRepo(c, state)
    const sha = state.resolve(repo, ref)
    if (sha === undefined) throw new GitHubError(422, `No commit found for SHA: ${ref}`)
    return { repo, sha }
  }
}

function readStatus(body: Json): Pick<Status, 'state' | 'context' | 'description' | 'targetUrl'> {
  const given = readText(body, 'state')
  const state = STATES.find((each) => each === given)
  const message = 'State is not included in the list'
  if (!state) throw invalidField('Status', { code: 'custom', field: 'state', message })
  return {
    state,
    context: readText(body, 'context') ?? 'default',
    description: readText(body, 'description') ?? null,
    targetUrl: readText(body, 'target_url') ?? null,
  }
}

/** GitHub's rule: a failure if there is one, else pending unless all of them, and at least one, succeeded. */
function combined(states: readonly Status['state'][]): 'failure' | 'pending' | 'success' {
  if (states.some((state) => state === 'failure' || state === 'error')) return 'failure'
  return states.length > 0 && states.every((state) => state === 'success') ? 'success' : 'pending'
}
