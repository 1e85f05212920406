import type { HostOptions } from './github.js'
import type { Api } from './http.js'
import type { Provider } from './provider.js'

/** Most commands need no more than the facts. */
const calls = () => import('./gitea-calls.js')

/** Gitea and Forgejo, from Gitea 1.15 on; the address may have a path. */
export function createGitea({ name, url, fetch, timeLimit }: HostOptions): Provider {
  const web = url.href.replace(/\/+$/, '')
  const api: Api = {
    label: 'Gitea',
    base: `${web}/api/v1`,
    headers: { accept: 'application/json' },
    fetch,
    timeLimit,
  }
  return {
    name,
    url: web,
    origin: url.origin,
    webhook: { eventHeader: 'x-gitea-event', deliveryHeader: 'x-gitea-delivery', formSignature: 'payload' },
    oauth: {
      authorizationEndpoint: `${web}/login/oauth/authorize`,
      tokenEndpoint: `${web}/login/oauth/access_token`,
      issuer: undefined,
      scopes: ['write:issue', 'write:repository', 'read:user'],
    },
    whoAmI: async (token, options) => (await calls()).getUser(api, token, options),
    comment: async (token, input, options) => (await calls()).postComment(api, token, input, options),
    merge: async (token, input, options) => (await calls()).postMerge(api, token, input, options),
    react: async (token, input, options) => (await calls()).postReaction(api, token, input, options),
  }
}
