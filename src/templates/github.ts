import type { Comment, Issue, Pull } from '../sandbox/model.js'
import { commentResource, issueResource } from '../sandbox/resources/issue.js'
import { pullResource } from '../sandbox/resources/pull.js'
import { userResource } from '../sandbox/resources/user.js'
import { nodeId } from '../sandbox/resources/view.js'
import { DEMO, OWNER } from '../sandbox/seed.js'
import { pingPayload } from '../sandbox/payloads.js'
import { checkRun, checkSuite, workflowRun } from './github-checks.js'
import { type Scene, templateOf } from './scene.js'
import { AFTER, BEFORE, type Template, type Templates, TREE } from './template.js'

const TITLE = { changes: { title: { from: 'An earlier title' } } }
const BODY = { changes: { body: { from: 'An earlier text.' } } }

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads */
export const GITHUB_TEMPLATES: Templates = {
  ping: templateOf((scene) => pingPayload(scene, 'https://example.com/webhook')),
  push: templateOf(push),
  'check_run.completed': templateOf(checkRun),
  'check_suite.completed': templateOf(checkSuite),
  create: templateOf(({ context }) => ({
    ...reference(),
    master_branch: 'main',
    description: null,
    ...context,
  })),
  delete: templateOf(({ context }) => ({ ...reference(), ...context })),
  fork: templateOf((scene) => ({
    forkee: { ...scene.context.repository, fork: true, public: true },
    ...scene.context,
  })),
  'issues.opened': issues('opened'),
  'issues.closed': issues('closed'),
  'issues.edited': issues('edited', TITLE),
  'issues.labeled': issues('labeled', { label: label() }),
  'issues.reopened': issues('reopened'),
  'issue_comment.created': issueComment('created'),
  'issue_comment.deleted': issueComment('deleted'),
  'issue_comment.edited': issueComment('edited', BODY),
  'pull_request.opened': pullRequest('opened'),
  'pull_request.closed': pullRequest('closed'),
  'pull_request.labeled': pullRequest('labeled', { label: label() }),
  'pull_request.ready_for_review': pullRequest('ready_for_review'),
  'pull_request.reopened': pullRequest('reopened'),
  'pull_request.synchronize': pullRequest('synchronize', { before: BEFORE, after: AFTER }),
  'pull_request_review.submitted': templateOf(review),
  'release.published': templateOf(release),
  'star.created': templateOf(({ at, context }) => ({ action: 'created', starred_at: at, ...context })),
  'star.deleted': templateOf(({ context }) => ({ action: 'deleted', starred_at: null, ...context })),
  'watch.started': templateOf(({ context }) => ({ action: 'started', ...context })),
  'workflow_run.completed': templateOf(workflowRun),
}

/** GitHub has `draft` in payloads of issues that are none, too. */
function issueIn(scene: Scene, issue: Issue) {
  return { ...issueResource(scene, issue), draft: false }
}

function issues(action: string, more: object = {}): Template {
  return templateOf((scene) => {
    const issue = scene.issue(1, action === 'closed' ? { closedAt: scene.at } : {})
    return { action, issue: issueIn(scene, issue), ...more, ...scene.context }
  })
}

function issueComment(action: string, more: object = {}): Template {
  return templateOf((scene) => {
    const issue = scene.issue(1, { commentCount: 1 })
    const comment: Comment = {
      id: 5001,
      repo: DEMO,
      issueNumber: 1,
      user: OWNER,
      body: 'Hello from relay',
      createdAt: scene.at,
    }
    const resources = {
      issue: issueIn(scene, issue),
      comment: commentResource(scene, issue, comment),
    }
    return { action, ...more, ...resources, ...scene.context }
  })
}

function pullOf(scene: Scene, change: Partial<Issue> = {}) {
  const issue = scene.issue(2, change)
  return pullResource(scene, issue, pullIn(issue))
}

function pullIn({ pull }: Issue): Pull {
  if (!pull) throw new Error('unreachable: the sandbox has one')
  return pull
}

function pullRequest(action: string, more: object = {}): Template {
  return templateOf((scene) => {
    const pull = pullOf(scene, action === 'closed' ? { closedAt: scene.at } : {})
    return { action, number: pull.number, pull_request: pull, ...more, ...scene.context }
  })
}

function review(scene: Scene) {
  const pull = pullOf(scene)
  const html = `${pull.html_url}#pullrequestreview-6001`
  const resource = {
    id: 6001,
    node_id: nodeId('PullRequestReview', 6001),
    user: userResource(scene, OWNER),
    body: 'Looks good.',
    commit_id: pull.head.sha,
    submitted_at: scene.at,
    state: 'approved',
    html_url: html,
    pull_request_url: pull.url,
    author_association: 'OWNER',
    _links: { html: { href: html }, pull_request: { href: pull.url } },
  }
  return { action: 'submitted', review: resource, pull_request: pull, ...scene.context }
}

function push(scene: Scene) {
  const { repository, sender } = scene.context
  const pusher = { name: OWNER, email: `${OWNER}@example.com` }
  const seconds = Math.floor(Date.parse(scene.at) / 1000)
  const times = { created_at: seconds, pushed_at: seconds, stargazers: 0, master_branch: 'main' }
  const author = { ...pusher, username: OWNER }
  const commit = {
    id: AFTER,
    tree_id: TREE,
    distinct: true,
    message: 'Say hello',
    timestamp: scene.at,
    url: `${repository.html_url}/commit/${AFTER}`,
    author,
    committer: author,
    added: [],
    removed: [],
    modified: ['README.md'],
  }
  return {
    ref: 'refs/heads/main',
    before: BEFORE,
    after: AFTER,
    repository: { ...repository, ...times, owner: { ...repository.owner, ...pusher } },
    pusher,
    sender,
    created: false,
    deleted: false,
    forced: false,
    base_ref: null,
    compare: `${repository.html_url}/compare/${BEFORE.slice(0, 12)}...${AFTER.slice(0, 12)}`,
    commits: [commit],
    head_commit: commit,
  }
}

function reference() {
  return { ref: 'v1.0.0', ref_type: 'tag', pusher_type: 'user' }
}

function label() {
  const id = 7001
  const url = `https://api.github.com/repos/${DEMO}/labels/bug`
  const description = 'Something isn’t working'
  return { id, node_id: nodeId('Label', id), url, name: 'bug', color: 'd73a4a', default: true, description }
}

function release(scene: Scene) {
  const { repository } = scene.context
  const tag = 'v1.0.0'
  const url = `${repository.url}/releases/8001`
  const resource = {
    url,
    assets_url: `${url}/assets`,
    upload_url: `https://uploads.github.com/repos/${DEMO}/releases/8001/assets{?name,label}`,
    html_url: `${repository.html_url}/releases/tag/${tag}`,
    id: 8001,
    author: userResource(scene, OWNER),
    node_id: nodeId('Release', 8001),
    tag_name: tag,
    target_commitish: 'main',
    name: 'First',
    draft: false,
    prerelease: false,
    created_at: scene.at,
    published_at: scene.at,
    assets: [],
    tarball_url: `${repository.url}/tarball/${tag}`,
    zipball_url: `${repository.url}/zipball/${tag}`,
    body: 'The first release.',
  }
  return { action: 'published', release: resource, ...scene.context }
}
