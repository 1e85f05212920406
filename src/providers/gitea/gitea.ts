import type { Cancellable } from '../../base/abort.js'
import type { HookCalls } from '../hooks.js'
import type { Api, UserApi } from '../http.js'
import { HUB_PROOF } from '../hub-signature.js'
import type { CodeHost, HostOptions, ProbeAnswer, Provider, WebhookScheme } from '../provider.js'
import { ACTIONS } from './actions.js'
import { EVENTS } from './events.js'
import { TEMPLATES } from './payloads.js'

/** RepositoryPayload and WikiPayload in Gitea's modules/structs/hook.go, from v1.15 to main. All others are indented by two. */
const ONE_SPACE_EVENTS: ReadonlySet<string> = new Set(['repository', 'wiki'])

/** Gitea sends GitHub's and Gogs' header names besides its own. */
const WEBHOOK: WebhookScheme = {
  ...HUB_PROOF,
  eventHeader: 'x-gitea-event',
  deliveryHeader: 'x-gitea-delivery',
  formSignature: 'payload',
  digestHeaders: ['x-gitea-signature'],
  events: EVENTS,
  summary: {
    action: ['action'],
    // `repository` is the fork, and at GitHub what was forked: services/webhook/notifier.go, ForkRepository.
    repo: ['forkee.full_name', 'repository.full_name'],
    number: ['number', 'issue.number', 'pull_request.number'],
  },
  style: (event) => (ONE_SPACE_EVENTS.has(event) ? 'one-space-go' : 'indented-go'),
  headers: (event, deliveryId) => ({
    'Content-Type': 'application/json',
    'User-Agent': 'Go-http-client/1.1',
    ...Object.fromEntries(
      ['Gitea', 'GitHub', 'Gogs'].flatMap((name) => [
        [`X-${name}-Delivery`, deliveryId],
        [`X-${name}-Event`, event],
      ]),
    ),
  }),
}

/** Gitea and Forgejo, from Gitea 1.15 on. */
export const GITEA: CodeHost = {
  defaultUrl: undefined,
  pathAllowed: true,
  webhook: WEBHOOK,
  actions: ACTIONS,
  templates: TEMPLATES,
  open,
}

/** Loaded late, since most commands make no call. */
const calls = () => import('./calls.js')
const hookCalls = () => import('./hook-calls.js')
const registrationCalls = () => import('./registration-calls.js')

function open({ url, sendOnce, timeLimit }: HostOptions): Provider {
  const web = url.href.replace(/\/+$/, '')
  const api: Api = {
    label: 'Gitea',
    base: `${web}/api/v1`,
    headers: { accept: 'application/json' },
    sendOnce,
    timeLimit,
  }
  const as: As = (token, options) => ({ ...api, token, ...options })
  return {
    name: 'gitea',
    url: web,
    origin: url.origin,
    webhook: WEBHOOK,
    oauth: {
      authorizationEndpoint: `${web}/login/oauth/authorize`,
      tokenEndpoint: `${web}/login/oauth/access_token`,
      issuer: undefined,
      scopes: ['write:issue', 'write:repository', 'read:user'],
    },
    probe: { address: `${api.base}/version`, recognise: recogniseGitea },
    inspectToken: async (token, options) => (await calls()).getTokenFacts(as(token, options)),
    async *comments(token, input, options) {
      yield* (await calls()).listComments(as(token, options), input)
    },
    editComment: async (token, input, options) => (await calls()).patchComment(as(token, options), input),
    headChecks: async (token, input, options) => (await calls()).getHeadChecks(as(token, options), input),
    whoAmI: async (token, options) => (await calls()).getUser(as(token, options)),
    comment: async (token, input, options) => (await calls()).postComment(as(token, options), input),
    merge: async (token, input, options) => (await calls()).postMerge(as(token, options), input),
    react: async (token, input, options) => (await calls()).postReaction(as(token, options), input),
    hooks: hooksOf(as),
    registration: {
      page: `${web}/user/settings/applications`,
      create: async (token, application, options) =>
        (await registrationCalls()).createApplication(as(token, options), application),
    },
  }
}

type As = (token: string, options?: Cancellable) => UserApi

function hooksOf(as: As): HookCalls {
  return {
    list: async (token, repo, options) => (await hookCalls()).listHooks(as(token, options), repo),
    create: async (token, repo, settings, options) =>
      (await hookCalls()).createHook(as(token, options), repo, settings),
    change: async (token, repo, id, settings, options) =>
      (await hookCalls()).replaceHook(as(token, options), repo, id, settings),
    remove: async (token, repo, id, options) => (await hookCalls()).removeHook(as(token, options), repo, id),
    test: async (token, repo, id, options) => (await hookCalls()).testHook(as(token, options), repo, id),
  }
}

/**
 * Gitea and Forgejo at `/api/v1/version` (Gitea's routers/api/v1/misc/version.go); Forgejo adds `+gitea-…` to its own
 * version. The `url` of its error, its API's description, identifies a server that shows nothing without a sign-in.
 */
function recogniseGitea({ status, json }: ProbeAnswer): string | undefined {
  const { version, url }: Readonly<Record<string, unknown>> = Object(json)
  if (status === 200 && typeof version === 'string')
    return version.includes('+gitea-') ? `Forgejo ${version.split('+', 1)[0]}` : `Gitea ${version}`
  const described = typeof url === 'string' && url.endsWith('/api/swagger')
  return [401, 403].includes(status) && described ? 'Gitea' : undefined
}
