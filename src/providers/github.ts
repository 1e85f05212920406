import { z } from 'zod'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { OAuthClient, ProviderName } from '../base/settings.js'
import { Refusal } from './errors.js'
import type { SendOnce } from './fetch.js'
import { send, type Api, type Call } from './http.js'
import type {
  CommentInput,
  MergeInput,
  MergeResult,
  OAuthEndpoints,
  Provider,
  ReactInput,
} from './provider.js'

/** An address that has been checked, and how to call it. */
export interface HostOptions {
  readonly name: ProviderName
  readonly url: URL
  readonly fetch: SendOnce
  readonly timeLimit: number
}

const login = z.object({ login: z.string() })
const comment = z.object({ id: z.int(), html_url: z.url({ protocol: /^https?$/ }) })
const merged = z.object({ sha: z.string(), merged: z.literal(true) })
const reaction = z.object({ id: z.int() })

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
    async whoAmI(token, options) {
      return (await send(api, { method: 'GET', path: ['user'], token, answer: login, ...options })).value
    },
    comment: (token, input, options) => postComment(api, token, input, options),
    merge: (token, input, options) => putMerge(api, token, input, options),
    react: (token, input, options) => postReaction(api, token, input, options),
    revokeToken: (token, client, options) => deleteToken(api, token, client, options),
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

/** POST /repos/{owner}/{repo}/issues/{n}/comments; a pull request is an issue. */
async function postComment(api: Api, token: string, input: CommentInput, options?: Cancellable) {
  const path = ['repos', input.owner, input.repo, 'issues', input.issueNumber, 'comments']
  const call: Call<z.infer<typeof comment>> = {
    method: 'POST',
    path,
    token,
    body: { body: input.body },
    answer: comment,
  }
  const { value } = await send(api, { ...call, ...options })
  return { id: value.id, url: value.html_url }
}

/** PUT /repos/{owner}/{repo}/pulls/{n}/merge. */
async function putMerge(
  api: Api,
  token: string,
  input: MergeInput,
  options?: Cancellable,
): Promise<MergeResult> {
  const path = ['repos', input.owner, input.repo, 'pulls', input.pullNumber, 'merge']
  const body = {
    merge_method: input.method,
    commit_title: input.title,
    commit_message: input.message,
    sha: input.sha,
  }
  const { value } = await send(api, { method: 'PUT', path, token, body, answer: merged, ...options })
  return { merged: true, sha: value.sha }
}

/** POST …/reactions of the issue, comment or review comment: 201 made, 200 it was there. */
async function postReaction(api: Api, token: string, input: ReactInput, options?: Cancellable) {
  const { content } = input
  const path = ['repos', input.owner, input.repo, ...reactedTo(input), 'reactions']
  const { status, value } = await send(api, {
    method: 'POST',
    path,
    token,
    body: { content },
    answer: reaction,
    ...options,
  })
  return { id: value.id, content, created: status === 201 }
}

function reactedTo({ issueNumber, commentId, reviewCommentId }: ReactInput): (string | number)[] {
  if (commentId !== undefined) return ['issues', 'comments', commentId]
  if (reviewCommentId !== undefined) return ['pulls', 'comments', reviewCommentId]
  return ['issues', issueNumber]
}

/** DELETE /applications/{client_id}/token; 404 and 422 say that there is no such token of this application. */
async function deleteToken(
  api: Api,
  token: string,
  client: OAuthClient,
  options?: Cancellable,
): Promise<void> {
  const path = ['applications', client.id, 'token']
  const body = { access_token: token }
  try {
    await send(api, { method: 'DELETE', path, token, client, body, answer: z.unknown(), ...options })
  } catch (error) {
    if (error instanceof Refusal && [404, 422].includes(error.providerStatus)) return
    if (!(error instanceof RelayError) || error.kind !== 'invalid_token') throw error
    throw new RelayError('forbidden', `${api.label} refused: it does not know this client id and secret`)
  }
}
