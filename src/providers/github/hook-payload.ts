/** What differs between hooks. Times are UTC, to the second. */
export interface HookFields {
  readonly id: number
  readonly active: boolean
  readonly events: readonly string[]
  readonly config: object
  readonly createdAt: string
  readonly updatedAt: string
  readonly lastResponse: {
    readonly code: number | null
    readonly status: string
    readonly message: string | null
  }
}

/** The last response of a hook that has sent nothing. */
export const UNUSED: HookFields['lastResponse'] = { code: null, status: 'unused', message: null }

/**
 * A repository's hook, as the REST API and `ping` show it. `repository` is the repository's address in the API.
 * @see https://docs.github.com/rest/repos/webhooks#get-a-repository-webhook
 */
export function repositoryHook(repository: string, hook: HookFields) {
  const url = `${repository}/hooks/${hook.id}`
  return {
    type: 'Repository',
    id: hook.id,
    name: 'web',
    active: hook.active,
    events: hook.events,
    config: hook.config,
    updated_at: hook.updatedAt,
    created_at: hook.createdAt,
    url,
    test_url: `${url}/test`,
    ping_url: `${url}/pings`,
    deliveries_url: `${url}/deliveries`,
    last_response: hook.lastResponse,
  }
}

/** `ping`, which a code host sends when a hook is created. */
export function pingPayload<Hook extends { readonly id: number }, Context extends object>(
  hook: Hook,
  context: Context,
) {
  return { zen: 'Half measures are as bad as nothing at all.', hook_id: hook.id, hook, ...context }
}
