import { nodeId } from './node-id.js'

/** Made-up hash of a commit's tree. */
export const TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

/** Whose run the checks claim to be. */
const WORKFLOW_RUN = 9003

/** What the checks of a repository refer to. */
export interface CheckContext {
  readonly repository: {
    readonly id: number
    readonly full_name: string
    readonly url: string
    readonly html_url: string
  }
  readonly sender: { readonly login: string }
}

/** A pull request that the checked commit is the head of. */
export interface CheckedPull {
  readonly id: number
  readonly number: number
  readonly head: { readonly ref: string; readonly sha: string }
  readonly base: { readonly ref: string; readonly sha: string }
}

/** A suite of one check run on a commit. Times are UTC, to the second. */
export interface Check {
  readonly suiteId: number
  readonly runId: number
  readonly name: string
  readonly branch: string
  readonly before: string
  readonly sha: string
  readonly message: string
  readonly status: 'in_progress' | 'completed'
  readonly conclusion: 'success' | 'failure' | null
  readonly startedAt: string
  readonly completedAt: string | null
  /** The open ones from a branch of the same repository. */
  readonly pulls: readonly CheckedPull[]
}

/** Fields of a suite that its events and the REST API have, but not the runs in it. */
export function latestRuns(context: CheckContext, check: Check) {
  return {
    latest_check_runs_count: 1,
    check_runs_url: `${suiteUrl(context, check)}/check-runs`,
    head_commit: headCommit(check.startedAt, context, check),
  }
}

/** @see https://docs.github.com/rest/checks/runs#get-a-check-run */
export function checkRunResource(context: CheckContext, check: Check) {
  const { repository } = context
  const { runId: id, suiteId } = check
  const url = `${repository.url}/check-runs/${id}`
  return {
    id,
    node_id: nodeId('CheckRun', id),
    head_sha: check.sha,
    external_id: '',
    url,
    html_url: `${repository.html_url}/runs/${id}`,
    details_url: `${repository.html_url}/actions/runs/${WORKFLOW_RUN}`,
    status: check.status,
    conclusion: check.conclusion,
    started_at: check.startedAt,
    completed_at: check.completedAt,
    output: {
      title: null,
      summary: null,
      text: null,
      annotations_count: 0,
      annotations_url: `${url}/annotations`,
    },
    name: check.name,
    check_suite: { id: suiteId },
    app: app(context),
    pull_requests: pullRequests(context, check),
  }
}

/** @see https://docs.github.com/rest/checks/suites#get-a-check-suite */
export function checkSuiteResource(context: CheckContext, check: Check) {
  return {
    id: check.suiteId,
    node_id: nodeId('CheckSuite', check.suiteId),
    head_branch: check.branch,
    head_sha: check.sha,
    status: check.status,
    conclusion: check.conclusion,
    url: suiteUrl(context, check),
    before: check.before,
    after: check.sha,
    pull_requests: pullRequests(context, check),
    app: app(context),
    created_at: check.startedAt,
    updated_at: check.completedAt ?? check.startedAt,
  }
}

function pullRequests({ repository }: CheckContext, { pulls }: Check) {
  const [, name] = repository.full_name.split('/')
  const repo = { id: repository.id, url: repository.url, name }
  return pulls.map(({ id, number, head, base }) => ({
    url: `${repository.url}/pulls/${number}`,
    id,
    number,
    head: { ref: head.ref, sha: head.sha, repo },
    base: { ref: base.ref, sha: base.sha, repo },
  }))
}

function suiteUrl({ repository }: CheckContext, { suiteId }: Check): string {
  return `${repository.url}/check-suites/${suiteId}`
}

function app(context: CheckContext) {
  return {
    id: 15368,
    slug: 'github-actions',
    node_id: nodeId('App', 15368),
    owner: context.sender,
    name: 'GitHub Actions',
    description: 'Automate your workflow from idea to production',
    external_url: 'https://help.github.com/en/actions',
    html_url: 'https://github.com/apps/github-actions',
    created_at: '2018-07-30T09:30:17Z',
    updated_at: '2019-12-10T19:04:12Z',
    permissions: PERMISSIONS,
    events: ['check_run', 'check_suite', 'push', 'workflow_run'],
  }
}

const PERMISSIONS = {
  actions: 'write',
  checks: 'write',
  contents: 'write',
  deployments: 'write',
  issues: 'write',
  members: 'read',
  metadata: 'read',
  packages: 'write',
  pages: 'write',
  pull_requests: 'write',
  repository_hooks: 'write',
  repository_projects: 'write',
  security_events: 'write',
  statuses: 'write',
  vulnerability_alerts: 'read',
}

function headCommit(at: string, { sender }: CheckContext, { sha, message }: Check) {
  const author = { name: sender.login, email: `${sender.login}@example.com` }
  return { id: sha, tree_id: TREE, message, timestamp: at, author, committer: author }
}
