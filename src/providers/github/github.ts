import type { Cancellable } from '../../base/abort.js'
import type { Api, UserApi } from '../http.js'
import type { CodeHost, HostOptions, OAuthEndpoints, ProbeAnswer, Provider } from '../provider.js'
import { ACTIONS } from './actions.js'
import { TEMPLATES } from './payloads.js'
import { WEBHOOK } from './webhook.js'

/** GitHub.com, GitHub Enterprise Server and GHE.com. */
export const GITHUB: CodeHost = {
  defaultUrl: 'https://github.com',
  pathAllowed: false,
  webhook: WEBHOOK,
  actions: ACTIONS,
  templates: TEMPLATES,
  open: (options) => open('github', options),
}

/** The sandbox, which has the layout of an Enterprise Server. */
export const SANDBOX: CodeHost = {
  ...GITHUB,
  defaultUrl: undefined,
  open: (options) => open('sandbox', options),
}

/** Loaded late, since most commands make no call. */
const calls = () => import('./calls.js')

function open(name: 'github' | 'sandbox', { url, sendOnce, timeLimit }: HostOptions): Provider {
  const web = url.href.replace(/\/+$/, '')
  const api: Api = {
    label: name === 'sandbox' ? 'The sandbox' : 'GitHub',
    base: apiBase(url, web),
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
    sendOnce,
    timeLimit,
  }
  const as = (token: string, options?: Cancellable): UserApi => ({ ...api, token, ...options })
  return {
    name,
    url: web,
    origin: url.origin,
    webhook: WEBHOOK,
    oauth: oauthEndpoints(name, url, web),
    // An Enterprise Server without rate limits has no /rate_limit; github.com's /meta is long.
    probe: {
      address: `${api.base}/${api.base.startsWith(web) ? 'meta' : 'rate_limit'}`,
      recognise: recogniseGitHub,
    },
    whoAmI: async (token, options) => (await calls()).getUser(as(token, options)),
    comment: async (token, input, options) => (await calls()).postComment(as(token, options), input),
    merge: async (token, input, options) => (await calls()).putMerge(as(token, options), input),
    react: async (token, input, options) => (await calls()).postReaction(as(token, options), input),
    revokeToken: async (token, client, options) => (await calls()).deleteToken(as(token, options), client),
  }
}

/** docs.github.com, "Getting started with the REST API": the API has a host of its own except on Enterprise Server. */
function apiBase(url: URL, web: string): string {
  if (url.host === 'github.com') return 'https://api.github.com'
  if (/^[^.]+\.ghe\.com$/.test(url.host)) return `https://api.${url.host}`
  return `${web}/api/v3`
}

function oauthEndpoints(name: Provider['name'], url: URL, web: string): OAuthEndpoints {
  const oauth = `${web}/login/oauth`
  // The issuer of an Enterprise Server or GHE.com is not documented reliably, so it is not checked there.
  const issuer = name === 'sandbox' || url.host === 'github.com' ? oauth : undefined
  return {
    authorizationEndpoint: `${oauth}/authorize`,
    tokenEndpoint: `${oauth}/access_token`,
    issuer,
    // The only scope with which the three actions work on private repositories too.
    scopes: ['repo'],
  }
}

/**
 * GitHub at `/rate_limit`, GitHub Enterprise Server at `/meta` (docs.github.com/rest/rate-limit, /rest/meta/meta). Its
 * headers identify a server that asks for a token first or has had too many requests.
 */
function recogniseGitHub({ status, header, json }: ProbeAnswer): string | undefined {
  const { installed_version: installed, resources }: Readonly<Record<string, unknown>> = Object(json)
  const [, named] = /^enterprise-server@(.+)$/.exec(header('x-github-enterprise-version') ?? '') ?? []
  const refused = [401, 403, 429].includes(status) && header('x-github-request-id') !== undefined
  const version = named ?? (status === 200 && typeof installed === 'string' ? installed : undefined)
  if (version !== undefined && (status === 200 || refused)) return `GitHub Enterprise Server ${version}`
  return refused || (status === 200 && Boolean(resources)) ? 'GitHub' : undefined
}
