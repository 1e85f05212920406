import { z } from 'zod'
import { RelayError, toRelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import {
  checkOf,
  GitHubLikeAccount,
  hook,
  hooksPath,
  issuePath,
  login,
  pullPath,
  whyNotMerged,
} from '../github-like.js'
import type * as host from '../host.js'
import { type Answer, type Api, isNotFound, PAGE_SIZE, path, Refusal, Rest } from '../rest.js'
import { WEBHOOK } from './webhook.js'
import { fieldsOf } from '../../json/parse.js'

const WORDS: host.HostWords = {
  label: 'Gitea',
  hookRights: 'the scope write:repository',
  testHint: ({ url, owner, repo, id }) =>
    `Gitea sends nothing to private addresses unless its setting webhook.ALLOWED_HOST_LIST has them, and no test of a repository without a commit or of a branch that the hook leaves out; ${url}/${owner}/${repo}/settings/hooks/${id} shows what it sent`,
  applicationForm: ({ name, callbackUrl }) => [
    ['Application Name', name],
    ['Redirect URIs', callbackUrl],
    ['Confidential Client', 'yes'],
  ],
  noLog: {
    why: 'gitea shows programs no log of what it sent',
    // The button came with 1.17 (go-gitea/gitea#19250).
    fix: "From Gitea 1.17 on, and in Forgejo, each delivery can be sent again on the hook's page there",
  },
}

const TRAITS: host.HostTraits = { webhook: WEBHOOK, words: WORDS, testEvent: 'push', logPeriod: Infinity }

/** Gitea and Forgejo, from Gitea 1.15 on. */
export const GITEA: host.HostKind = { ...TRAITS, pathAllowed: true, isEmulated: false, open }

function open(url: URL, calling: host.CallingOptions): Omit<host.CodeHost, 'refusal'> {
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
    as: (token, options) => new GiteaAccount(new Rest(api, { token }, options)),
    /**
     * POST /user/applications/oauth2 (CreateOAuth2ApplicationOptions in Gitea's modules/structs/user_app.go). Versions before 1.17
     * ignore `confidential_client`: all their applications are confidential.
     */
    async register(token, { name, redirectUri }, options) {
      const body = { name, redirect_uris: [redirectUri], confidential_client: true }
      const call = { body, answer: created }
      const { value } = await new Rest(api, { token }, options).call(
        'POST',
        '/user/applications/oauth2',
        call,
      )
      return { id: value.client_id, secret: new Secret(value.client_secret) }
    },
  }
}

/** Gitea names a function of its own where an issue, or nothing, has the number: `GetPullRequestByIndex (…)`. */
function explainNoPull({ upstreamMessage, providerStatus }: Refusal): Refusal | undefined {
  if (!/^GetPullRequestByIndex\b/.test(upstreamMessage)) return undefined
  return new Refusal('not_found', 'Gitea has no pull request with this number there', { providerStatus })
}

const created = z.object({ client_id: z.string().min(1), client_secret: z.string().min(1) })

/**
 * Gitea and Forgejo at `/api/v1/version` (Gitea's routers/api/v1/misc/version.go); Forgejo adds `+gitea-…` to its own
 * version. The `url` of its error, its API's description, identifies a server that shows nothing without a sign-in.
 */
function recognise({ status, json }: host.Headed & { readonly json: unknown }): string | undefined {
  const { version, url } = fieldsOf(json)
  if (status === 200 && typeof version === 'string')
    return version.includes('+gitea-') ? `Forgejo ${version.split('+', 1)[0]}` : `Gitea ${version}`
  const described = typeof url === 'string' && url.endsWith('/api/swagger')
  return [401, 403].includes(status) && described ? 'Gitea' : undefined
}

const merged = z.object({ merged: z.literal(true), merge_commit_sha: z.string().min(1) })

class GiteaAccount extends GitHubLikeAccount implements host.Account {
  readonly hooks: host.Hooks
  protected readonly reviewed = 'issues'

  constructor(rest: Rest) {
    super(rest)
    this.hooks = giteaHooks(rest)
  }

  /** Gitea says nothing about a token; one without the scope `read:user` is refused, with that scope's name. */
  async facts(): Promise<host.TokenFacts> {
    const { value } = await this.rest.call('GET', '/user', { answer: login })
    return { ...value, scopes: undefined, expiresAt: undefined }
  }

  /** 1.15 answers 500 to a comment on an issue that does not exist; reading the issue shows the reason. */
  override async comment(on: host.Subject, body: string): Promise<host.CommentRef> {
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
   * The head, then /commits/{head}/status: the newest of each context, in pages. The answer does not say how many there are.
   * Gitea Actions reports here too; there are no other checks.
   * @see Gitea's routers/api/v1/repo/status.go, GetCombinedCommitStatusByRef, and modules/structs/status.go
   */
  async headChecks(pull: host.Subject): Promise<host.HeadChecks> {
    const { owner, repo } = pull
    const sha = await this.headOf(pull)
    const newest = new Map<string, host.Check>()
    const hasNew = ({ value }: Answer<readonly host.Check[]>): boolean => {
      const before = newest.size
      for (const check of value) newest.set(check.name, check)
      return newest.size > before
    }
    const where = path`/repos/${owner}/${repo}/commits/${sha}/status`
    await this.rest.all(where, combinedStatus, { limit: PAGE_SIZE }, hasNew)
    return { sha, checks: [...newest.values()] }
  }

  /**
   * POST /repos/{owner}/{repo}/pulls/{n}/merge: an empty 200, or 201 when the merge waits for checks. The commit is
   * read afterwards, and so is the reason of a refusal. 1.15 does not know `head_commit_id`, so the head is also compared
   * beforehand, which leaves a moment in which it can still change.
   */
  async merge(pull: host.Subject, options: host.MergeOptions = {}): Promise<host.Merged> {
    const { method = 'merge', title, message, sha } = options
    if (sha !== undefined && (await this.headOf(pull)) !== sha)
      throw new RelayError('conflict', 'Not merged: the head of the pull request is another commit')
    const body = { Do: method, MergeTitleField: title, MergeMessageField: message, head_commit_id: sha }
    const call = this.rest.call('POST', `${pullPath(pull)}/merge`, { body })
    const { status } = await call.catch(async (error: unknown) => {
      throw await whyNotMerged(this.rest, pull, error)
    })
    return status === 201
      ? { merged: false, sha: null }
      : { merged: true, sha: await this.#mergeCommit(pull) }
  }

  async #mergeCommit(pull: host.Subject): Promise<string> {
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

/** Gitea's own name for a state is `status`. Without any, 1.15 answers with an empty body, and later versions with null. */
const combinedStatus = z
  .object({ statuses: z.array(z.object({ context: z.string(), status: z.string() })).nullish() })
  .optional()
  .transform((combined) => (combined?.statuses ?? []).map(({ context, status }) => checkOf(context, status)))

/** What a person may have set on the hook's page, and relay leaves as it is. Empty fields are left out. */
const ownSettings = z
  .object({
    branch_filter: z.string().optional(),
    // A secret. The newest versions do not show it.
    authorization_header: z.string().optional(),
  })
  .transform(({ branch_filter: branches, authorization_header: authorization }) => ({
    ...(branches && { branch_filter: branches }),
    ...(authorization && { authorization_header: authorization }),
  }))

/** routers/api/v1/repo/hook.go and routers/api/v1/utils/hook.go */
function giteaHooks(rest: Rest): host.Hooks {
  const list: host.Hooks['list'] = (repo) =>
    // Until a page is empty: a server may be set to smaller pages.
    rest.all(hooksPath(repo), z.array(hook), { limit: PAGE_SIZE }, ({ value }) => value.length > 0)
  const remove: host.Hooks['remove'] = async (repo, id) => {
    await rest.call('DELETE', `${hooksPath(repo)}/${id}`)
  }
  const post = async (repo: host.Repo, settings: host.HookSettings, own = {}): Promise<host.RepoHook> => {
    const body = { type: 'gitea', ...bodyOf(settings), ...own }
    return (await rest.call('POST', hooksPath(repo), { body, answer: hook })).value
  }
  return {
    list,
    remove,
    /** Gitea makes a second hook with the same address: of two relays that do so at one moment, each leaves the newest. */
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
     * PATCH clears the events, the branch filter and the authorization that it is not sent, and does not change the secret (`editHook`).
     * For another secret the hook is made again, and then the old one is removed.
     */
    async change(repo, id, settings, { sameSecret }) {
      const where = `${hooksPath(repo)}/${id}`
      const before = await rest.call('GET', where, { answer: ownSettings }).catch(ignoreGone)
      if (sameSecret && before) {
        const body = { ...bodyOf(settings), ...before.value }
        return (await rest.call('PATCH', where, { body, answer: hook })).value
      }
      const made = await post(repo, settings, before?.value)
      if (before) await onceMade(() => remove(repo, id).catch(ignoreGone))
      return made
    },
    /** A `push` of the last commit. Gitea has no ping. */
    async test(repo, id) {
      await rest.call('POST', `${hooksPath(repo)}/${id}/tests`)
    },
  }
}

/**
 * `active` is false by default. A server ignores names that it does not know, and with `issues` and `pull_request` sends those with a
 * suffix too (`addHook` in routers/api/v1/utils/hook.go).
 */
function bodyOf({ url, secret, events = [...WEBHOOK.events.keys()] }: host.HookSettings) {
  return { active: true, events, config: { url, content_type: 'json', secret: secret.reveal() } }
}

/** Another relay may have removed it a moment ago. */
function ignoreGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error
}

/** A refusal after a hook was made does not mean that there is none. @throws RelayError `provider_failed`, `cancelled` */
async function onceMade<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    const { kind, message } = toRelayError(cause)
    throw kind === 'cancelled' ? cause : new RelayError('provider_failed', message, { cause })
  }
}
