import type { LoggedDelivery } from '../hooks/delivery-log.js'
import type { Hook, HookConfig } from '../hooks/hook.js'
import type { View } from './view.js'

/**
 * Hook of a repository (https://docs.github.com/rest/repos/webhooks). `repo` is the full name of a repository whose events it
 * gets; `last` is its last delivery.
 */
export function hookResource(view: View, repo: string, hook: Hook, last?: LoggedDelivery) {
  const { id, active, events, createdAt, updatedAt } = hook
  const url = `${view.repoApi(repo)}/hooks/${id}`
  return {
    type: 'Repository',
    id,
    name: 'web',
    active,
    events,
    config: configResource(hook.config),
    updated_at: updatedAt,
    created_at: createdAt,
    url,
    test_url: `${url}/test`,
    ping_url: `${url}/pings`,
    deliveries_url: `${url}/deliveries`,
    last_response: last ? responseOf(last) : UNUSED,
  }
}

/** The last response of a hook that has sent nothing. */
const UNUSED = { code: null, status: 'unused', message: null }

/** Settings of a hook. The secret is never shown. */
export function configResource({ url, contentType, insecureSsl, secret }: HookConfig) {
  return {
    content_type: contentType,
    insecure_ssl: insecureSsl,
    ...(secret && { secret: '********' }),
    url: url(),
  }
}

function responseOf({ status, statusCode, response, failure }: LoggedDelivery) {
  const kind = failure === undefined ? 'active' : response ? 'misconfigured' : 'connection_error'
  return { code: statusCode, status: kind, message: status }
}
