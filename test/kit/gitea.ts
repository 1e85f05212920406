import { randomUUID } from 'node:crypto'
import { answerHooks, type HooksState, hooksState, refused } from './gitea-hooks.js'
import { type FullReply, type Received, receiver, valuesOf } from './receiver.js'

export interface FakePull {
  readonly head: string
  merged: boolean
  /** What Gitea does when asked to merge it. */
  readonly on: 'merges' | 'waits for checks' | 'is not mergeable' | 'conflicts'
}

/** What the fake holds and was told. Tests read it, and change it beforehand. */
export interface GiteaState {
  readonly token: string
  readonly client: { readonly id: string; readonly secret: string }
  readonly issues: Map<number, { readonly locked: boolean }>
  readonly pulls: Map<number, FakePull>
  readonly comments: { readonly issue: number; readonly body: string }[]
  /** `issue or comment path content`, e.g. `7 heart`. */
  readonly reactions: Set<string>
  /** The merges that were asked for, as they came. */
  readonly merges: { readonly pull: number; readonly body: unknown }[]
  readonly hooks: HooksState
}

export type FakeGitea = Awaited<ReturnType<typeof fakeGitea>>

/** The commit that a merge of the fake makes. */
export const MERGE_COMMIT = 'c'.repeat(40)

const ALLOWED = new Set(['+1', '-1', 'laugh', 'hooray', 'confused', 'heart', 'rocket', 'eyes'])

/**
 * A Gitea 1.15 with one repository, `octo/demo` (once `octo/old`), under a path, as far as relay calls it, with what is peculiar
 * about it: a merge is a POST that answers with an empty body, reactions have no id, a comment on a missing issue answers
 * 500, a conflict two JSON documents, a forbidden merge an empty message, an unknown `head_commit_id` is ignored.
 */
export async function fakeGitea() {
  const path = '/gitea'
  const state = demoState()
  const server = await receiver((request) => {
    if (!request.path.startsWith(`${path}/api/v1/`)) return { status: 404, body: '404 page not found\n' }
    return rest(state, url, request, request.path.slice(`${path}/api/v1`.length))
  })
  const url = `${server.url}${path}`
  return {
    /** With its path. */
    url,
    /** Every request that reached it, in order. */
    received: server.received,
    state,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function demoState(): GiteaState {
  const head = 'a'.repeat(40)
  return {
    token: `eyJhbGciOi.${randomUUID()}.sig`,
    client: { id: randomUUID(), secret: 'gitea-client-secret' },
    issues: new Map([
      [7, { locked: false }],
      [9, { locked: true }],
    ]),
    pulls: new Map([
      [1, { head, merged: false, on: 'merges' }],
      [2, { head, merged: false, on: 'waits for checks' }],
      [3, { head, merged: false, on: 'is not mergeable' }],
      [4, { head, merged: false, on: 'conflicts' }],
    ]),
    comments: [],
    reactions: new Set(),
    merges: [],
    hooks: hooksState(),
  }
}

const notFound: FullReply = {
  status: 404,
  body: { message: 'Not Found', documentation_url: 'https://try.gitea.io/api/swagger', errors: null },
}
function rest(state: GiteaState, url: string, request: Received, path: string): FullReply {
  const [authorization] = valuesOf(request, 'authorization')
  const known = authorization === `Bearer ${state.token}` || authorization === `token ${state.token}`
  // A private repository does not exist for a stranger who reads.
  if (!known) return request.method === 'GET' ? notFound : refused(401, 'token is required')
  if (path === '/user') return { body: { id: 1, login: 'mona', full_name: '', email: 'mona@example.org' } }
  if (path.startsWith('/repos/octo/old/')) return renamed(request)
  const [, rest = ''] = /^\/repos\/octo\/demo(\/.*)$/.exec(path) ?? []
  if (rest.startsWith('/hooks')) return answerHooks(state.hooks, request, rest.replace(/\?.*/, ''))
  const [, kind, number, verb = ''] = /^\/(issues|pulls|issues\/comments)\/(\d+)(\/\w+)?$/.exec(rest) ?? []
  const n = Number(number)
  switch (`${request.method} ${kind}${verb}`) {
    case 'GET issues':
      return state.issues.has(n) ? { body: { number: n } } : notFound
    case 'POST issues/comments':
      return comment(state, url, n, request)
    case 'POST issues/reactions':
      return state.issues.has(n) ? react(state, `${n}`, request) : notFound
    case 'POST issues/comments/reactions':
      return react(state, `comment ${n}`, request)
    case 'GET pulls':
      return pullReply(state.pulls.get(n), n)
    case 'POST pulls/merge':
      return merge(state, n, request)
    default:
      return notFound
  }
}

/** RedirectToRepo (services/context/repo.go): 307, with the path alone. */
function renamed({ path }: Received): FullReply {
  return { status: 307, headers: { location: path.replace('/octo/old/', '/octo/demo/') } }
}

function comment(state: GiteaState, url: string, issue: number, request: Received): FullReply {
  const found = state.issues.get(issue)
  if (!found) return refused(500, '')
  if (found.locked) return refused(403, 'Issue is locked')
  const { body }: { body: string } = JSON.parse(request.body.toString())
  const id = state.comments.push({ issue, body })
  return { status: 201, body: { id, html_url: `${url}/octo/demo/issues/${issue}#issuecomment-${id}`, body } }
}

function react(state: GiteaState, on: string, request: Received): FullReply {
  const { content }: { content: string } = JSON.parse(request.body.toString())
  if (!ALLOWED.has(content)) return refused(403, `'${content}' is not an allowed reaction`)
  const key = `${on} ${content}`
  const status = state.reactions.has(key) ? 200 : 201
  state.reactions.add(key)
  return { status, body: { user: { login: 'mona' }, content, created_at: '2026-11-20T10:00:00Z' } }
}

function pullReply(pull: FakePull | undefined, number: number): FullReply {
  if (!pull) return notFound
  const { head, merged, on } = pull
  const state = merged ? 'closed' : 'open'
  const mergeable = on === 'merges' || on === 'waits for checks'
  const merge_commit_sha = merged ? MERGE_COMMIT : null
  return { body: { number, state, head: { sha: head }, merged, mergeable, merge_commit_sha } }
}

function merge(state: GiteaState, number: number, request: Received): FullReply {
  const pull = state.pulls.get(number)
  state.merges.push({ pull: number, body: JSON.parse(request.body.toString()) })
  // 1.15 looks first whether it is closed, which a merged one is.
  if (!pull) return noPull
  if (pull.merged) return notFound
  if (pull.on === 'is not mergeable') return refused(405, '')
  if (pull.on === 'conflicts') return { status: 409, body: CONFLICT }
  if (pull.on === 'waits for checks') return { status: 201 }
  pull.merged = true
  return { status: 200 }
}

/** MergePullRequest (routers/api/v1/repo/pull.go): the name of a function, and its error. */
const noPull: FullReply = {
  status: 404,
  body: {
    message: 'GetPullRequestByIndex',
    documentation_url: 'https://try.gitea.io/api/swagger',
    errors: ['pull request does not exist [id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: 1]'],
  },
}

/** Two documents, as the server that forgets to return writes them. */
const CONFLICT = [
  JSON.stringify({
    Style: 'merge',
    StdOut: 'CONFLICT (content): Merge conflict in a.txt',
    StdErr: '',
    Err: {},
  }),
  JSON.stringify({ message: 'Merge Conflict Error: exit status 1', url: 'https://x/api/swagger' }),
  '',
].join('\n')
