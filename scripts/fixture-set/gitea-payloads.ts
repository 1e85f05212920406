const URL = 'http://localhost:3000'
const SHA = 'bffeb74224043ba2feb48d137756c8a9331c449a'
const BEFORE = '28e1879d029cb852e4844d9c718537df08844e03'
const AT = '2024-05-15T15:20:18Z'
/** Everything that Go escapes and JSON.stringify does not. */
const TEXT = 'Webhooks <Yay> & more \u2028\u2029 caf\u00e9 \ud83d\ude80'

const user = (id: number, login: string) => ({
  id,
  login,
  login_name: '',
  full_name: '',
  email: `${login}@noreply.localhost`,
  avatar_url: `${URL}/avatars/${id}`,
  language: '',
  is_admin: false,
  last_login: '0001-01-01T00:00:00Z',
  created: AT,
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
  username: login,
})

const sender = user(1, 'gitea')
const repository = {
  id: 140,
  owner: sender,
  name: 'webhooks',
  full_name: 'gitea/webhooks',
  description: '',
  empty: false,
  private: false,
  fork: false,
  template: false,
  parent: null,
  mirror: false,
  size: 64,
  html_url: `${URL}/gitea/webhooks`,
  url: `${URL}/api/v1/repos/gitea/webhooks`,
  ssh_url: 'ssh://git@localhost:2222/gitea/webhooks.git',
  clone_url: `${URL}/gitea/webhooks.git`,
  website: '',
  stars_count: 0,
  forks_count: 1,
  watchers_count: 1,
  open_issues_count: 7,
  default_branch: 'main',
  archived: false,
  created_at: AT,
  updated_at: AT,
  permissions: { admin: true, push: true, pull: true },
}

const issue = {
  id: 11,
  url: `${URL}/api/v1/repos/gitea/webhooks/issues/7`,
  html_url: `${URL}/gitea/webhooks/issues/7`,
  number: 7,
  user: sender,
  original_author: '',
  original_author_id: 0,
  title: TEXT,
  body: 'if (a < b && b > c) {}',
  ref: '',
  labels: [],
  milestone: null,
  assignee: null,
  assignees: null,
  state: 'open',
  is_locked: false,
  comments: 0,
  created_at: AT,
  updated_at: AT,
  closed_at: null,
  due_date: null,
  pull_request: null,
  repository: { id: 140, name: 'webhooks', owner: 'gitea', full_name: 'gitea/webhooks' },
}

const comment = {
  id: 23,
  html_url: `${URL}/gitea/webhooks/issues/7#issuecomment-23`,
  pull_request_url: '',
  issue_url: `${URL}/gitea/webhooks/issues/7`,
  user: sender,
  original_author: '',
  original_author_id: 0,
  body: TEXT,
  created_at: AT,
  updated_at: AT,
}

const branch = (ref: string, sha: string) => ({ label: ref, ref, sha, repo_id: 140, repo: repository })

const pullRequest = {
  id: 12,
  url: `${URL}/gitea/webhooks/pulls/8`,
  number: 8,
  user: sender,
  title: TEXT,
  body: '',
  labels: [],
  milestone: null,
  assignee: null,
  assignees: null,
  requested_reviewers: null,
  state: 'open',
  is_locked: false,
  comments: 0,
  html_url: `${URL}/gitea/webhooks/pulls/8`,
  diff_url: `${URL}/gitea/webhooks/pulls/8.diff`,
  patch_url: `${URL}/gitea/webhooks/pulls/8.patch`,
  mergeable: true,
  merged: false,
  merged_at: null,
  merge_commit_sha: null,
  merged_by: null,
  allow_maintainer_edit: false,
  base: branch('main', BEFORE),
  head: branch('topic', SHA),
  merge_base: BEFORE,
  due_date: null,
  created_at: AT,
  updated_at: AT,
  closed_at: null,
}

const commit = {
  id: SHA,
  message: `${TEXT}\n`,
  url: `${URL}/gitea/webhooks/commit/${SHA}`,
  author: { name: 'Gitea', email: 'someone@gitea.io', username: 'gitea' },
  committer: { name: 'Gitea', email: 'someone@gitea.io', username: 'gitea' },
  verification: null,
  timestamp: AT,
  added: [],
  removed: [],
  modified: ['README.md'],
}

const merged = { state: 'closed', merged: true, merged_at: AT, merge_commit_sha: SHA, merged_by: sender }
const common = { repository, sender }
const issues = { number: 7, issue, ...common, commit_id: '' }
const pull = {
  number: 8,
  pull_request: pullRequest,
  requested_reviewer: null,
  ...common,
  commit_id: '',
  review: null,
}

/** What Gitea 1.22 sends, by event and action. */
export const GITEA_PAYLOADS = {
  push: {
    ref: 'refs/heads/main',
    before: BEFORE,
    after: SHA,
    compare_url: `${URL}/gitea/webhooks/compare/${BEFORE}...${SHA}`,
    commits: [commit],
    total_commits: 1,
    head_commit: commit,
    repository,
    pusher: sender,
    sender,
  },
  'issues.opened': { action: 'opened', ...issues },
  'issues.closed': { action: 'closed', ...issues, issue: { ...issue, state: 'closed', closed_at: AT } },
  'issue_comment.created': { action: 'created', issue, comment, ...common, is_pull: false },
  'pull_request.opened': { action: 'opened', ...pull },
  'pull_request.synchronized': { action: 'synchronized', ...pull },
  'pull_request.closed': {
    action: 'closed',
    ...pull,
    pull_request: { ...pullRequest, ...merged, closed_at: AT },
  },
}
