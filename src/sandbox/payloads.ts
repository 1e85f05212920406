import type { App } from './apps/apps.js'
import type { Commit, Status } from './commits.js'
import type { Hook } from './hooks/hook.js'
import type { Comment, Issue, Pull } from './model.js'
import { appHookResource, installationResource } from './resources/app.js'
import { type Check, checkRunResource, checkSuiteResource, latestRuns, TREE } from './resources/checks.js'
import { hookResource } from './resources/hook.js'
import { commentResource, issueResource } from './resources/issue.js'
import { pullResource } from './resources/pull.js'
import { statusResource } from './resources/status.js'
import { repositoryResource } from './resources/repository.js'
import { userResource } from './resources/user.js'
import type { View } from './resources/view.js'
import { OWNER } from './seed.js'

/** Payload of `issue_comment`, action `created` (https://docs.github.com/webhooks/webhook-events-and-payloads#issue_comment). */
export function commentPayload(view: View, issue: Issue, comment: Comment) {
  return {
    action: 'created',
    issue: issueResource(view, issue),
    comment: commentResource(view, issue, comment),
    ...context(view, issue.repo, comment.user),
  }
}

/** Payload of `issue_comment`, action `edited`, for a comment whose text was `from`. */
export function commentEditedPayload(view: View, issue: Issue, comment: Comment, from: string) {
  return { ...commentPayload(view, issue, comment), action: 'edited', changes: { body: { from } } }
}

/** Payload of `pull_request`, action `closed`, for a pull request that `login` merged. */
export function mergePayload(view: View, issue: Issue, pull: Pull, login: string) {
  return {
    action: 'closed',
    number: issue.number,
    pull_request: pullResource(view, issue, pull),
    ...context(view, issue.repo, login),
  }
}

/** Payload of `push` for a commit (https://docs.github.com/webhooks/webhook-events-and-payloads#push). */
export function pushEvent(view: View, { repo, user, createdAt, branch, before, sha, message }: Commit) {
  const { repository, sender } = context(view, repo, user)
  const pusher = { name: sender.login, email: `${sender.login}@example.com` }
  const seconds = Math.floor(Date.parse(createdAt) / 1000)
  const times = { created_at: seconds, pushed_at: seconds, stargazers: 0, master_branch: 'main' }
  const author = { ...pusher, username: sender.login }
  const commit = {
    id: sha,
    tree_id: TREE,
    distinct: true,
    message,
    timestamp: createdAt,
    url: `${repository.html_url}/commit/${sha}`,
    author,
    committer: author,
    added: [],
    removed: [],
    modified: ['README.md'],
  }
  return {
    ref: `refs/heads/${branch}`,
    before,
    after: sha,
    repository: { ...repository, ...times, owner: { ...repository.owner, ...pusher } },
    pusher,
    sender,
    created: false,
    deleted: false,
    forced: false,
    base_ref: null,
    compare: `${repository.html_url}/compare/${before.slice(0, 12)}...${sha.slice(0, 12)}`,
    commits: [commit],
    head_commit: commit,
  }
}

/** Payload of `pull_request`, action `synchronize`, for a commit to the branch of an open pull request. */
export function synchronizeEvent(view: View, issue: Issue & { readonly pull: Pull }, commit: Commit) {
  return {
    action: 'synchronize',
    number: issue.number,
    pull_request: pullResource(view, issue, issue.pull),
    before: commit.before,
    after: commit.sha,
    ...context(view, issue.repo, commit.user),
  }
}

/** Payload of `check_run`, action `completed`, for a commit that `sender` pushed. */
export function checkRunEvent(view: View, repo: string, sender: string, check: Check) {
  const fields = context(view, repo, sender)
  const run = { ...checkRunResource(fields, check), check_suite: checkSuiteResource(fields, check) }
  return { action: 'completed', check_run: run, ...fields }
}

/** Payload of `check_suite`, action `completed`, for a commit that `sender` pushed. */
export function checkSuiteEvent(view: View, repo: string, sender: string, check: Check) {
  const fields = context(view, repo, sender)
  const suite = { ...checkSuiteResource(fields, check), ...latestRuns(fields, check) }
  return { action: 'completed', check_suite: suite, ...fields }
}

/** Payload of `status` (https://docs.github.com/webhooks/webhook-events-and-payloads#status). */
export function statusEvent(view: View, status: Status) {
  const { id, avatar_url, state, description, target_url, created_at, updated_at } = statusResource(
    view,
    status,
  )
  const { repo, sha } = status
  const url = `${view.repoApi(repo)}/commits/${sha}`
  return {
    id,
    sha,
    name: repo,
    avatar_url,
    target_url,
    context: status.context,
    description,
    state,
    commit: { sha, url, html_url: `${view.web}/${repo}/commit/${sha}` },
    branches: [],
    created_at,
    updated_at,
    ...context(view, repo, status.user),
  }
}

/** Payload of `ping` for a hook of this repository, which `sender` made or pinged. */
export function repositoryPing(view: View, repo: string, hook: Hook, sender: string) {
  return { ...ping(hookResource(view, repo, hook)), ...context(view, repo, sender) }
}

function ping<Resource extends { readonly id: number }>(hook: Resource) {
  return { zen: 'Half measures are as bad as nothing at all.', hook_id: hook.id, hook }
}

/** Payload of `ping` for the webhook of an App. */
export function appPing(view: View, app: App, hook: Hook) {
  return ping(appHookResource(view, app, hook))
}

/** Payload of `installation`, action `created`, for all repositories. */
export function installationEvent(view: View, app: App) {
  const repositories = view.state.repos.map(({ fullName }) => {
    const { id, node_id, name, full_name, private: isPrivate } = repositoryResource(view, fullName)
    return { id, node_id, name, full_name, private: isPrivate }
  })
  const sender = userResource(view, OWNER)
  return {
    action: 'created',
    installation: installationResource(view, app),
    repositories,
    requester: null,
    sender,
  }
}

/** Last fields of every payload. */
export function context(view: View, repo: string, sender: string) {
  return { repository: repositoryResource(view, repo), sender: userResource(view, sender) }
}
