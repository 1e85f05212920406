import { z } from 'zod/mini'
import type { Cancellable } from '../../base/wait.js'
import { RelayError } from '../../base/errors.js'
import type { OAuthClient } from '../../base/settings.js'
import { commentPaths, commitCheck, GitHubLikeAccount, loginSchema, pullPath } from '../github-like.js'
import type { ResponseHead } from '../../net/client.js'
import type * as host from '../host.js'
import { mergePatiently } from '../merge.js'
import { Refusal } from '../refusal.js'
import { type Api, PAGE_SIZE, apiPath, RestClient } from '../rest.js'
import { githubApps } from './app.js'
import { githubHooks } from './hooks.js'
import { GITHUB_WEBHOOK } from '../../senders/github.js'
import { fieldsOf } from '../../json/parse.js'

/**
 * Prefixes of classic and fine-grained personal tokens, which no application can revoke (docs.github.com, "About
 * authentication to GitHub", token formats).
 */
const PERSONAL_TOKEN = /^(?:ghp|github_pat)_/

/**
 * GitHub keeps deliveries for 3 days
 * (https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks).
 */
const LOG_PERIOD_MS = 3 * 86_400_000

function kindOf(name: 'github' | 'sandbox', label: string): host.HostKind {
  const traits: host.HostTraits = {
    webhook: GITHUB_WEBHOOK,
    nestedOwners: false,
    separateNumbers: false,
    commentPaths,
    testEvent: 'ping',
    testNeedsEvent: false,
    logPeriod: LOG_PERIOD_MS,
    words: {
      label,
      hookScopes: 'the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks)',
      hookRole: 'admin rights on the repository',
      registrationEnd: 'Then create a client secret there, and enter both here',
      applicationForm: ({ name: application, callbackUrl }) => [
        ['Application name', application],
        ['Homepage URL', new URL(callbackUrl).origin],
        ['Authorization callback URL', callbackUrl],
        ['Enable Device Flow', 'yes, to sign in with --device'],
      ],
    },
  }
  const isEmulated = name === 'sandbox'
  return {
    ...traits,
    pathAllowed: false,
    isEmulated,
    open: (url, calling) => open(name, traits, url, calling),
  }
}

/** GitHub.com, GitHub Enterprise Server and GHE.com. */
export const GITHUB = kindOf('github', 'GitHub')

/** The sandbox, whose addresses are those of an Enterprise Server. */
export const SANDBOX = kindOf('sandbox', 'The sandbox')

function open(
  name: 'github' | 'sandbox',
  traits: host.HostTraits,
  url: URL,
  calling: host.CallingOptions,
): host.OpenedHost {
  const web = url.href.replace(/\/+$/, '')
  const oauth = `${web}/login/oauth`
  const apiUrl = apiBase(url, web)
  const api: Api = {
    label: traits.words.label,
    base: apiUrl,
    signOnOrigin: url.origin,
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
    ...calling,
  }
  return {
    ...traits,
    name,
    url: web,
    origin: url.origin,
    apiUrl,
    oauth: {
      authorizationEndpoint: `${oauth}/authorize`,
      tokenEndpoint: `${oauth}/access_token`,
      deviceEndpoint: `${web}/login/device/code`,
      // The issuer of an Enterprise Server or GHE.com is not documented reliably, so it is not checked there.
      issuer: name === 'sandbox' || url.host === 'github.com' ? oauth : undefined,
      // The only scope with which all three actions work on private repositories.
      scopes: ['repo'],
    },
    // An Enterprise Server without rate limits has no /rate_limit, and github.com's /meta is long.
    probe: { address: `${apiUrl}/${apiUrl.startsWith(web) ? 'meta' : 'rate_limit'}`, recognise },
    registrationPage: `${web}/settings/applications/new`,
    apps: githubApps(api, web),
    as: (token, options) => new GitHubAccount(api, token, options),
  }
}

/**
 * Address of the API, which has its own host except on Enterprise Server (docs.github.com, "Getting started with the
 * REST API").
 */
function apiBase(url: URL, web: string): string {
  if (url.host === 'github.com') return 'https://api.github.com'
  if (/^[^.]+\.ghe\.com$/.test(url.host)) return `https://api.${url.host}`
  return `${web}/api/v3`
}

/**
 * Recognizes GitHub at `/rate_limit` and GitHub Enterprise Server at `/meta` (docs.github.com/rest/rate-limit,
 * /rest/meta/meta). Headers identify a server that requires a token or has had too many requests.
 */
function recognise({ status, header, json }: ResponseHead & { readonly json: unknown }): string | undefined {
  const { installed_version: installed, resources } = fieldsOf(json)
  const [, named] = /^enterprise-server@(.+)$/.exec(header('x-github-enterprise-version') ?? '') ?? []
  const refused = [401, 403, 429].includes(status) && header('x-github-request-id') !== undefined
  const version = named ?? (status === 200 && typeof installed === 'string' ? installed : undefined)
  if (version !== undefined && (status === 200 || refused)) return `GitHub Enterprise Server ${version}`
  return refused || (status === 200 && Boolean(resources)) ? 'GitHub' : undefined
}

const merged = z.object({ sha: z.string(), merged: z.literal(true) })

class GitHubAccount extends GitHubLikeAccount implements host.Account {
  readonly hooks: host.RepoHooks
  readonly revoke?: (client: OAuthClient) => Promise<void>
  readonly #token: host.TokenSource
  protected readonly reviewed = 'pulls'

  constructor(api: Api, token: host.TokenSource, options?: Cancellable) {
    super(new RestClient(api, { token }, options))
    this.#token = token
    this.hooks = githubHooks(this.rest)
    if (typeof token === 'string' && !PERSONAL_TOKEN.test(token))
      this.revoke = (client) => revoke(new RestClient(api, { token, client }, options), token, client)
  }

  /**
   * GET /user, whose headers also describe the token. Responses to a classic token have `X-OAuth-Scopes`, which may be
   * empty; those to a fine-grained token do not (docs.github.com, "Scopes for OAuth apps").
   */
  async facts(): Promise<host.TokenFacts> {
    const { value, header } = await this.rest.call('GET', '/user', { answer: loginSchema })
    const isClassic = typeof this.#token === 'string' && this.#token.startsWith('ghp_')
    return {
      login: value.login,
      scopes: header('x-oauth-scopes')?.split(/[\s,]+/) ?? (isClassic ? [] : undefined),
      expiresAt: parseExpiration(header('github-authentication-token-expiration')),
    }
  }

  /**
   * GET the head, then /commits/{head}/check-runs (the newest of each app and name) and /commits/{head}/status (the
   * newest of each context). Checks and statuses are two systems, and a commit can have both.
   * @see https://docs.github.com/en/rest/checks/runs and https://docs.github.com/en/rest/commits/statuses
   */
  async headChecks(pull: host.IssueRef): Promise<host.HeadChecks> {
    const { owner, repo } = pull
    const sha = await this.headOf(pull)
    const commit = apiPath`/repos/${owner}/${repo}/commits/${sha}`
    const query = { per_page: PAGE_SIZE }
    const all = await Promise.all([
      this.rest.all(`${commit}/check-runs`, checkRuns, query),
      this.rest.all(`${commit}/status`, combinedStatus, query),
    ])
    return { sha, checks: all.flat() }
  }

  /** PUT /repos/{owner}/{repo}/pulls/{n}/merge. */
  async merge(
    pull: host.IssueRef,
    { method, title, message, sha, auto = false }: host.MergeOptions = {},
    watch: host.MergeWatch = {},
  ): Promise<host.MergeResult> {
    if (auto)
      throw new RelayError(
        'unprocessable',
        `${this.rest.label} lets no REST call merge later. Merge with --if-green once the checks have succeeded, or choose it on the page of the pull request`,
      )
    return mergePatiently(this.rest, pull, { sha, ...watch }, async (head) => {
      const body = { merge_method: method, commit_title: title, commit_message: message, sha: head }
      const { value } = await this.rest.call('PUT', `${pullPath(pull)}/merge`, { body, answer: merged })
      return { merged: true, sha: value.sha }
    })
  }
}

/** Parses `2026-12-31 23:59:59 UTC`, or with an offset such as `+0200` in place of `UTC`. */
function parseExpiration(text = ''): number | undefined {
  const [, day, time, zone] = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (UTC|[+-]\d{4})$/.exec(text) ?? []
  if (zone === undefined) return undefined
  const offset = zone === 'UTC' ? 'Z' : `${zone.slice(0, 3)}:${zone.slice(3)}`
  const at = Date.parse(`${day}T${time}${offset}`)
  return Number.isNaN(at) ? undefined : at
}

/** DELETE /applications/{client_id}/token; 404 and 422 mean that this application has no such token. */
async function revoke(rest: RestClient, token: string, client: OAuthClient): Promise<void> {
  try {
    await rest.call('DELETE', apiPath`/applications/${client.id}/token`, { body: { access_token: token } })
  } catch (error) {
    if (error instanceof Refusal && [404, 422].includes(error.providerStatus)) return
    if (!(error instanceof RelayError) || error.kind !== 'invalid_token') throw error
    throw new RelayError('forbidden', `${rest.label} refused: it does not know this client id and secret`)
  }
}

const checkRuns = z.pipe(
  z.object({
    check_runs: z.array(
      z.object({ name: z.string(), status: z.string(), conclusion: z.nullish(z.string()) }),
    ),
  }),
  z.transform(({ check_runs: runs }) =>
    runs.map(({ name, status, conclusion }) =>
      status === 'completed' && conclusion ? commitCheck(name, conclusion) : commitCheck(name, status, true),
    ),
  ),
)

const combinedStatus = z.pipe(
  z.object({ statuses: z.array(z.object({ context: z.string(), state: z.string() })) }),
  z.transform(({ statuses }) => statuses.map(({ context, state }) => commitCheck(context, state))),
)
