import {
  AFTER,
  BEFORE,
  type Scene,
  type SceneContext,
  type Template,
  type Templates,
  TREE,
} from '../template.js'
import { checkRun, checkSuite, workflowRun } from './check-payloads.js'
import { pingPayload, repositoryHook, UNUSED } from './hook-payload.js'
import { nodeId } from './node-id.js'
import { HOOK_ID } from './webhook.js'

/** Fields that only some actions have. */
type More = (scene: Scene) => object

const NOTHING: More = () => ({})
const TITLE: More = () => ({ changes: { title: { from: 'An earlier title' } } })
const BODY: More = () => ({ changes: { body: { from: 'An earlier text.' } } })
const COMMITS: More = () => ({ before: BEFORE, after: AFTER })

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads */
export const TEMPLATES: Templates = {
  ping,
  push,
  'check_run.completed': checkRun,
  'check_suite.completed': checkSuite,
  create: ({ context }) => ({ ...REFERENCE, master_branch: 'main', description: null, ...context }),
  delete: ({ context }) => ({ ...REFERENCE, ...context }),
  fork: ({ context }) => ({ forkee: { ...context.repository, fork: true, public: true }, ...context }),
  'issues.opened': issues('opened'),
  'issues.closed': issues('closed'),
  'issues.edited': issues('edited', TITLE),
  'issues.labeled': issues('labeled', label),
  'issues.reopened': issues('reopened'),
  'issue_comment.created': issueComment('created'),
  'issue_comment.deleted': issueComment('deleted'),
  'issue_comment.edited': issueComment('edited', BODY),
  'pull_request.opened': pullRequest('opened'),
  'pull_request.closed': pullRequest('closed'),
  'pull_request.labeled': pullRequest('labeled', label),
  'pull_request.ready_for_review': pullRequest('ready_for_review'),
  'pull_request.reopened': pullRequest('reopened'),
  'pull_request.synchronize': pullRequest('synchronize', COMMITS),
  'pull_request_review.submitted': review,
  'release.published': release,
  'star.created': ({ at, context }) => ({ action: 'created', starred_at: at, ...context }),
  'star.deleted': ({ context }) => ({ action: 'deleted', starred_at: null, ...context }),
  'watch.started': ({ context }) => ({ action: 'started', ...context }),
  'workflow_run.completed': workflowRun,
}

function ping({ context }: Scene) {
  const { url, created_at } = context.repository
  const hook = repositoryHook(url, {
    id: HOOK_ID,
    active: true,
    events: ['issue_comment', 'pull_request'],
    config: {
      content_type: 'json',
      url: 'https://example.com/webhook',
      insecure_ssl: '0',
      secret: '********',
    },
    createdAt: created_at,
    updatedAt: created_at,
    lastResponse: UNUSED,
  })
  return pingPayload(hook, context)
}

function issues(action: string, more = NOTHING): Template {
  return (scene) => {
    // In payloads, GitHub gives every issue a `draft`, not only pull requests.
    const issue = { ...scene.issue({ closed: action === 'closed' }), draft: false }
    return { action, issue, ...more(scene), ...scene.context }
  }
}

function issueComment(action: string, more = NOTHING): Template {
  return (scene) => {
    const issue = { ...scene.issue({ comments: 1 }), draft: false }
    const comment = scene.comment(5001, 'Hello from relay')
    return { action, ...more(scene), issue, comment, ...scene.context }
  }
}

function pullRequest(action: string, more = NOTHING): Template {
  return (scene) => {
    const pull = scene.pull({ closed: action === 'closed' })
    return { action, number: pull.number, pull_request: pull, ...more(scene), ...scene.context }
  }
}

function review(scene: Scene) {
  const pull = scene.pull()
  const html = `${pull.html_url}#pullrequestreview-6001`
  const resource = {
    id: 6001,
    node_id: nodeId('PullRequestReview', 6001),
    user: scene.context.sender,
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

/** A push of one commit to a branch. `at` is UTC, to the second. */
export interface Push {
  readonly at: string
  readonly branch: string
  readonly before: string
  readonly sha: string
  readonly message: string
}

function push({ at, context }: Scene) {
  return pushPayload(context, { at, branch: 'main', before: BEFORE, sha: AFTER, message: 'Say hello' })
}

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#push */
export function pushPayload(
  { repository, sender }: SceneContext,
  { at, branch, before, sha, message }: Push,
) {
  const pusher = { name: sender.login, email: `${sender.login}@example.com` }
  const seconds = Math.floor(Date.parse(at) / 1000)
  const times = { created_at: seconds, pushed_at: seconds, stargazers: 0, master_branch: 'main' }
  const author = { ...pusher, username: sender.login }
  const commit = {
    id: sha,
    tree_id: TREE,
    distinct: true,
    message,
    timestamp: at,
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

const REFERENCE = { ref: 'v1.0.0', ref_type: 'tag', pusher_type: 'user' }

function label({ context: { repository } }: Scene) {
  const id = 7001
  const url = `${repository.url}/labels/bug`
  const description = 'Something isn’t working'
  const resource = {
    id,
    node_id: nodeId('Label', id),
    url,
    name: 'bug',
    color: 'd73a4a',
    default: true,
    description,
  }
  return { label: resource }
}

function release(scene: Scene) {
  const { repository, sender } = scene.context
  const tag = 'v1.0.0'
  const url = `${repository.url}/releases/8001`
  const resource = {
    url,
    assets_url: `${url}/assets`,
    upload_url: `https://uploads.github.com/repos/${repository.full_name}/releases/8001/assets{?name,label}`,
    html_url: `${repository.html_url}/releases/tag/${tag}`,
    id: 8001,
    author: sender,
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
