import { AFTER, BEFORE, type Scene, TREE } from '../template.js'
import { nodeId } from './node-id.js'

const SUITE = 9001
const CHECK = 9002
const RUN = 9003
const WORKFLOW = 9004

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#check_run */
export function checkRun(scene: Scene) {
  const { repository } = scene.context
  const url = `${repository.url}/check-runs/${CHECK}`
  const run = {
    id: CHECK,
    node_id: nodeId('CheckRun', CHECK),
    head_sha: AFTER,
    external_id: '',
    url,
    html_url: `${repository.html_url}/runs/${CHECK}`,
    details_url: `${repository.html_url}/actions/runs/${RUN}`,
    ...succeeded(),
    started_at: scene.at,
    completed_at: scene.at,
    output: {
      title: null,
      summary: null,
      text: null,
      annotations_count: 0,
      annotations_url: `${url}/annotations`,
    },
    name: 'test',
    check_suite: suite(scene),
    app: app(scene),
    pull_requests: [],
  }
  return { action: 'completed', check_run: run, ...scene.context }
}

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#check_suite */
export function checkSuite(scene: Scene) {
  const resource = suite(scene)
  const more = {
    latest_check_runs_count: 1,
    check_runs_url: `${resource.url}/check-runs`,
    head_commit: headCommit(scene),
  }
  return { action: 'completed', check_suite: { ...resource, ...more }, ...scene.context }
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
    check_suite_url: suite(scene).url,
    artifacts_url: `${url}/artifacts`,
    cancel_url: `${url}/cancel`,
    rerun_url: `${url}/rerun`,
    previous_attempt_url: null,
    workflow_url: `${repository.url}/actions/workflows/${WORKFLOW}`,
    head_commit: headCommit(scene),
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

function suite(scene: Scene) {
  return {
    id: SUITE,
    node_id: nodeId('CheckSuite', SUITE),
    head_branch: 'main',
    head_sha: AFTER,
    ...succeeded(),
    url: `${scene.context.repository.url}/check-suites/${SUITE}`,
    before: BEFORE,
    after: AFTER,
    pull_requests: [],
    app: app(scene),
    created_at: scene.at,
    updated_at: scene.at,
  }
}

function succeeded() {
  return { status: 'completed', conclusion: 'success' }
}

function app({ context }: Scene) {
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

function headCommit({ at, context: { sender } }: Scene) {
  const author = { name: sender.login, email: `${sender.login}@example.com` }
  return { id: AFTER, tree_id: TREE, message: 'Say hello', timestamp: at, author, committer: author }
}
