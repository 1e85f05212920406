import { AFTER, BEFORE, type Template, type Templates } from '../template.js'

const WEB = 'https://gitea.example.com'
const OWNER = 'octo'
const HTML = `${WEB}/${OWNER}/demo`

/**
 * Payloads as Gitea 1.15 writes them, fields in its order (modules/structs in go-gitea/gitea, v1.15). Later versions and
 * Forgejo add fields.
 */
export const TEMPLATES: Templates = {
  push: ({ at }) => push(at),
  create: ({ at }) => ({ sha: AFTER, ref: 'v1.0.0', ref_type: 'tag', ...context(at) }),
  delete: ({ at }) => ({ ref: 'v1.0.0', ref_type: 'tag', pusher_type: 'user', ...context(at) }),
  'repository.created': repositoryEvent('created'),
  'repository.deleted': repositoryEvent('deleted'),
  'wiki.created': wiki('created'),
  'wiki.edited': wiki('edited'),
  'wiki.deleted': wiki('deleted'),
  'issues.opened': issues('opened'),
  'issues.closed': issues('closed'),
  'issues.reopened': issues('reopened'),
  'issue_comment.created': issueComment('created'),
  'issue_comment.deleted': issueComment('deleted'),
  'issue_comment.edited': issueComment('edited', { changes: { body: { from: 'An earlier text.' } } }),
  'pull_request.opened': pullRequest('opened'),
  'pull_request.closed': pullRequest('closed'),
  'pull_request.reopened': pullRequest('reopened'),
  'pull_request.synchronized': pullRequest('synchronized'),
}

function context(at: string) {
  return { repository: repository(at), sender: user(at) }
}

function user(at: string) {
  return {
    id: 1,
    login: OWNER,
    full_name: '',
    email: `${OWNER}@example.com`,
    avatar_url: `${WEB}/avatar/${OWNER}`,
    language: '',
    is_admin: false,
    last_login: '0001-01-01T00:00:00Z',
    created: at,
    restricted: false,
    active: false,
    prohibit_login: false,
    location: '',
    website: '',
    description: '',
    visibility: 'public',
    followers_count: 0,
    following_count: 0,
    starred_repos_count: 0,
    username: OWNER,
  }
}

function repository(at: string) {
  return {
    id: 101,
    owner: user(at),
    name: 'demo',
    full_name: `${OWNER}/demo`,
    description: 'A small repository to try things on',
    empty: false,
    private: false,
    fork: false,
    template: false,
    parent: null,
    mirror: false,
    size: 1,
    html_url: HTML,
    ssh_url: `git@gitea.example.com:${OWNER}/demo.git`,
    clone_url: `${HTML}.git`,
    original_url: '',
    website: '',
    stars_count: 0,
    forks_count: 0,
    watchers_count: 1,
    open_issues_count: 1,
    open_pr_counter: 1,
    release_counter: 0,
    default_branch: 'main',
    archived: false,
    created_at: at,
    updated_at: at,
    permissions: { admin: true, push: true, pull: true },
    has_issues: true,
    internal_tracker: {
      enable_time_tracker: true,
      allow_only_contributors_to_track_time: true,
      enable_issue_dependencies: true,
    },
    has_wiki: true,
    has_pull_requests: true,
    has_projects: true,
    ignore_whitespace_conflicts: false,
    allow_merge_commits: true,
    allow_rebase: true,
    allow_rebase_explicit: true,
    allow_squash_merge: true,
    default_merge_style: 'merge',
    avatar_url: '',
    internal: false,
    mirror_interval: '',
  }
}

function push(at: string) {
  const author = { name: OWNER, email: `${OWNER}@example.com`, username: OWNER }
  const commit = {
    id: AFTER,
    message: 'Say hello\n',
    url: `${HTML}/commit/${AFTER}`,
    author,
    committer: author,
    verification: null,
    timestamp: at,
    added: [],
    removed: [],
    modified: ['README.md'],
  }
  return {
    ref: 'refs/heads/main',
    before: BEFORE,
    after: AFTER,
    compare_url: `${HTML}/compare/${BEFORE}...${AFTER}`,
    commits: [commit],
    head_commit: commit,
    repository: repository(at),
    pusher: user(at),
    sender: user(at),
  }
}

/** The fields that issues and pull requests share. */
function conversation(at: string, closed: boolean) {
  return {
    labels: [],
    milestone: null,
    assignee: null,
    assignees: null,
    state: closed ? 'closed' : 'open',
    is_locked: false,
    comments: 0,
    created_at: at,
    updated_at: at,
    closed_at: closed ? at : null,
    due_date: null,
  }
}

function issue(at: string, closed = false) {
  return {
    id: 1001,
    url: `${WEB}/api/v1/repos/${OWNER}/demo/issues/1`,
    html_url: `${HTML}/issues/1`,
    number: 1,
    user: user(at),
    original_author: '',
    original_author_id: 0,
    title: 'Say hello',
    body: 'Leave a comment here, or a reaction.',
    ref: '',
    ...conversation(at, closed),
    pull_request: null,
    repository: { id: 101, name: 'demo', owner: OWNER, full_name: `${OWNER}/demo` },
  }
}

function repositoryEvent(action: string): Template {
  return ({ at }) => ({ action, repository: repository(at), organization: user(at), sender: user(at) })
}

function wiki(action: string): Template {
  return ({ at }) => ({ action, ...context(at), page: 'Home', comment: 'Say hello' })
}

function issues(action: string): Template {
  return ({ at }) => ({ action, number: 1, issue: issue(at, action === 'closed'), ...context(at) })
}

function issueComment(action: string, more: object = {}): Template {
  return ({ at }) => {
    const comment = {
      id: 5001,
      html_url: `${HTML}/issues/1#issuecomment-5001`,
      pull_request_url: '',
      issue_url: `${HTML}/issues/1`,
      user: user(at),
      original_author: '',
      original_author_id: 0,
      body: 'Hello from relay',
      created_at: at,
      updated_at: at,
    }
    return { action, issue: issue(at), comment, ...more, ...context(at), is_pull: false }
  }
}

function pullRequest(action: string): Template {
  return ({ at }) => {
    const branch = (ref: string, sha: string) => ({
      label: ref,
      ref,
      sha,
      repo_id: 101,
      repo: repository(at),
    })
    const { created_at, updated_at, closed_at, due_date, ...state } = conversation(at, action === 'closed')
    const pull = {
      id: 2002,
      url: `${HTML}/pulls/2`,
      number: 2,
      user: user(at),
      title: 'Add a greeting',
      body: 'This pull request can be merged.',
      ...state,
      html_url: `${HTML}/pulls/2`,
      diff_url: `${HTML}/pulls/2.diff`,
      patch_url: `${HTML}/pulls/2.patch`,
      mergeable: true,
      merged: false,
      merged_at: null,
      merge_commit_sha: null,
      merged_by: null,
      base: branch('main', BEFORE),
      head: branch('greeting', AFTER),
      merge_base: BEFORE,
      due_date,
      created_at,
      updated_at,
      closed_at,
    }
    return { action, number: 2, pull_request: pull, ...context(at), review: null }
  }
}
