import { randomBytes } from 'node:crypto'
import { answerGitLabHooks, type GitLabHooksState, gitlabHooksState } from './gitlab-hooks.js'
import { answerOAuth, type OAuthState, oauthState } from './gitlab-oauth.js'
import { apiError, type GitLabToken, userOf } from './gitlab-parts.js'
import { answerSubjects, type SubjectsState, subjectsState } from './gitlab-subjects.js'
import { type FullReply, type Received, receiver, valuesOf } from './receiver.js'

export type FakeGitLab = Awaited<ReturnType<typeof fakeGitLab>>

/** Path of its one project, whose id is 7. */
export const GITLAB_REPO = 'group/sub/demo'
const PROJECT_ID = 7

export interface GitLabState {
  readonly version: string
  readonly oauth: OAuthState
  readonly subjects: SubjectsState
  readonly hooks: GitLabHooksState
  /** Answers that come instead of the next ones of its API. */
  readonly faults: FullReply[]
}

/**
 * A GitLab with the project `group/sub/demo`, as far as tests of commands come. What it answers is what the source of GitLab answers, cited at
 * each part as file of gitlabhq/gitlabhq: read in the versions of commit 017a6c129d6a (19.x) unless said.
 * @param version as `/api/v4/version` says it: signing tokens exist since 19.0
 */
export async function fakeGitLab({ version = '19.1.0', path = '' } = {}) {
  const state: GitLabState = {
    version,
    oauth: oauthState(),
    subjects: subjectsState(),
    hooks: gitlabHooksState(version),
    faults: [],
  }
  const server = await receiver(async (request) => {
    const where = new URL(request.path, 'http://x')
    if (!where.pathname.startsWith(`${path}/`)) return { status: 404, body: 'not here' }
    const below = where.pathname.slice(path.length)
    const url = `${server.url}${path}`
    if (below.startsWith('/oauth/')) return answerOAuth(state.oauth, request, below, where.searchParams)
    if (!below.startsWith('/api/v4/')) return { status: 404, body: '<html>404</html>' }
    const answer = await answerApi(state, request, below.slice('/api/v4'.length), where.searchParams, url)
    // lib/api/api.rb sets it on every response of the API.
    return {
      ...answer,
      headers: { 'x-gitlab-meta': '{"correlation_id":"x","version":"1"}', ...answer.headers },
    }
  })
  const here = {
    /** With its path. */
    url: `${server.url}${path}`,
    received: server.received,
    state,
    /** A personal access token of this user. */
    token({
      username = 'mona',
      scopes = ['api'],
      expiresAt,
    }: { username?: string; scopes?: readonly string[]; expiresAt?: string } = {}): string {
      const text = `glpat-${randomBytes(15).toString('base64url').slice(0, 20)}`
      state.oauth.tokens.set(text, { kind: 'personal', username, scopes, ...(expiresAt && { expiresAt }) })
      return text
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
  return here
}

const unauthorized = apiError(401, '401 Unauthorized')

async function answerApi(
  state: GitLabState,
  request: Received,
  path: string,
  query: URLSearchParams,
  url: string,
): Promise<FullReply> {
  const fault = state.faults.shift()
  if (fault) return fault
  const token = tokenOf(state.oauth, request)
  if (!token) return unauthorized
  const refused = refusalOf(token)
  if (refused) return refused
  if (path.startsWith('/personal_access_tokens/self')) return answerSelf(token, request)
  const accepted = request.method === 'GET' ? ['api', 'read_api'] : ['api']
  const scopes = path === '/user' ? [...accepted, 'read_user'] : accepted
  if (!scopes.some((scope) => token.scopes.includes(scope))) return insufficient(scopes)
  if (path === '/user') return { body: userOf(token.username) }
  if (path === '/version') return { body: { version: state.version, revision: 'abc1234' } }
  if (path === '/applications' && request.method === 'POST')
    return createApplication(state.oauth, token, request)
  const [, project = '', below = ''] = /^\/projects\/([^/]+)(\/.*)?$/.exec(path) ?? []
  if (![GITLAB_REPO, String(PROJECT_ID)].includes(decodeURIComponent(project)))
    return apiError(404, '404 Project Not Found')
  const text = request.body.toString()
  const call = { request, token, path: below, query, body: text === '' ? {} : JSON.parse(text), url }
  return (
    answerSubjects(state.subjects, call) ??
    (await answerGitLabHooks(state.hooks, call)) ??
    apiError(404, '404 Not Found')
  )
}

/** lib/gitlab/auth/auth_finders.rb: a bearer, or the header of a personal token. */
function tokenOf({ tokens }: OAuthState, request: Received): GitLabToken | undefined {
  const [bearer = ''] = valuesOf(request, 'authorization')
  const [personal] = valuesOf(request, 'private-token')
  return tokens.get(personal ?? bearer.replace(/^Bearer /i, ''))
}

/** The errors of `install_error_responders` in lib/api/api_guard.rb. */
function refusalOf({ revoked, expiresAt, ends }: GitLabToken): FullReply | undefined {
  const invalid = (error_description: string): FullReply => ({
    status: 401,
    body: { error: 'invalid_token', error_description },
  })
  if (revoked) return invalid('Token was revoked. You have to re-authorize from the user.')
  const isPast = expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()
  if (isPast || (ends !== undefined && ends <= Date.now()))
    return invalid('Token is expired. You can either do re-authorization or token refresh.')
  return undefined
}

function insufficient(scopes: readonly string[]): FullReply {
  const error_description = 'The request requires higher privileges than provided by the access token.'
  return { status: 403, body: { error: 'insufficient_scope', error_description, scope: scopes.join(' ') } }
}

/** lib/api/personal_access_tokens/self_information.rb of 1908a23ae556 */
function answerSelf(token: GitLabToken, { method }: Received): FullReply {
  const { kind, scopes, expiresAt = null } = token
  if (kind !== 'personal')
    return apiError(400, '400 Bad request - This endpoint requires token type to be a personal access token')
  if (method === 'DELETE') {
    token.revoked = true
    return { status: 204 }
  }
  const common = {
    id: 1,
    name: 'relay',
    revoked: false,
    active: true,
    created_at: '2026-11-01T00:00:00.000Z',
  }
  return {
    body: { ...common, description: '', scopes, user_id: 1, last_used_at: null, expires_at: expiresAt },
  }
}

/** lib/api/applications.rb: `authenticated_as_admin!`, and the secret is shown once. */
function createApplication({ client }: OAuthState, { username }: GitLabToken, { body }: Received): FullReply {
  if (username !== 'root') return apiError(403, '403 Forbidden')
  const { name, redirect_uri, confidential } = JSON.parse(body.toString())
  client.redirectUris.push(...String(redirect_uri).split(/\s+/))
  const { id: application_id, secret } = client
  const shown = { id: 1, application_id, application_name: name, callback_url: redirect_uri, confidential }
  return { status: 201, body: { ...shown, secret } }
}
