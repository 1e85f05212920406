import { AFTER, BEFORE, type Scene, type SceneContext, TREE } from '../template.js'
import { nodeId } from './node-id.js'

const SUITE = 9001
const CHECK = 9002
const RUN = 9003
const WORKFLOW = 9004

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

export const checkRun = (scene: Scene) => checkRunPayload(scene.context, checkOf(scene))
export const checkSuite = (scene: Scene) => checkSuitePayload(scene.context, checkOf(scene))

function checkOf({ at }: Scene): Check {
  return {
    suiteId: SUITE,
    runId: CHECK,
    name: 'test',
    branch: 'main',
    before: BEFORE,
    sha: AFTER,
    message: 'Say hello',
    ...succeeded(),
    startedAt: at,
    completedAt: at,
    pulls: [],
  }
}

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#check_run */
export function checkRunPayload<Context extends SceneContext>(context: Context, check: Check) {
  const run = { ...checkRunResource(context, check), check_suite: checkSuiteResource(context, check) }
  return { action: 'completed', check_run: run, ...context }
}

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#check_suite */
export function checkSuitePayload<Context extends SceneContext>(context: Context, check: Check) {
  const suite = checkSuiteResource(context, check)
  return { action: 'completed', check_suite: { ...suite, ...latestRuns(context, check) }, ...context }
}

/** Fields of a suite that its events and the REST API have, but not the runs in it. */
export function latestRuns(context: SceneContext, check: Check) {
  return {
    latest_check_runs_count: 1,
    check_runs_url: `${suiteUrl(context, check)}/check-runs`,
    head_commit: headCommit(check.startedAt, context, check),
  }
}

/** @see https://docs.github.com/rest/checks/runs#get-a-check-run */
export function checkRunResource(context: SceneContext, check: Check) {
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
    details_url: `${repository.html_url}/actions/runs/${RUN}`,
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
export function checkSuiteResource(context: SceneContext, check: Check) {
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

function pullRequests({ repository }: SceneContext, { pulls }: Check) {
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

function suiteUrl({ repository }: SceneContext, { suiteId }: Check): string {
  return `${repository.url}/check-suites/${suiteId}`
}

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#workflow_run */
export function workflowRun(scene: Scene) {
  const { repository, sender } = scene.context
  const url = `${repository.url}/actions/runs/${RUN}`
  const run = {
    id: RUN,
    name: 'CI',
    node_id: nodeId('WorkflowRun', RUN),
    head_branch: 'main',
    head_sha: AFTER,
    path: PATH,
    display_title: 'Say hello',
    run_number: 1,
    event: 'push',
    ...succeeded(),
    workflow_id: WORKFLOW,
    check_suite_id: SUITE,
    check_suite_node_id: nodeId('CheckSuite', SUITE),
    url,
    html_url: `${repository.html_url}/actions/runs/${RUN}`,
    pull_requests: [],
    created_at: scene.at,
    updated_at: scene.at,
    actor: sender,
    run_attempt: 1,
    run_started_at: scene.at,
    triggering_actor: sender,
    jobs_url: `${url}/jobs`,
    logs_url: `${url}/logs`,
    check_suite_url: suiteUrl(scene.context, checkOf(scene)),
    artifacts_url: `${url}/artifacts`,
    cancel_url: `${url}/cancel`,
    rerun_url: `${url}/rerun`,
    previous_attempt_url: null,
    workflow_url: `${repository.url}/actions/workflows/${WORKFLOW}`,
    head_commit: headCommit(scene.at, scene.context, checkOf(scene)),
    repository,
    head_repository: repository,
  }
  return { action: 'completed', workflow_run: run, workflow: workflow(scene), ...scene.context }
}

const PATH = '.github/workflows/ci.yml'

function workflow({ at, context: { repository } }: Scene) {
  return {
    id: WORKFLOW,
    node_id: nodeId('Workflow', WORKFLOW),
    name: 'CI',
    path: PATH,
    state: 'active',
    created_at: at,
    updated_at: at,
    url: `${repository.url}/actions/workflows/${WORKFLOW}`,
    html_url: `${repository.html_url}/blob/main/${PATH}`,
    badge_url: `${repository.html_url}/workflows/CI/badge.svg`,
  }
}

function succeeded() {
  return { status: 'completed', conclusion: 'success' } as const
}

function app(context: SceneContext) {
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

function headCommit(at: string, { sender }: SceneContext, { sha, message }: Check) {
  const author = { name: sender.login, email: `${sender.login}@example.com` }
  return { id: sha, tree_id: TREE, message, timestamp: at, author, committer: author }
}
