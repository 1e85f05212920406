import { z } from 'zod/mini'
import { RelayError } from '../../base/errors.js'
import { GITLAB_WEBHOOK } from '../../senders/gitlab.js'
import { memberOf } from '../../json/parse.js'
import type * as host from '../host.js'
import { Refusal } from '../refusal.js'
import { apiPath, nextLink, type RestClient } from '../rest.js'

/** GitLab's largest page of hooks. */
const LARGE_PAGE = '100'
/** Largest page of events (lib/api/hooks/events.rb). */
const LOG_PAGE = '20'

const hookPath = (repo: host.Repo, id: number): string => `${hooksPath(repo)}/${id}`
const hooksPath = ({ owner, repo }: host.Repo): string => apiPath`/projects/${`${owner}/${repo}`}/hooks`

/**
 * Names of the switches that make a hook send the events, where they are not `<event>_events`
 * (app/models/concerns/triggerable_hooks.rb).
 */
const SWITCHES: ReadonlyMap<string, string> = new Map([
  ['confidential_issue', 'confidential_issues'],
  ['issue', 'issues'],
  ['merge_request', 'merge_requests'],
  ['release', 'releases'],
])
/** Events of hooks of projects. */
export const HOOK_EVENTS: readonly string[] = [...GITLAB_WEBHOOK.events].flatMap(([name, { actions }]) =>
  actions ? [name] : [],
)
const switchOf = (event: string): string => `${SWITCHES.get(event) ?? event}_events`

/**
 * States of a hook through which GitLab sends nothing: after four failures in a row for a while, which grows from a minute to a
 * day, and after forty until a test succeeds (app/models/concerns/web_hooks/auto_disabling.rb).
 */
const PAUSES: ReadonlySet<string> = new Set(['temporarily_disabled', 'disabled'])

const shown = z.pipe(
  z.looseObject({
    id: z.int(),
    url: z.string(),
    alert_status: z._default(z.string(), 'executable'),
    disabled_until: z.nullish(z.string()),
    token_present: z.optional(z.boolean()),
    signing_token_present: z.optional(z.boolean()),
    // Their values are not shown.
    custom_headers: z.catch(z.array(z.object({ key: z.string() })), []),
  }),
  z.transform((hook) => ({
    id: hook.id,
    url: hook.url,
    active: !PAUSES.has(hook.alert_status),
    paused: pauseOf(hook),
    contentType: 'json',
    events: HOOK_EVENTS.filter((event) => hook[switchOf(event)] === true),
    hasSecret:
      hook.token_present === undefined
        ? undefined
        : hook.token_present || hook.signing_token_present === true,
    isSigned: hook.signing_token_present === true,
    customHeaders: hook.custom_headers.map(({ key }) => key),
    lastResponse: undefined,
  })),
)

type ShownHook = z.infer<typeof shown>

/** https://docs.gitlab.com/api/project_webhooks/, lib/api/project_hooks.rb */
export function gitlabHooks(rest: RestClient): host.RepoHooks {
  const list: host.RepoHooks['list'] = (repo) =>
    rest.all(hooksPath(repo), z.array(shown), { per_page: LARGE_PAGE })
  return {
    list,
    async create(repo, settings) {
      const call = { body: bodyOf(settings), answer: shown }
      const { value } = await rest.call('POST', hooksPath(repo), call)
      await requireSigned(value, settings, () => rest.call('DELETE', `${hooksPath(repo)}/${value.id}`))
      return value
    },
    /**
     * PUT changes only the fields that it is sent; the secret can be changed in place. With another address, GitLab forgets the custom headers and the
     * secret that is not sent (`reset_token`, `reset_custom_headers` in app/models/concerns/web_hooks/hook.rb). A paused hook stays
     * paused until a test succeeds. Its custom headers stay; a new hook would not have them.
     */
    async change(repo, id, settings) {
      const where = hookPath(repo, id)
      const { value: before } = await rest.call('GET', where, { answer: shown })
      const { value: changed } = await rest.call('PUT', where, { body: bodyOf(settings), answer: shown })
      await requireSigned(changed, settings)
      const isOver = changed.isSigned && !isSigningToken(settings.secret.reveal())
      const value = isOver ? await withoutSigning(rest, where, changed) : changed
      const now = value.paused ? await wake(rest, where).then(({ after }) => after) : value
      const gone = before.customHeaders.filter((name) => !now.customHeaders.includes(name))
      const todo = [
        ...(gone.length > 0 ? [`its custom headers ${gone.join(', ')} have to be entered again there`] : []),
        ...(isOver && now.isSigned ? ['its signing token has to be removed there'] : []),
      ]
      return todo.length > 0 ? { ...now, lost: todo.join(', ') } : now
    },
    async remove(repo, id) {
      await rest.call('DELETE', hookPath(repo, id))
    },
    test: (repo, id) => test(rest, hookPath(repo, id)),
    log: (repo, id) => deliveryLog(rest, hookPath(repo, id)),
  }
}

/**
 * Sends a `push` of the last commits, whatever events the hook gets, and answers once relay has answered. 422 has the reason if
 * there are no commits, or the receiver's answer if that was no success (lib/api/hooks/trigger_test.rb). A success ends a pause.
 */
async function test(rest: RestClient, where: string): Promise<void> {
  await rest.call('POST', `${where}/test/push_events`)
}

/** Tests a paused hook, so that GitLab sends through it again. `error` says why the test failed. */
async function wake(
  rest: RestClient,
  where: string,
): Promise<{ readonly after: ShownHook; readonly error: RelayError | undefined }> {
  const error = await test(rest, where).then(() => undefined, failureOf)
  const { value: after } = await rest.call('GET', where, { answer: shown })
  return { after, error }
}

/** Also a test that GitLab did not answer leaves the hook as it is. */
function failureOf(error: unknown): RelayError {
  if (error instanceof RelayError && error.kind !== 'cancelled') return error
  throw error
}

/** A disabled hook keeps the time of its last pause, which then means nothing. */
function pauseOf({
  alert_status: status,
  disabled_until: end,
}: {
  readonly alert_status: string
  readonly disabled_until?: string | null | undefined
}): host.HookPause | undefined {
  if (!PAUSES.has(status)) return undefined
  const at = status === 'disabled' ? NaN : Date.parse(end ?? '')
  return { until: Number.isNaN(at) ? undefined : at }
}

/** True for a signing token: `whsec_` and 32 bytes as base64 (https://docs.gitlab.com/user/project/integrations/webhooks/). */
function isSigningToken(secret: string): boolean {
  return secret.startsWith('whsec_')
}

/** All switches are sent, since a new hook sends pushes by default, and a changed one leaves the others alone. */
function bodyOf({ url, secret, events = HOOK_EVENTS }: host.HookSettings): object {
  const text = secret.reveal()
  return {
    url,
    enable_ssl_verification: url.startsWith('https:'),
    // A signing token replaces a secret token.
    ...(isSigningToken(text) ? { signing_token: text, token: '' } : { token: text }),
    ...Object.fromEntries(HOOK_EVENTS.map((event) => [switchOf(event), events.includes(event)])),
  }
}

/**
 * Removes a signing token that a secret token has replaced. The documentation does not say how; a hook that keeps both works,
 * too.
 */
async function withoutSigning(rest: RestClient, where: string, before: ShownHook): Promise<ShownHook> {
  const call = { body: { signing_token: '' }, answer: shown }
  const removed = await rest.call('PUT', where, call).catch((error: unknown) => {
    if (!(error instanceof Refusal && [400, 422].includes(error.providerStatus))) throw error
  })
  return removed?.value ?? before
}

/**
 * GitLab ignores a signing token before 19.0, and in 19.0 while its feature flag is off. The deliveries would prove nothing.
 * @throws RelayError `unprocessable`
 */
async function requireSigned(
  { isSigned }: ShownHook,
  { secret }: host.HookSettings,
  undo?: () => Promise<unknown>,
): Promise<void> {
  if (!isSigningToken(secret.reveal()) || isSigned) return
  await undo?.()
  throw new RelayError(
    'unprocessable',
    'This GitLab takes no signing token: they need version 19.0, where an administrator can have them off, or later. Set RELAY_WEBHOOK_SECRET to a text that does not begin with whsec_: it is then sent as the secret token with each delivery',
  )
}

const headerText = z.catch(z.record(z.string(), z.unknown()), {})
const event = z.pipe(
  z.object({
    id: z.union([z.int(), z.string().check(z.regex(/^\d+$/))]),
    trigger: z._default(z.string(), ''),
    request_headers: headerText,
    request_data: z.unknown(),
    response_headers: headerText,
    response_status: z.nullish(z.union([z.string(), z.int()])),
    created_at: z.optional(z.string()),
  }),
  z.transform((each): host.HookDelivery | undefined => {
    const [guid, header] = ['idempotency-key', 'x-gitlab-event'].map((name) =>
      textOf(each.request_headers, name),
    )
    // Older versions do not say when they sent it, but the receiver's answer mostly does.
    const at = Date.parse(each.created_at ?? textOf(each.response_headers, 'date') ?? '')
    const status = String(each.response_status ?? 'no response')
    const action = memberOf(each.request_data, 'object_attributes.action')
    if (guid === undefined) return undefined
    return {
      id: String(each.id),
      guid,
      event: GITLAB_WEBHOOK.eventName?.read(header ?? each.trigger) ?? '',
      action: typeof action === 'string' ? action : null,
      deliveredAt: Number.isNaN(at) ? Date.now() : at,
      // `internal error` if there was no answer.
      statusCode: /^\d{3}$/.test(status) ? Number(status) : 0,
      status,
    }
  }),
)

function textOf(headers: Readonly<Record<string, unknown>>, wanted: string): string | undefined {
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1]
  return typeof found === 'string' ? found : undefined
}

/**
 * Events of a hook, newest first. A repeated one has the same `Idempotency-Key`. GitLab sends it again while it is asked
 * to, with e-mail addresses removed (`redact_user_emails` in app/models/hooks/web_hook_log.rb), five times a minute for
 * each project and user (lib/api/hooks/resend_hook.rb), and through no paused hook (`execute` in
 * app/services/web_hook_service.rb).
 */
function deliveryLog(rest: RestClient, hook: string): host.DeliveryLog {
  const where = `${hook}/events`
  return {
    async page(cursor = '1') {
      const query = { per_page: LOG_PAGE, page: cursor }
      const call = { query, exact: true, answer: z.array(event) }
      const { value, header } = await rest.call('GET', where, call)
      const next = nextLink(header)?.searchParams.get('page') ?? undefined
      return { deliveries: value.flatMap((each) => each ?? []), next }
    },
    async redeliver(id) {
      await rest.call('POST', `${where}${apiPath`/${id}/resend`}`)
    },
    async wake() {
      const { value: before } = await rest.call('GET', hook, { answer: shown })
      if (!before.paused) return undefined
      const { after, error } = await wake(rest, hook)
      if (!after.paused) return before.paused
      if (error?.kind === 'rate_limited') throw error
      const until =
        after.paused.until === undefined ? '' : ` until ${new Date(after.paused.until).toISOString()}`
      throw new RelayError(
        'unprocessable',
        `GitLab has paused the hook${until}, since deliveries to it failed, and its test failed, too: ${error?.message ?? 'it stays paused'}`,
      )
    },
  }
}
