import type { ProviderName } from '../base/settings.js'
import type { SendOnce } from './fetch.js'
import type { Api } from './http.js'
import type { OAuthEndpoints, Provider } from './provider.js'

/** An address that has been checked, and how to call it. */
export interface HostOptions {
  readonly name: ProviderName
  readonly url: URL
  readonly fetch: SendOnce
  readonly timeLimit: number
}

/** Most commands need no more than the facts. */
const calls = () => import('./github-calls.js')

/** GitHub.com, GitHub Enterprise Server and GHE.com; also the sandbox, which is laid out as an Enterprise Server. */
export function createGitHub({ name, url, fetch, timeLimit }: HostOptions): Provider {
  const web = url.href.replace(/\/+$/, '')
  const api: Api = {
    label: name === 'sandbox' ? 'The sandbox' : 'GitHub',
    base: apiBase(url, web),
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
    fetch,
    timeLimit,
  }
  return {
    name,
    url: web,
    origin: url.origin,
    webhook: {
      eventHeader: 'x-github-event',
      deliveryHeader: 'x-github-delivery',
      hookHeader: 'x-github-hook-id',
      formSignature: 'body',
    },
    oauth: oauthEndpoints(name, url, web),
    whoAmI: async (token, options) => (await calls()).getUser(api, token, options),
    comment: async (token, input, options) => (await calls()).postComment(api, token, input, options),
    merge: async (token, input, options) => (await calls()).putMerge(api, token, input, options),
    react: async (token, input, options) => (await calls()).postReaction(api, token, input, options),
    revokeToken: async (token, client, options) => (await calls()).deleteToken(api, token, client, options),
  }
}

/** docs.github.com, "Getting started with the REST API": the API has a host of its own except on Enterprise Server. */
function apiBase(url: URL, web: string): string {
  if (url.host === 'github.com') return 'https://api.github.com'
  if (/^[^.]+\.ghe\.com$/.test(url.host)) return `https://api.${url.host}`
  return `${web}/api/v3`
}

function oauthEndpoints(name: ProviderName, url: URL, web: string): OAuthEndpoints {
  const oauth = `${web}/login/oauth`
  // What an Enterprise Server or GHE.com calls itself is not documented reliably, so it is not checked there.
  const issuer = name === 'sandbox' || url.host === 'github.com' ? oauth : undefined
  return {
    authorizationEndpoint: `${oauth}/authorize`,
    tokenEndpoint: `${oauth}/access_token`,
    issuer,
    // The only scope with which the three actions work on private repositories too.
    scopes: ['repo'],
  }
}
