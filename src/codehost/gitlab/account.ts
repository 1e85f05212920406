import { z } from 'zod/mini'
import { RelayError } from '../../base/errors.js'
import type { OAuthClient } from '../../base/settings.js'
import type { Reaction } from '../actions.js'
import type * as host from '../host.js'
import { Refusal } from '../refusal.js'
import { apiPath, PAGE_SIZE, type RestClient } from '../rest.js'
import { gitlabHooks } from './hooks.js'
import { checksOf, type MergeRequest, mergeRequest, mergeRequestPath } from './merge-request.js'
import { merge } from './merge.js'

const user = z.object({ id: z.int(), username: z.string() })
const personalToken = z.object({ scopes: z.array(z.string()), expires_at: z.nullish(z.string()) })
const tokenInfo = z.object({ scope: z.array(z.string()), expires_in: z.nullish(z.number()) })

const note = z.object({
  id: z.int(),
  body: z.string(),
  system: z._default(z.boolean(), false),
  author: z.nullish(z.object({ username: z.string() })),
})
/** A note, or the summary of commands that made none (202). */
const written = z.object({ id: z.optional(z.int()) })
const award = z.object({ id: z.int(), name: z.string(), user: z.nullish(z.object({ username: z.string() })) })

/** Names of the reactions (https://docs.gitlab.com/api/emoji_reactions/; gemojione's). */
const EMOJI: Readonly<Record<Reaction, string>> = {
  '+1': 'thumbsup',
  '-1': 'thumbsdown',
  laugh: 'laughing',
  confused: 'confused',
  heart: 'heart',
  hooray: 'tada',
  rocket: 'rocket',
  eyes: 'eyes',
}

/** Form of an OAuth access token (`default_generator_method :hex` in config/initializers/doorkeeper.rb). */
const OAUTH_TOKEN = /^[0-9a-f]{64}$/

interface Callers {
  readonly rest: RestClient
  /** The same caller at the web address. */
  readonly oauth: RestClient
  readonly web: string
  readonly token: host.TokenSource
}

/** Calls of one user. `projects/:id` takes the path of a project in place of its id. */
export class GitLabAccount implements host.Account {
  readonly hooks: host.RepoHooks
  readonly revoke?: (client: OAuthClient) => Promise<void>
  readonly #rest: RestClient
  readonly #oauth: RestClient
  readonly #web: string

  constructor({ rest, oauth, web, token }: Callers) {
    this.#rest = rest
    this.#oauth = oauth
    this.#web = web
    this.hooks = gitlabHooks(rest)
    // A personal, project or group access token is the user's own, and may be in use elsewhere.
    if (typeof token === 'string' && OAUTH_TOKEN.test(token))
      this.revoke = (client) => revoke(oauth, token, client)
  }

  /**
   * GET /user, and the details of the token: GET /personal_access_tokens/self for personal, project and group tokens
   * (which refuses others with 400, lib/api/personal_access_tokens/self_information.rb), GET /oauth/token/info for those
   * of an application.
   */
  async facts(): Promise<host.TokenFacts> {
    const { value } = await this.#rest.call('GET', '/user', { answer: user })
    return { login: value.username, ...((await this.#ofPersonalToken()) ?? (await this.#ofOAuthToken())) }
  }

  /** It ends when its last day begins (`expired?` in app/models/concerns/expirable.rb). */
  async #ofPersonalToken(): Promise<Omit<host.TokenFacts, 'login'> | undefined> {
    const call = { answer: personalToken }
    const found = await this.#rest.call('GET', '/personal_access_tokens/self', call).catch(ignoreRefusal)
    if (!found) return undefined
    const { scopes, expires_at: day } = found.value
    const at = Date.parse(day ?? '')
    return { scopes, expiresAt: Number.isNaN(at) ? undefined : at }
  }

  async #ofOAuthToken(): Promise<Omit<host.TokenFacts, 'login'>> {
    const found = await this.#oauth
      .call('GET', '/oauth/token/info', { answer: tokenInfo })
      .catch(ignoreRefusal)
    if (!found) return { scopes: undefined, expiresAt: undefined }
    const { scope: scopes, expires_in: seconds } = found.value
    return { scopes, expiresAt: typeof seconds === 'number' ? Date.now() + seconds * 1000 : undefined }
  }

  /**
   * POST …/notes (https://docs.gitlab.com/api/notes/). A text with only quick actions is answered 202, without a note
   * (`process_note_creation_result` in lib/api/helpers/notes_helpers.rb).
   */
  async comment(
    on: host.IssueRef,
    body: string,
    options: host.CommentOptions = {},
  ): Promise<host.CommentResult> {
    checkQuickActions(body, options)
    const call = { body: { body }, answer: written }
    const { id } = (await this.#rest.call('POST', `${subjectPath(on)}/notes`, call)).value
    return id === undefined ? { id: null, url: this.#addressOf(on) } : this.#reference(on, id)
  }

  async *comments(on: host.IssueRef): AsyncIterable<host.Comment> {
    const query = { sort: 'asc', order_by: 'created_at', per_page: PAGE_SIZE }
    for await (const { id, body, author, system } of this.#rest.items(
      `${subjectPath(on)}/notes`,
      z.array(note),
      query,
    ))
      if (!system) yield { ...this.#reference(on, id), body, author: author?.username }
  }

  async editComment(
    on: host.IssueRef,
    id: number,
    body: string,
    options: host.CommentOptions = {},
  ): Promise<host.CommentRef> {
    checkQuickActions(body, options)
    await this.#rest.call('PUT', `${subjectPath(on)}/notes/${id}`, { body: { body } })
    return this.#reference(on, id)
  }

  #addressOf(on: host.IssueRef): string {
    return this.#web + pagePath(on)
  }

  #reference(on: host.IssueRef, id: number): host.CommentRef {
    return { id, url: `${this.#addressOf(on)}#note_${id}` }
  }

  async headChecks(pull: host.IssueRef): Promise<host.HeadChecks> {
    return checksOf(this.#rest, await this.#mergeRequest(pull))
  }

  async #mergeRequest(pull: host.IssueRef): Promise<MergeRequest> {
    return (await this.#rest.call('GET', mergeRequestPath(pull), { answer: mergeRequest })).value
  }

  merge(
    pull: host.IssueRef,
    options?: host.MergeOptions,
    watch?: host.MergeWatch,
  ): Promise<host.MergeResult> {
    return merge(this.#rest, pull, options, watch)
  }

  /**
   * POST …/award_emoji, 201. A repeated one is answered 404 with `Name has already been taken` (lib/api/award_emoji.rb,
   * gitlab-org/gitlab#26060), and is then looked up.
   */
  async react(
    to: host.IssueRef,
    content: Reaction,
    comment?: host.CommentTarget,
  ): Promise<host.ReactionResult> {
    const where = `${subjectPath(to)}${comment ? `/notes/${comment.id}` : ''}/award_emoji`
    const name = EMOJI[content]
    try {
      const { value } = await this.#rest.call('POST', where, { body: { name }, answer: award })
      return { id: value.id, content, created: true }
    } catch (error) {
      if (!(error instanceof Refusal && /has already been taken/.test(error.upstreamMessage))) throw error
    }
    const { value: own } = await this.#rest.call('GET', '/user', { answer: user })
    for await (const each of this.#rest.items(where, z.array(award), { per_page: PAGE_SIZE }))
      if (each.name === name && each.user?.username === own.username)
        return { id: each.id, content, created: false }
    return { id: null, content, created: false }
  }
}

/** Path of the page of an issue or a merge request. */
export function pagePath({ owner, repo, number, kind }: host.IssueRef): string {
  return `/${owner}/${repo}/-/${kind === 'pull' ? 'merge_requests' : 'issues'}/${number}`
}

/** Path of an issue or a merge request, which have numbers of their own. */
function subjectPath(on: host.IssueRef): string {
  if (on.kind === 'pull') return mergeRequestPath(on)
  return apiPath`/projects/${`${on.owner}/${on.repo}`}/issues/${on.number}`
}

/** GitLab removes carriage returns before it looks for quick actions (lib/gitlab/quick_actions/extractor.rb). */
const QUICK_ACTION = /^[ \t]*\/\p{L}.*$/mu

/**
 * GitLab takes a line that begins with a slash and the name of a command as a quick action: `/close`, `/merge`
 * (https://docs.gitlab.com/user/project/quick_actions/). A text from outside could close, merge or assign with the
 * user's rights.
 */
function checkQuickActions(body: string, { quickActions = false }: host.CommentOptions): void {
  const [line] = quickActions ? [] : (QUICK_ACTION.exec(body.replaceAll('\r', '')) ?? [])
  if (line === undefined) return
  throw new RelayError(
    'bad_request',
    `GitLab would carry out a line that begins with a slash, as a quick action: ${JSON.stringify(line.trim().slice(0, 60))}. Allow quick actions, or put another character before it`,
  )
}

function ignoreRefusal(error: unknown): undefined {
  const isRefused = error instanceof Refusal && [400, 401, 403, 404].includes(error.providerStatus)
  if (!isRefused) throw error
}

/**
 * POST /oauth/revoke, which ends the refresh token, too (RFC 7009; lib of Doorkeeper). An unknown token is no error; an
 * unknown client is (app/controllers/oauth/tokens_controller.rb).
 */
async function revoke(oauth: RestClient, token: string, client: OAuthClient): Promise<void> {
  const body = { token, client_id: client.id, client_secret: client.secret.reveal() }
  try {
    await oauth.call('POST', '/oauth/revoke', { body })
  } catch (error) {
    if (!(error instanceof Refusal && [401, 403].includes(error.providerStatus))) throw error
    throw new RelayError('forbidden', `${oauth.label} refused: it does not know this client id and secret`)
  }
}
