import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { MERGE_METHODS, REACTIONS } from '../codehost/actions.js'
import type { HttpEnv } from '../http/body.js'
import { findIssue, findRepo, type SandboxContext } from './host.js'
import {
  bearerOf,
  requireFound,
  GitHubError,
  invalidField,
  type JsonObject,
  pageOf,
  readObject,
  readTextField,
  responseSent,
  SERVER_VERSION,
  setCommonHeaders,
} from './protocol.js'
import {
  type StoredComment,
  type Commit,
  sha1Hex,
  type Issue,
  OWNER,
  type PullIssue,
  type Push,
  type SandboxState,
  type CommitStatus,
  type ReactionSubject,
} from './state.js'

type C = Context<HttpEnv>

const MAX_COMMENT_LENGTH = 65_536
const STATES: readonly CommitStatus['state'][] = ['error', 'failure', 'pending', 'success']

const REPO = '/repos/:owner/:repo'
const ISSUE = `${REPO}/issues/:number{\\d+}`
const COMMENT = `${REPO}/issues/comments/:id{\\d+}`
const PULL = `${REPO}/pulls/:number{\\d+}`
/** A branch's name may contain slashes. */
const COMMIT = `${REPO}/commits/:ref{.+}`

/**
 * Route by which relay recognizes GitHub Enterprise Server without a token
 * (https://docs.github.com/enterprise-server/rest/meta/meta).
 */
export function metaRoute({ clock }: SandboxContext): Hono<HttpEnv> {
  return new Hono<HttpEnv>().get('/meta', (c) => {
    setCommonHeaders(c, clock)
    return c.json({ verifiable_password_authentication: false, installed_version: SERVER_VERSION })
  })
}

/** Middleware that sets the common response headers and requires a valid bearer token, which may do everything. */
export function requireToken({ oauth, clock }: SandboxContext): MiddlewareHandler<HttpEnv> {
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
    await next()
  }
}

/** Routes of GitHub's REST API that the actions use. `check` starts the check of a pushed commit. */
export function restRoutes(host: SandboxContext, check: (push: Push) => void): Hono<HttpEnv> {
  const { state, payloads, faults } = host
  return new Hono<HttpEnv>()
    .get('/user', faults.inject('user'), (c) => c.json(payloads.user(OWNER)))
    .get(REPO, (c) => c.json(payloads.repository(findRepo(c, state).fullName)))
    .get(ISSUE, (c) => c.json(payloads.issue(findIssue(c, state))))
    .route('/', commentRoutes(host))
    .route('/', reactionRoutes(host))
    .route('/', pullRoutes(host, check))
    .route('/', pushRoute(host, check))
    .route('/', commitRoutes(host))
}

/** Comments on issues and pull requests (https://docs.github.com/rest/issues/comments). */
function commentRoutes({ state, hooks, payloads, faults }: SandboxContext): Hono<HttpEnv> {
  const fault = faults.inject('comment')
  return new Hono<HttpEnv>()
    .post(`${ISSUE}/comments`, fault, async (c) => {
      const before = findIssue(c, state)
      if (before.locked) throw new GitHubError(403, 'Unable to create comment because issue is locked.')
      const resource = publish(c, state.addComment(before, readComment(await readObject(c))))
      return c.json(resource, 201, { Location: resource.url })
    })
    .get(`${ISSUE}/comments`, (c) => {
      const issue = findIssue(c, state)
      return c.json(pageOf(c, state.commentsOn(issue)).map((comment) => payloads.comment(issue, comment)))
    })
    .get(COMMENT, (c) => {
      const comment = findComment(c, state)
      return c.json(payloads.comment(issueOf(comment, state), comment))
    })
    .patch(COMMENT, fault, async (c) => {
      const before = findComment(c, state)
      return c.json(publish(c, state.editComment(before, readComment(await readObject(c))), before.body))
    })

  /**
   * Publishes the event of a new comment, or of one with another text `before`, and returns the comment for the
   * response.
   */
  function publish(c: C, comment: StoredComment, before?: string): ReturnType<typeof payloads.comment> {
    const issue = issueOf(comment, state)
    const describe = (): JsonObject => payloads.commentEvent(issue, comment, before)
    hooks.publish('issue_comment', issue.repo, describe, responseSent(c))
    return payloads.comment(issue, comment)
  }
}

function findComment(c: C, state: SandboxState): StoredComment {
  return requireFound(state.comment(findRepo(c, state).fullName, Number(c.req.param('id'))))
}

function issueOf({ repo, issueNumber }: StoredComment, state: SandboxState): Issue {
  return requireFound(state.issue(repo, issueNumber))
}

function readComment(body: JsonObject): string {
  const text = readTextField(body, 'body')
  if (text === undefined) throw new GitHubError(422, 'Invalid request.\n\n"body" wasn\'t supplied.')
  const invalid = (message: string): GitHubError =>
    invalidField('IssueComment', { code: 'unprocessable', field: 'data', message })
  if (text.trim() === '') throw invalid("Body can't be blank")
  if (text.length > MAX_COMMENT_LENGTH)
    throw invalid(`Body is too long (maximum is ${MAX_COMMENT_LENGTH} characters)`)
  return text
}

/** Reactions to issues, comments and review comments (https://docs.github.com/rest/reactions/reactions). */
function reactionRoutes({ state, payloads, faults }: SandboxContext): Hono<HttpEnv> {
  const fault = faults.inject('react')
  return new Hono<HttpEnv>()
    .post(`${ISSUE}/reactions`, fault, (c) => {
      const issue = findIssue(c, state)
      return react(c, 'issue', issue.id, issue)
    })
    .post(`${COMMENT}/reactions`, fault, (c) => {
      const comment = findComment(c, state)
      return react(c, 'comment', comment.id, issueOf(comment, state))
    })
    .post(`${REPO}/pulls/comments/:id{\\d+}/reactions`, fault, (c) => {
      const { fullName } = findRepo(c, state)
      const comment = requireFound(state.reviewComment(fullName, Number(c.req.param('id'))))
      return react(c, 'review_comment', comment.id, issueOf(comment, state))
    })

  async function react(
    c: C,
    kind: ReactionSubject['kind'],
    id: number,
    { locked }: Issue,
  ): Promise<Response> {
    const wanted = (await readObject(c))['content']
    const content = REACTIONS.find((reaction) => reaction === wanted)
    if (!content) throw invalidField('Reaction', { code: 'invalid', field: 'content' })
    if (locked) throw new GitHubError(403, 'Unable to create reaction because issue is locked.')
    const { reaction, created } = state.addReaction({ kind, id }, content)
    return c.json(payloads.reaction(reaction), created ? 201 : 200)
  }
}

/** Pull requests and merges (https://docs.github.com/rest/pulls/pulls). */
function pullRoutes(
  { state, hooks, payloads, faults }: SandboxContext,
  check: (push: Push) => void,
): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get(PULL, (c) => c.json(payloads.pull(findPull(c))))
    .put(`${PULL}/merge`, faults.inject('merge'), async (c) => {
      const body = await readObject(c)
      const issue = findPull(c)
      const { mergeable, head } = issue.pull
      if (issue.closedAt || !mergeable) throw new GitHubError(405, 'Pull Request is not mergeable')
      if ((readTextField(body, 'sha') ?? head.sha) !== head.sha)
        throw new GitHubError(409, 'Head branch was modified. Review and try the merge again.')
      const wanted = readTextField(body, 'merge_method') ?? 'merge'
      const method = MERGE_METHODS.find((each) => each === wanted)
      if (!method)
        throw new GitHubError(
          422,
          `Invalid request.\n\n${JSON.stringify(wanted)} is not a member of ["merge", "squash", "rebase"].`,
        )
      const [title, message] = [readTextField(body, 'commit_title'), readTextField(body, 'commit_message')]
      const { merged, push } = state.merge(issue, { method, title, message })
      const sent = responseSent(c)
      hooks.publish('pull_request', issue.repo, () => payloads.pullEvent('closed', merged), sent)
      hooks.publish('push', issue.repo, () => payloads.pushEvent(push), sent)
      check(push)
      const sha = merged.pull.merge?.sha
      return c.json({ sha, merged: true, message: 'Pull Request successfully merged' })
    })

  function findPull(c: C): PullIssue {
    const { pull, ...issue } = findIssue(c, state)
    return { ...issue, pull: requireFound(pull) }
  }
}

/**
 * Pushes a commit to a branch and to its pull requests, and starts its check. The file itself is not stored
 * (https://docs.github.com/rest/repos/contents#create-or-update-file-contents).
 */
function pushRoute(
  { state, hooks, payloads, faults }: SandboxContext,
  check: (push: Push) => void,
): Hono<HttpEnv> {
  return new Hono<HttpEnv>().put(`${REPO}/contents/:path{.+}`, faults.inject('push'), async (c) => {
    const { fullName: repo } = findRepo(c, state)
    const body = await readObject(c)
    const [message, content] = [readTextField(body, 'message'), readTextField(body, 'content')]
    if (message === undefined || content === undefined)
      throw new GitHubError(422, 'Invalid request.\n\n"message" and "content" weren\'t supplied.')
    const branch = readTextField(body, 'branch') ?? 'main'
    const push = state.push(repo, branch, message)
    if (!push) throw new GitHubError(404, `Branch ${branch} not found`)
    const { sha, before } = push
    const sent = responseSent(c)
    hooks.publish('push', repo, () => payloads.pushEvent(push), sent)
    for (const issue of state.pullsFrom(repo, branch)) {
      const describe = (): JsonObject => payloads.pullEvent('synchronize', issue, { before, after: sha })
      hooks.publish('pull_request', repo, describe, sent)
    }
    check(push)
    const path = c.req.param('path')
    const size = Buffer.byteLength(content, 'base64')
    const file = { type: 'file', name: path.split('/').at(-1), path, sha: sha1Hex(content), size }
    const html_url = `${payloads.web}/${repo}/commit/${sha}`
    return c.json({ content: file, commit: { sha, html_url, message, parents: [{ sha: before }] } }, 201)
  })
}

/** Checks and statuses of commits (https://docs.github.com/rest/checks, https://docs.github.com/rest/commits/statuses). */
function commitRoutes({ state, hooks, payloads, faults }: SandboxContext): Hono<HttpEnv> {
  const fault = faults.inject('checks')
  return new Hono<HttpEnv>()
    .get(`${COMMIT}/check-runs`, fault, (c) => {
      const { check } = findCommit(c, c.req.param('ref'))
      const checks = check ? [check] : []
      return c.json({
        total_count: checks.length,
        check_runs: checks.map((each) => payloads.checkRun(each)),
      })
    })
    .get(`${COMMIT}/status`, fault, (c) => {
      const commit = findCommit(c, c.req.param('ref'))
      const { repo, sha } = commit
      const all = [...commit.statuses.values()].toReversed()
      const commit_url = `${payloads.repoApi(repo)}/commits/${sha}`
      return c.json({
        state: combined(all.map(({ state }) => state)),
        statuses: pageOf(c, all).map((status) => payloads.status(commit, status)),
        sha,
        total_count: all.length,
        repository: payloads.repository(repo),
        commit_url,
        url: `${commit_url}/status`,
      })
    })
    .post(`${REPO}/statuses/:sha`, fault, async (c) => {
      const commit = findCommit(c, c.req.param('sha'))
      const body = await readObject(c)
      const given = readTextField(body, 'state')
      const known = STATES.find((each) => each === given)
      const message = 'State is not included in the list'
      if (!known) throw invalidField('Status', { code: 'custom', field: 'state', message })
      const status = {
        id: state.newId(),
        context: readTextField(body, 'context') ?? 'default',
        state: known,
        description: readTextField(body, 'description') ?? null,
        targetUrl: readTextField(body, 'target_url') ?? null,
        createdAt: state.now(),
      }
      commit.statuses.set(status.context, status)
      hooks.publish('status', commit.repo, () => payloads.statusEvent(commit, status), responseSent(c))
      const resource = payloads.status(commit, status)
      return c.json({ ...resource, creator: payloads.user(OWNER) }, 201, { Location: resource.url })
    })

  function findCommit(c: C, ref: string): Commit {
    const commit = state.commit(findRepo(c, state).fullName, ref)
    if (!commit) throw new GitHubError(422, `No commit found for SHA: ${ref}`)
    return commit
  }
}

/**
 * Combines states by GitHub's rule: a failure if there is one, else pending unless all of them, and at least one,
 * succeeded.
 */
function combined(states: readonly CommitStatus['state'][]): 'failure' | 'pending' | 'success' {
  if (states.some((state) => state === 'failure' || state === 'error')) return 'failure'
  return states.length > 0 && states.every((state) => state === 'success') ? 'success' : 'pending'
}
