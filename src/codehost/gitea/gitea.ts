import { z } from 'zod/mini'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import {
  commentPaths,
  commitCheck,
  GitHubLikeAccount,
  hookSchema,
  hooksPath,
  issuePath,
  loginSchema,
  pullPath,
} from '../github-like.js'
import type { ResponseHead } from '../../net/client.js'
import { ignoreGone, onceMade } from '../hooks.js'
import type * as host from '../host.js'
import { mergePatiently } from '../merge.js'
import { isNotFound, Refusal } from '../refusal.js'
import { type ApiResponse, type Api, PAGE_SIZE, apiPath, RestClient } from '../rest.js'
import { GITEA_WEBHOOK } from '../../senders/gitea.js'
import { fieldsOf } from '../../json/parse.js'

const WORDS: host.HostWords = {
  label: 'Gitea',
  hookScopes: 'the scope write:repository',
  hookRole: 'admin rights on the repository',
  testHint: ({ url, owner, repo, id }) =>
    `Gitea sends nothing to private addresses unless its setting webhook.ALLOWED_HOST_LIST has them, and no test of a repository without a commit or of a branch that the hook leaves out; ${url}/${owner}/${repo}/settings/hooks/${id} shows what it sent`,
  registrationToken: 'with the permission to write your user',
  registrationEnd: 'Then create a client secret there, and enter both here',
  applicationForm: ({ name, callbackUrl }) => [
    ['Application Name', name],
    ['Redirect URIs', callbackUrl],
    ['Confidential Client', 'yes'],
  ],
  noLog: {
    why: 'gitea shows programs no log of what it sent',
    // The button exists since 1.17 (go-gitea/gitea#19250).
    fix: "From Gitea 1.17 on, and in Forgejo, each delivery can be sent again on the hook's page there",
  },
}

const TRAITS: host.HostTraits = {
  webhook: GITEA_WEBHOOK,
  words: WORDS,
  nestedOwners: false,
  separateNumbers: false,
  commentPaths,
  testEvent: 'push',
  testNeedsEvent: true,
  logPeriod: Infinity,
}

/** Gitea and Forgejo, from Gitea 1.15 on. */
export const GITEA: host.HostKind = { ...TRAITS, pathAllowed: true, isEmulated: false, open }

function open(url: URL, calling: host.CallingOptions): host.OpenedHost {
  const web = url.href.replace(/\/+$/, '')
  const apiUrl = `${web}/api/v1`
  const headers = { accept: 'application/json' }
  const api: Api = { label: WORDS.label, base: apiUrl, headers, explain: explainNoPull, ...calling }
  return {
    ...TRAITS,
    name: 'gitea',
    url: web,
    origin: url.origin,
    apiUrl,
    oauth: {
      authorizationEndpoint: `${web}/login/oauth/authorize`,
      tokenEndpoint: `${web}/login/oauth/access_token`,
      issuer: undefined,
      scopes: ['write:issue', 'write:repository', 'read:user'],
    },
    probe: { address: `${apiUrl}/version`, recognise },
    registrationPage: `${web}/user/settings/applications`,
    as: (token, options) => new GiteaAccount(new RestClient(api, { token }, options)),
    /**
     * POST /user/applications/oauth2 (CreateOAuth2ApplicationOptions in Gitea's modules/structs/user_app.go). Versions before 1.17
     * ignore `confidential_client`: all their applications are confidential.
     */
    async register(token, { name, redirectUri }, options) {
      const body = { name, redirect_uris: [redirectUri], confidential_client: true }
      const call = { body, answer: created }
      const { value } = await new RestClient(api, { token }, options).call(
        'POST',
        '/user/applications/oauth2',
        call,
      )
      return { id: value.client_id, secret: new Secret(value.client_secret) }
    },
  }
}

/**
 * Converts Gitea's error for a number that is not a pull request's, which names an internal function:
 * `GetPullRequestByIndex (…)`.
 */
function explainNoPull({ upstreamMessage, providerStatus }: Refusal): Refusal | undefined {
  if (!/^GetPullRequestByIndex\b/.test(upstreamMessage)) return undefined
  return new Refusal('not_found', 'Gitea has no pull request with this number there', { providerStatus })
}

const created = z.object({
  client_id: z.string().check(z.minLength(1)),
  client_secret: z.string().check(z.minLength(1)),
})

/**
 * Recognizes Gitea and Forgejo at `/api/v1/version` (Gitea's routers/api/v1/misc/version.go); Forgejo adds `+gitea-…`
 * to its own version. A server that requires a sign-in is identified by the `url` of its error, its API's description.
 */
function recognise({ status, json }: ResponseHead & { readonly json: unknown }): string | undefined {
  const { version, url } = fieldsOf(json)
  if (status === 200 && typeof version === 'string')
    return version.includes('+gitea-') ? `Forgejo ${version.split('+', 1)[0]}` : `Gitea ${version}`
  const described = typeof url === 'string' && url.endsWith('/api/swagger')
  return [401, 403].includes(status) && described ? 'Gitea' : undefined
}

const merged = z.object({ merged: z.literal(true), merge_commit_sha: z.string().check(z.minLength(1)) })

class GiteaAccount extends GitHubLikeAccount implements host.Account {
  readonly hooks: host.RepoHooks
  protected readonly reviewed = 'issues'

  constructor(rest: RestClient) {
    super(rest)
    this.hooks = giteaHooks(rest)
  }

  /**
   * Gitea provides no information about a token. It refuses one without the scope `read:user`, with that scope's name.
   */
  async facts(): Promise<host.TokenFacts> {
    const { value } = await this.rest.call('GET', '/user', { answer: loginSchema })
    return { ...value, scopes: undefined, expiresAt: undefined }
  }

  /** 1.15 answers 500 to a comment on a missing issue. Reading the issue reveals the reason. */
  override async comment(on: host.IssueRef, body: string): Promise<host.CommentRef> {
    try {
      return await super.comment(on, body)
    } catch (error) {
      if (!(error instanceof Refusal && error.providerStatus === 500)) throw error
      await this.rest.call('GET', issuePath(on)).catch((reason: unknown) => {
        throw isNotFound(reason) ? reason : error
      })
      throw error
    }
  }

  /**
   * GET the head, then /commits/{head}/status: the newest of each context, in pages. The response does not say how many
   * there are. Gitea Actions reports here too; there are no other checks.
   * @see Gitea's routers/api/v1/repo/status.go, GetCombinedCommitStatusByRef, and modules/structs/status.go
   */
  async headChecks(pull: host.IssueRef): Promise<host.HeadChecks> {
    const { owner, repo } = pull
    const sha = await this.headOf(pull)
    const newest = new Map<string, host.CommitCheck>()
    const hasNew = ({ value }: ApiResponse<readonly host.CommitCheck[]>): boolean => {
      const before = newest.size
      for (const check of value) newest.set(check.name, check)
      return newest.size > before
    }
    const where = apiPath`/repos/${owner}/${repo}/commits/${sha}/status`
    await this.rest.all(where, combinedStatus, { limit: PAGE_SIZE }, hasNew)
    return { sha, checks: [...newest.values()] }
  }

  /**
   * POST /repos/{owner}/{repo}/pulls/{n}/merge: an empty 200, or 201 when the merge waits for checks. The commit is read
   * afterwards. 1.15 does not know `head_commit_id`, so the head is also compared
   * before, unless it was just read, which leaves a moment in which it can still change.
   */
  async merge(
    pull: host.IssueRef,
    { method = 'merge', title, message, sha, auto }: host.MergeOptions = {},
    watch: host.MergeWatch = {},
  ): Promise<host.MergeResult> {
    return mergePatiently(this.rest, pull, { sha, ...watch }, async (head, { wasJustRead }) => {
      if (head !== undefined && !wasJustRead && (await this.headOf(pull)) !== head)
        throw new RelayError('conflict', 'Not merged: the head of the pull request is another commit')
      const fields = { MergeTitleField: title, MergeMessageField: message, head_commit_id: head }
      // 1.17 and later: 201 where checks have not finished.
      const body = { Do: method, ...fields, ...(auto && { merge_when_checks_succeed: true }) }
      const { status } = await this.rest.call('POST', `${pullPath(pull)}/merge`, { body })
      return status === 201
        ? { merged: false, sha: null }
        : { merged: true, sha: await this.#mergeCommit(pull) }
    })
  }

  async #mergeCommit(pull: host.IssueRef): Promise<string> {
    try {
      return (await this.rest.call('GET', pullPath(pull), { answer: merged })).value.merge_commit_sha
    } catch (cause) {
      const why = cause instanceof RelayError ? cause.message : 'unknown reason'
      throw new RelayError('provider_failed', `Gitea merged it, but did not return the commit: ${why}`, {
        cause,
      })
    }
  }
}

/** Gitea calls a state `status`. Without any, 1.15 answers with an empty body, and later versions with null. */
const combinedStatus = z.pipe(
  z.optional(
    z.object({ statuses: z.nullish(z.array(z.object({ context: z.string(), status: z.string() }))) }),
  ),
  z.transform((combined) =>
    (combined?.statuses ?? []).map(({ context, status }) => commitCheck(context, status)),
  ),
)

/** Settings that a person may have made on the hook's page, and relay preserves. Empty fields are left out. */
const ownSettings = z.pipe(
  z.object({
    branch_filter: z.optional(z.string()),
    // A secret. The newest versions do not return it.
    authorization_header: z.optional(z.string()),
  }),
  z.transform(({ branch_filter: branches, authorization_header: authorization }) => ({
    ...(branches && { branch_filter: branches }),
    ...(authorization && { authorization_header: authorization }),
  })),
)

/** Event that no hook of a repository gets: it tells that a repository was created or deleted, and its hooks go with it. */
const RARE_EVENT = 'repository'

/** routers/api/v1/repo/hook.go and routers/api/v1/utils/hook.go */
function giteaHooks(rest: RestClient): host.RepoHooks {
  const list: host.RepoHooks['list'] = (repo) =>
    // Reads until a page is empty, since a server may be configured to smaller pages.
    rest.all(hooksPath(repo), z.array(hookSchema), { limit: PAGE_SIZE }, ({ value }) => value.length > 0)
  const remove: host.RepoHooks['remove'] = async (repo, id) => {
    await rest.call('DELETE', `${hooksPath(repo)}/${id}`)
  }
  const post = async (repo: host.Repo, settings: host.HookSettings, own = {}): Promise<host.RepoHook> => {
    const body = { type: 'gitea', ...bodyOf(settings), ...own }
    return (await rest.call('POST', hooksPath(repo), { body, answer: hookSchema })).value
  }
  return {
    list,
    remove,
    /**
     * Gitea allows a second hook with the same address. If two relays create one at the same moment, each keeps the
     * newest.
     */
    async create(repo, settings) {
      const made = await post(repo, settings)
      return onceMade(async () => {
        const same = (await list(repo)).filter(({ url }) => url === settings.url)
        const newest = same.reduce((newer, each) => (each.id > newer.id ? each : newer), made)
        for (const { id } of same) if (id !== newest.id) await remove(repo, id).catch(ignoreGone)
        return newest
      })
    },
    /**
     * PATCH clears the events, the branch filter and the authorization unless they are sent, and does not change the
     * secret (`editHook`).
     */
    async change(repo, id, settings, { sameSecret }) {
      const where = `${hooksPath(repo)}/${id}`
      const before = await rest.call('GET', where, { answer: ownSettings }).catch(ignoreGone)
      if (sameSecret && before) {
        const body = { ...bodyOf(settings), ...before.value }
        return (await rest.call('PATCH', where, { body, answer: hookSchema })).value
      }
      return post(repo, settings, before?.value)
    },
    /**
     * Removing a hook removes its queue (DeleteWebhookByRepoID in models/webhook/webhook.go), and newer versions send
     * nothing for an inactive one (Deliver in services/webhook/deliver.go). The address is read when a
     * delivery is sent, and the events are not.
     */
    async retire(repo, id, url) {
      const body = { active: true, events: [RARE_EVENT], config: { url, content_type: 'json' } }
      await rest.call('PATCH', `${hooksPath(repo)}/${id}`, { body })
    },
    /** Sends a `push` of the last commit, since Gitea has no ping. */
    async test(repo, id) {
      await rest.call('POST', `${hooksPath(repo)}/${id}/tests`)
    },
  }
}

/**
 * Body of a hook. `active` is false by default. A server ignores unknown names, and with `issues` and `pull_request`
 * also sends those with a suffix (`addHook` in routers/api/v1/utils/hook.go).
 */
function bodyOf({ url, secret, events = [...GITEA_WEBHOOK.events.keys()] }: host.HookSettings) {
  return { active: true, events, config: { url, content_type: 'json', secret: secret.reveal() } }
}
