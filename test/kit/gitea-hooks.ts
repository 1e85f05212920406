import { randomUUID } from 'node:crypto'
import { sign } from './delivery.js'
import type { FullReply, Received } from './receiver.js'

/** A webhook as Gitea stores it. */
export interface FakeHook {
  readonly id: number
  readonly type: string
  readonly url: string
  readonly contentType: string
  readonly secret: string
  readonly events: readonly string[]
  readonly branchFilter: string
  readonly authorization: string
  readonly active: boolean
}

/** The webhooks of `octo/demo`, and who asks for them. */
export interface HooksState {
  readonly all: FakeHook[]
  /** `admin` of the repository, `reader` of it, or a `stranger` to whom a private repository does not exist. */
  role: 'admin' | 'reader' | 'stranger'
  /** Whether the token has the scope `write:repository`. */
  scoped: boolean
  /** Whether the repository has a commit; its branch is `main`. */
  hasCommit: boolean
  /** Answers that come instead of the next ones; undefined leaves one as it is. */
  readonly faults: (FullReply | undefined)[]
  /** Status of the answer to each webhook that was sent; 0 for none. */
  readonly sent: Promise<number>[]
  /** Ids of the webhooks that have a delivery waiting, in order, one for each. */
  queue: number[]
}

export function hooksState(): HooksState {
  return { all: [], role: 'admin', scoped: true, hasCommit: true, faults: [], sent: [], queue: [] }
}

/** Somebody pushes to the branch `main`: PrepareWebhooks queues a delivery for each webhook that wants it. */
export function push({ all, queue }: HooksState): void {
  for (const hook of all) if (wantsPush(hook)) queue.push(hook.id)
}

/**
 * Sends what is queued, one after the other, and resolves to the statuses of the answers. What a removed webhook had queued was
 * removed with it (models/webhook/webhook.go DeleteWebhookByRepoID), and nothing is sent for an inactive one. The events are not
 * looked at again (services/webhook/deliver.go Deliver of 05a2257af2f29077a2c0374111aa12becf7f6083, and the check of IsActive since).
 */
export async function sendQueued(state: HooksState): Promise<number[]> {
  const statuses: number[] = []
  for (const id of state.queue.splice(0)) {
    const hook = state.all.find((each) => each.id === id)
    if (hook?.active) statuses.push(await deliver(hook))
  }
  return statuses
}

/** Most items of a page, and how many there are unless a `limit` is given (MAX_RESPONSE_ITEMS, DEFAULT_PAGING_NUM). */
const MAX_ITEMS = 50
const DEFAULT_ITEMS = 30
/** Names that stand for several (`issuesHook` and `pullHook` of the source). */
const PULL_EVENTS = 'assign label milestone comment review review_request sync'
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  issues: ['issues', 'issue_assign', 'issue_label', 'issue_milestone', 'issue_comment'],
  pull_request: ['pull_request', ...PULL_EVENTS.split(' ').map((name) => `pull_request_${name}`)],
}
const SINGLE =
  'create delete fork push issue_comment wiki repository release package status workflow_job'.split(' ')

/** An error as most of Gitea's API answers it. */
export function refused(status: number, message: string): FullReply {
  return { status, body: { message, url: 'https://x/api/swagger' } }
}

export const notFound: FullReply = {
  status: 404,
  body: { errors: [], message: "The target couldn't be found.", url: 'https://x/api/swagger' },
}

/**
 * Answers a request about the webhooks of `octo/demo`, as Gitea does: one with the address of another is no error, PATCH keeps
 * the secret whatever it says and without `events` leaves `push` alone, an answer names no secret, there is no delivery log, and
 * a test is a `push` that only a hook with that event and branch gets.
 *
 * @see https://github.com/go-gitea/gitea/blob/3e4d1edd26f12815ae2eaede8003613737472260/routers/api/v1/utils/hook.go addHook, editHook
 * @see https://github.com/go-gitea/gitea/blob/ae5e14c08170278b9cffb1a3642b8ccf19c89599/routers/api/v1/repo/hook.go TestHook
 * @see https://github.com/go-gitea/gitea/blob/006efa32724089a0ce4ae0a01077d474bb9c7522/models/webhook/webhook.go CreateWebhook
 * @see https://github.com/go-gitea/gitea/blob/0209e96c2fe84f89396ecfecce8fc9999a370a22/services/webhook/general.go ToHook
 * @see https://github.com/go-gitea/gitea/blob/main/routers/api/v1/api.go reqAdmin, tokenRequiresScopes
 */
export function answerHooks(state: HooksState, request: Received, path: string): FullReply {
  const fault = state.faults.shift()
  if (fault) return fault
  if (!state.scoped)
    return refused(403, 'token does not have at least one of required scope(s): [write:repository]')
  if (state.role === 'stranger') return notFound
  if (state.role === 'reader')
    return refused(403, 'user should be an owner or a collaborator with admin write of a repository')
  const [, id, verb = ''] = /^\/hooks(?:\/(\d+)(\/tests)?)?$/.exec(path) ?? []
  const hook = state.all.find((each) => each.id === Number(id))
  const what = `${request.method} ${id === undefined ? '' : 'id'}${verb}`
  if (what === 'GET ') return list(state, new URL(request.path, 'http://x').searchParams)
  if (what === 'POST ') return create(state, JSON.parse(request.body.toString()))
  if (what === 'POST id/tests' && !state.hasCommit) return { status: 204 }
  if (!hook) return notFound
  if (what === 'GET id') return { body: show(hook) }
  if (what === 'PATCH id') return edit(state, hook, JSON.parse(request.body.toString()))
  if (what === 'POST id/tests') return test(state, hook)
  if (what !== 'DELETE id') return notFound
  state.all.splice(state.all.indexOf(hook), 1)
  state.queue = state.queue.filter((each) => each !== hook.id)
  return { status: 204 }
}

function list({ all }: HooksState, query: URLSearchParams): FullReply {
  const limit = Math.min(Number(query.get('limit') ?? DEFAULT_ITEMS), MAX_ITEMS)
  const from = (Number(query.get('page') ?? 1) - 1) * limit
  const headers = { 'x-total-count': String(all.length) }
  return { headers, body: all.slice(from, from + limit).map(show) }
}

/** ToHook: no secret, and the last answer is on the web page alone. */
function show({ id, type, url, contentType, events, branchFilter, authorization, active }: FakeHook) {
  return {
    id,
    type,
    branch_filter: branchFilter,
    config: { content_type: contentType, url },
    events,
    authorization_header: authorization,
    active,
    updated_at: '2026-11-20T10:00:00Z',
    created_at: '2026-11-20T10:00:00Z',
  }
}

interface HookOption {
  readonly type?: string
  readonly config?: Readonly<Record<string, string>>
  readonly events?: readonly string[]
  readonly branch_filter?: string
  readonly authorization_header?: string
  readonly active?: boolean
}

function create(state: HooksState, { type = '', config = {}, ...option }: HookOption): FullReply {
  const { url = '', content_type: contentType = '', secret = '' } = config
  const id = Math.max(0, ...state.all.map((hook) => hook.id)) + 1
  const common = { ...chosen(option), active: option.active ?? false }
  const hook: FakeHook = { id, type, url, contentType, secret, ...common }
  state.all.push(hook)
  return { status: 201, body: show(hook) }
}

function edit(state: HooksState, hook: FakeHook, { config = {}, ...option }: HookOption): FullReply {
  const { url = hook.url, content_type: contentType = hook.contentType } = config
  const changed = { ...hook, url, contentType, ...chosen(option), active: option.active ?? hook.active }
  state.all.splice(state.all.indexOf(hook), 1, changed)
  return { body: show(changed) }
}

function chosen({ events = [], branch_filter = '', authorization_header = '' }: HookOption) {
  const named = events.length === 0 ? ['push'] : events
  const groups = Object.entries(GROUPS).flatMap(([name, all]) => (named.includes(name) ? all : []))
  const known = [...new Set([...SINGLE.filter((name) => named.includes(name)), ...groups])]
  // Go's order of a map's keys is random.
  return {
    events: known.toSorted(() => Math.random() - 0.5),
    branchFilter: branch_filter,
    authorization: authorization_header,
  }
}

/** PrepareWebhook leaves out what the hook has not asked for; the answer is the same. */
function test(state: HooksState, hook: FakeHook): FullReply {
  if (wantsPush(hook)) state.sent.push(deliver(hook))
  return { status: 204 }
}

function wantsPush({ active, events, branchFilter }: FakeHook): boolean {
  return active && events.includes('push') && ['', '*', '**', 'main'].includes(branchFilter)
}

/** Deliver (services/webhook/deliver.go): indented by two spaces, signed with SHA-256 in hex; nothing is tried again. */
async function deliver({ url, secret, authorization }: FakeHook): Promise<number> {
  const commit = 'a'.repeat(40)
  const sender = { id: 1, login: 'mona', full_name: '', email: 'mona@example.org', username: 'mona' }
  const repository = { id: 1, owner: { ...sender, login: 'octo' }, name: 'demo', full_name: 'octo/demo' }
  const head = { id: commit, message: 'A commit\n', url: 'https://x/octo/demo/commit/a' }
  const refs = { ref: 'refs/heads/main', before: commit, after: commit, compare_url: '' }
  const payload = { ...refs, commits: [head], total_commits: 1, head_commit: head }
  const body = JSON.stringify({ ...payload, repository, pusher: sender, sender }, null, 2)
  const signature = secret === '' ? '' : sign(secret, body).replace('sha256=', '')
  const uuid = randomUUID()
  const headers = {
    'content-type': 'application/json',
    'x-gitea-delivery': uuid,
    'x-gitea-event': 'push',
    'x-gitea-event-type': 'push',
    'x-gitea-signature': signature,
    'x-hub-signature-256': `sha256=${signature}`,
    'x-github-delivery': uuid,
    'x-github-event': 'push',
    ...(authorization !== '' && { authorization }),
  }
  try {
    return (await fetch(url, { method: 'POST', headers, body })).status
  } catch {
    return 0
  }
}
