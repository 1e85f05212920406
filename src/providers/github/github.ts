import type { Cancellable } from '../../base/abort.js'
import type { HookCalls } from '../hooks.js'
import type { Api, UserApi } from '../http.js'
import type { CodeHost, HostOptions, OAuthEndpoints, ProbeAnswer, Provider } from '../provider.js'
import { ACTIONS } from './actions.js'
import type { AppCalls, Registration } from '../registration.js'
import { manifestOf } from './manifest.js'
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
const hookCalls = () => import('./hook-calls.js')
const appCalls = () => import('./app-calls.js')

function open(name: 'github' | 'sandbox', { url, sendOnce, timeLimit }: HostOptions): Provider {
  const web = url.href.replace(/\/+$/, '')
  const api: Api = {
    label: name === 'sandbox' ? 'The sandbox' : 'GitHub',
    base: apiBase(url, web),
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
    sendOnce,
    timeLimit,
  }
  const as: As = (token, options) => ({ ...api, token, ...options })
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
    inspectToken: async (token, options) => (await calls()).getTokenFacts(as(token, options)),
    isPersonal: (token) => PERSONAL.test(token),
    async *comments(token, input, options) {
      yield* (await calls()).listComments(as(token, options), input)
    },
    editComment: async (token, input, options) => (await calls()).patchComment(as(token, options), input),
    headChecks: async (token, input, options) => (await calls()).getHeadChecks(as(token, options), input),
    whoAmI: async (token, options) => (await calls()).getUser(as(token, options)),
    comment: async (token, input, options) => (await calls()).postComment(as(token, options), input),
    merge: async (token, input, options) => (await calls()).putMerge(as(token, options), input),
    react: async (token, input, options) => (await calls()).postReaction(as(token, options), input),
    hooks: hooksOf(as),
    registration: registrationOf(api, web),
    revokeToken: async (token, client, options) => (await calls()).deleteToken(as(token, options), client),
  }
}

/** https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest */
function registrationOf(api: Api, web: string): Registration {
  return {
    page: `${web}/settings/applications/new`,
    apps: {
      page: (organization) =>
        organization === undefined
          ? `${web}/settings/apps/new`
          : `${web}/organizations/${encodeURIComponent(organization)}/settings/apps/new`,
      manifest: manifestOf,
      convert: async (code, options) => (await appCalls()).convertManifest(api, code, options),
      ...ownCalls(api),
    },
  }
}

/** The calls that an App makes itself. */
function ownCalls(api: Api): Pick<AppCalls, 'describe' | 'isInstalled' | 'hook'> {
  return {
    describe: async (app, options) => (await appCalls()).describeApp(api, app, options),
    isInstalled: async (app, repo, options) => (await appCalls()).isInstalled(api, app, repo, options),
    hook: {
      show: async (app, options) => (await appCalls()).getHook(api, app, options),
      change: async (app, settings, options) => (await appCalls()).changeHook(api, app, settings, options),
      page: async (app, cursor, options) => (await appCalls()).listAppDeliveries(api, app, cursor, options),
      redeliver: async (app, id, options) => (await appCalls()).redeliverForApp(api, app, id, options),
    },
  }
}

/** Classic and fine-grained (docs.github.com, "About authentication to GitHub", token formats). */
const PERSONAL = /^(?:ghp|github_pat)_/

type As = (token: string, options?: Cancellable) => UserApi

function hooksOf(as: As): HookCalls {
  return {
    list: async (token, repo, options) => (await hookCalls()).listHooks(as(token, options), repo),
    create: async (token, repo, settings, options) =>
      (await hookCalls()).createHook(as(token, options), repo, settings),
    change: async (token, repo, id, settings, options) =>
      (await hookCalls()).changeHook(as(token, options), repo, id, settings),
    remove: async (token, repo, id, options) => (await hookCalls()).removeHook(as(token, options), repo, id),
    test: async (token, repo, id, options) => (await hookCalls()).pingHook(as(token, options), repo, id),
    log: {
      page: async (token, repo, id, cursor, options) =>
        (await hookCalls()).listDeliveries(as(token, options), repo, id, cursor),
      redeliver: async (token, repo, id, deliveryId, options) =>
        (await hookCalls()).redeliver(as(token, options), repo, id, deliveryId),
    },
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
    deviceEndpoint: `${web}/login/device/code`,
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
