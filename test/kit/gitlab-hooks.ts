import { createHmac, randomUUID } from 'node:crypto'
import { apiError, type GitLabCall, paged } from './gitlab-parts.js'
import type { FullReply } from './receiver.js'

/** A webhook as GitLab stores it. */
export interface GitLabHook {
  readonly id: number
  url: string
  token: string
  signingToken: string
  customHeaders: Record<string, string>
  /** Its switches: `push_events`. */
  readonly events: Record<string, boolean>
  /** Failures in a row, and until when GitLab pauses it for them, in milliseconds (app/models/concerns/web_hooks/auto_disabling.rb). */
  recentFailures: number
  disabledUntil: number | null
}

/** An entry of `hooks/:id/events`. */
export interface GitLabHookEvent {
  readonly id: number
  readonly hookId: number
  readonly url: string
  readonly trigger: string
  readonly key: string
  readonly data: object
  readonly status: string
  readonly createdAt: string
}

/** @param version whether it has signing tokens, which are of 19.0, and all of its events */
export function gitlabHooksState(version: string) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return {
    hasSigning: major >= 19,
    /** Its switches: that of deploy tokens is of 18.10 (AddResourceDeployTokenEventsToWebHooks in db/migrate). */
    switches: Object.values(TRIGGERS).filter(
      (name) => name !== 'resource_deploy_token_events' || major > 18 || (major === 18 && minor >= 10),
    ),
    /** Of the feature flag `webhook_signing_token`. In 19.0, administrators can have it off: the parameter is then ignored. */
    signs: true,
    /** Whether an empty signing token is refused: the source of 19.x was not read. */
    keepsSigning: false,
    /** Of the feature flag `auto_disabling_web_hooks`. */
    pauses: true,
    all: [] as GitLabHook[],
    log: [] as GitLabHookEvent[],
    /** Whether the project has a commit. */
    hasCommit: true,
    /** Users below Maintainer: `authorize! :admin_web_hook` fails. */
    notMaintainers: new Set<string>(['guest']),
    /** When somebody asked for a repetition, and for a test: of the project's hooks, and of one user. */
    resent: [] as number[],
    tested: [] as number[],
    lastId: 0,
  }
}

export type GitLabHooksState = ReturnType<typeof gitlabHooksState>
type State = GitLabHooksState

/** ProjectHook.triggers (app/models/hooks/project_hook.rb, app/models/concerns/triggerable_hooks.rb). */
const TRIGGERS: Readonly<Record<string, string>> = {
  push_hooks: 'push_events',
  tag_push_hooks: 'tag_push_events',
  issue_hooks: 'issues_events',
  confidential_issue_hooks: 'confidential_issues_events',
  note_hooks: 'note_events',
  confidential_note_hooks: 'confidential_note_events',
  merge_request_hooks: 'merge_requests_events',
  job_hooks: 'job_events',
  pipeline_hooks: 'pipeline_events',
  wiki_page_hooks: 'wiki_page_events',
  deployment_hooks: 'deployment_events',
  feature_flag_hooks: 'feature_flag_events',
  release_hooks: 'releases_events',
  milestone_hooks: 'milestone_events',
  emoji_hooks: 'emoji_events',
  resource_access_token_hooks: 'resource_access_token_events',
  resource_deploy_token_hooks: 'resource_deploy_token_events',
  vulnerability_hooks: 'vulnerability_events',
}

/** `hook_to_event` of app/services/web_hook_service.rb: `merge_request_hooks` is `Merge Request Hook`. */
function eventOf(trigger: string): string {
  const words = trigger.replace(/s$/, '').split('_')
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ')
}

/**
 * Answers requests about the webhooks of the project. Undefined for another.
 *
 * lib/api/project_hooks.rb, lib/api/helpers/web_hooks_helpers.rb of 1b9e60e8b7ab, lib/api/hooks/events.rb of e480ec634927,
 * lib/api/hooks/resend_hook.rb and lib/api/hooks/trigger_test.rb of 0a3208dc4813.
 */
export async function answerGitLabHooks(state: State, call: GitLabCall): Promise<FullReply | undefined> {
  const hooks = state
  const { path, request, token, body } = call
  if (!/^\/hooks(?:\/|$)/.test(path)) return undefined
  if (hooks.notMaintainers.has(token.username)) return apiError(403, '403 Forbidden')
  const [, id, rest = ''] = /^\/hooks(?:\/(\d+)(\/.*)?)?$/.exec(path) ?? []
  const what = `${request.method} ${rest}`
  if (id === undefined) {
    if (request.method === 'GET')
      return paged(hooks.all, call, (hook) => ({ ...show(state, hook), custom_headers: undefined }))
    if (request.method !== 'POST') return apiError(405, '405 Method Not Allowed')
    return create(state, body)
  }
  const hook = hooks.all.find((each) => each.id === Number(id))
  if (!hook) return apiError(404, '404 Not found')
  if (what === 'GET ') return { body: show(state, hook) }
  if (what === 'PUT ') return change(state, hook, body)
  if (what === 'DELETE ') {
    hooks.all.splice(hooks.all.indexOf(hook), 1)
    return { status: 204 }
  }
  if (what === 'GET /events') return listEvents(hooks, hook, call)
  const [, trigger] = /^\/test\/(\w+)$/.exec(rest) ?? []
  if (request.method === 'POST' && trigger !== undefined) return test(state, hook, trigger)
  const [, eventId] = /^\/events\/(\d+)\/resend$/.exec(rest) ?? []
  if (request.method === 'POST' && eventId !== undefined) return resend(state, hook, Number(eventId))
  return apiError(404, '404 Not Found')
}

/** lib/api/entities/hook.rb, project_hook.rb: no secret is shown, since 19.0 whether there is one. */
function show(state: State, { id, url, events, ...hook }: GitLabHook) {
  return {
    id,
    url,
    name: null,
    description: null,
    created_at: '2026-11-01T00:00:00.000Z',
    project_id: 7,
    ...events,
    enable_ssl_verification: true,
    push_events_branch_filter: null,
    branch_filter_strategy: 'wildcard',
    alert_status: alertStatus(state, hook),
    disabled_until: hook.disabledUntil === null ? null : new Date(hook.disabledUntil).toISOString(),
    url_variables: [],
    custom_webhook_template: null,
    custom_headers: Object.keys(hook.customHeaders).map((key) => ({ key })),
    ...(state.hasSigning && {
      token_present: hook.token !== '',
      signing_token_present: hook.signingToken !== '',
    }),
  }
}

function create(state: State, body: GitLabCall['body']): FullReply {
  const hooks = state
  if (typeof body['url'] !== 'string') return { status: 400, body: { error: 'url is missing' } }
  // Pushes are sent by default (db/structure.sql).
  const events = Object.fromEntries(hooks.switches.map((name) => [name, name === 'push_events']))
  const hook: GitLabHook = {
    id: ++hooks.lastId,
    url: body['url'],
    token: '',
    signingToken: '',
    customHeaders: {},
    events,
    recentFailures: 0,
    disabledUntil: null,
  }
  const wrong = assign(state, hook, body)
  if (wrong) return wrong
  hooks.all.push(hook)
  return { status: 201, body: show(state, hook) }
}

function change(state: State, hook: GitLabHook, body: GitLabCall['body']): FullReply {
  if (Object.keys(body).length === 0) return { status: 400, body: { error: 'No parameters provided' } }
  return assign(state, hook, body) ?? { body: show(state, hook) }
}

/**
 * Parameters that an endpoint does not declare are dropped. With another address, what was not sent of token and custom headers is
 * forgotten (`reset_token`, `reset_custom_headers` in app/models/concerns/web_hooks/hook.rb of 135b9a7019dd).
 */
function assign(
  { hasSigning, signs, keepsSigning, switches }: State,
  hook: GitLabHook,
  body: GitLabCall['body'],
): FullReply | undefined {
  const { url = hook.url, token, signing_token: signing } = body
  if (typeof url !== 'string' || !/^https?:\/\/./.test(url))
    return { status: 422, body: { error: 'Invalid url given' } }
  const isKnown = hasSigning && signs && typeof signing === 'string'
  if (isKnown && (signing !== '' || keepsSigning) && !/^whsec_[A-Za-z0-9+/]{43}=$/.test(signing))
    return apiError(422, { signing_token: ['is invalid'] })
  if (url !== hook.url) Object.assign(hook, { token: '', customHeaders: {} })
  hook.url = url
  if (typeof token === 'string') hook.token = token
  if (isKnown) hook.signingToken = signing
  for (const name of switches) if (typeof body[name] === 'boolean') hook.events[name] = body[name]
  return undefined
}

/** Failures after which GitLab pauses a hook, and after which it does until a test succeeds. */
const PAUSED_AFTER = 3
const GIVEN_UP_AFTER = 39
const FIRST_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = 86_400_000

type Failing = Pick<GitLabHook, 'recentFailures' | 'disabledUntil'>

/** `alert_status` of app/models/concerns/web_hooks/auto_disabling.rb of 017a6c129d6a. */
export function alertStatus({ pauses }: State, { recentFailures, disabledUntil }: Failing): string {
  if (!pauses || recentFailures <= PAUSED_AFTER) return 'executable'
  if (recentFailures > GIVEN_UP_AFTER) return 'disabled'
  return disabledUntil !== null && disabledUntil >= Date.now() ? 'temporarily_disabled' : 'executable'
}

/** `backoff!` and `enable!` there, which app/services/web_hooks/log_execution_service.rb of 017a6c129d6a calls after each request. */
function count(state: State, hook: GitLabHook, succeeded: boolean): void {
  if (!state.pauses) return
  if (succeeded) Object.assign(hook, { recentFailures: 0, disabledUntil: null })
  else if (alertStatus(state, hook) === 'executable') {
    const pause = FIRST_PAUSE_MS * 2 ** (hook.recentFailures - PAUSED_AFTER)
    hook.recentFailures = Math.min(hook.recentFailures + 1, GIVEN_UP_AFTER + 1)
    if (hook.recentFailures > PAUSED_AFTER)
      hook.disabledUntil = Date.now() + Math.min(Math.max(pause, FIRST_PAUSE_MS), LONGEST_PAUSE_MS)
  }
}

/** lib/api/entities/web_hook_log.rb, newest first (`recent` in app/models/hooks/web_hook_log.rb). */
function listEvents({ log }: State, hook: GitLabHook, call: GitLabCall): FullReply {
  const own = log.filter(({ hookId }) => hookId === hook.id).toReversed()
  return paged(
    own,
    call,
    ({ id, url, trigger, key, data, status, createdAt }) => ({
      id,
      url,
      trigger,
      request_headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'GitLab/19.1.0',
        'Idempotency-Key': key,
        'X-Gitlab-Event': eventOf(trigger),
        ...(hook.token !== '' && { 'X-Gitlab-Token': '[REDACTED]' }),
      },
      request_data: data,
      response_headers: {},
      response_body: '',
      execution_duration: 0.1,
      response_status: status,
      created_at: createdAt,
    }),
    20,
  )
}

/** Most repetitions in a minute, and most tests (lib/gitlab/application_rate_limiter.rb of 017a6c129d6a). */
const MOST = 5

/**
 * `check_rate_limit!` with the scope `[hook.parent, current_user]`: all hooks of the project together. The answer is that of
 * lib/api/helpers/rate_limiter.rb of 0d83264a7a24: an object in `message`, and no Retry-After.
 */
function limited(asked: number[]): FullReply | undefined {
  const now = Date.now()
  asked.splice(0, asked.length, ...asked.filter((at) => now - at < 60_000))
  if (asked.length >= MOST)
    return apiError(429, { error: 'This endpoint has been requested too many times. Try again later.' })
  asked.push(now)
  return undefined
}

/**
 * app/services/test_hooks/base_service.rb of 05f0ebba3a2c, which sends also what the hook does not want, and also through one that
 * is paused (`force`). The answer comes once the receiver has answered, and its words are the receiver's.
 */
async function test(state: State, hook: GitLabHook, switched: string): Promise<FullReply> {
  const trigger = Object.entries(TRIGGERS).find(([, name]) => name === switched)?.[0]
  if (trigger === undefined) return { status: 400, body: { error: 'trigger does not have a valid value' } }
  const tooMany = limited(state.tested)
  if (tooMany) return tooMany
  if (!state.hasCommit) return apiError(422, 'Ensure the project has at least one commit.')
  const { status, says } = await deliver(state, hook, trigger, gitlabPush())
  return status.startsWith('2') ? { status: 201, body: { message: '201 Created' } } : apiError(422, says)
}

async function resend(state: State, hook: GitLabHook, id: number): Promise<FullReply> {
  const tooMany = limited(state.resent)
  if (tooMany) return tooMany
  const found = state.log.find((each) => each.id === id && each.hookId === hook.id)
  if (!found) return apiError(404, '404 Not found')
  // app/services/web_hooks/events/resend_service.rb of 4dbbab7b215a
  if (found.url !== hook.url)
    return apiError(422, 'The hook URL has changed, and this log entry cannot be retried')
  // `execute` of app/services/web_hook_service.rb of 017a6c129d6a
  if (alertStatus(state, hook) !== 'executable') return apiError(422, 'Hook disabled')
  const { status, says } = await deliver(state, hook, found.trigger, found.data, found.key)
  return /^\d+$/.test(status)
    ? { status: 201, body: { response_status: Number(status) } }
    : apiError(422, says)
}

/** Something happens in the project: the hooks that want it are sent to, and resolve to the statuses of the answers. */
export async function gitlabEvent(state: State, trigger: string, data: object): Promise<string[]> {
  const statuses: string[] = []
  for (const hook of state.all)
    if (hook.events[TRIGGERS[trigger] ?? ''] && alertStatus(state, hook) === 'executable')
      statuses.push((await deliver(state, hook, trigger, data)).status)
  return statuses
}

/** A push of one commit (lib/gitlab/data_builder/push.rb). */
export function gitlabPush(message = 'A commit\n'): object {
  const id = 'a'.repeat(40)
  const project = {
    id: 7,
    name: 'demo',
    path_with_namespace: 'group/sub/demo',
    web_url: 'http://x/group/sub/demo',
  }
  const author = { name: 'Mona', email: 'mona@example.org' }
  return {
    object_kind: 'push',
    event_name: 'push',
    before: 'd'.repeat(40),
    after: id,
    ref: 'refs/heads/main',
    checkout_sha: id,
    user_username: 'mona',
    project_id: 7,
    project,
    commits: [{ id, message, title: 'A commit', url: `http://x/group/sub/demo/-/commit/${id}`, author }],
    total_commits_count: 1,
  }
}

/** Members that are e-mail addresses are not in the log (`redact_user_emails`). */
function redacted(value: unknown): unknown {
  if (typeof value === 'string') return /^[^\s@]+@[^\s@]+$/.test(value) ? '[REDACTED]' : value
  if (Array.isArray(value)) return value.map(redacted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, redacted(each)]))
}

/**
 * `make_request`, `build_headers` of app/services/web_hook_service.rb; since 19.0 with a signature as in Standard Webhooks, whose id is the
 * Idempotency-Key. `Gitlab::Json::LimitedEncoder` writes compact JSON with Yajl.
 */
async function deliver(
  state: State,
  hook: GitLabHook,
  trigger: string,
  data: object,
  key: string = randomUUID(),
): Promise<{ readonly status: string; readonly says: string }> {
  const hooks = state
  // Yajl writes escapes in upper case.
  const body = JSON.stringify(data).replaceAll(
    /\\u[0-9a-f]{4}/g,
    (escape) => `\\u${escape.slice(2).toUpperCase()}`,
  )
  const timestamp = String(Math.floor(Date.now() / 1000))
  const secret = Buffer.from(hook.signingToken.replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', secret).update(`${key}.${timestamp}.${body}`).digest('base64')
  const signed = { 'webhook-id': key, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  const headers = {
    ...hook.customHeaders,
    'content-type': 'application/json',
    'user-agent': 'GitLab/19.1.0',
    'idempotency-key': key,
    'x-gitlab-event': eventOf(trigger),
    'x-gitlab-webhook-uuid': randomUUID(),
    'x-gitlab-instance': 'http://x',
    'x-gitlab-event-uuid': randomUUID(),
    ...(hook.token !== '' && { 'x-gitlab-token': hook.token }),
    ...(state.signs && hook.signingToken !== '' && signed),
  }
  const { status, says } = await fetch(hook.url, { method: 'POST', headers, body }).then(
    async (answer) => ({ status: String(answer.status), says: await answer.text() }),
    () => ({ status: 'internal error', says: `Failed to open TCP connection to ${new URL(hook.url).host}` }),
  )
  count(state, hook, /^[23]/.test(status))
  const entry = { id: ++hooks.lastId, hookId: hook.id, url: hook.url, trigger, key, status }
  hooks.log.push({ ...entry, data: Object(redacted(data)), createdAt: new Date().toISOString() })
  return { status, says }
}
