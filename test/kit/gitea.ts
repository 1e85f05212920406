import { randomUUID } from 'node:crypto'
import { answerHooks, hooksState, notFound, refused } from './gitea-hooks.js'
import { type FullReply, type Received, receiver, valuesOf } from './receiver.js'

export type FakeGitea = Awaited<ReturnType<typeof fakeGitea>>

/** The commit that a merge of the fake makes. */
export const MERGE_COMMIT = 'c'.repeat(40)

/**
 * A Gitea 1.15 with one repository, `octo/demo` (once `octo/old`), under a path, as far as tests of commands come, with what is peculiar
 * about it: a merge is a POST that answers with an empty body, also one that waits for checks, as that of #2 does. What else it
 * answers is a table of the code hosts' tests.
 */
export async function fakeGitea() {
  const path = '/gitea'
  const state = {
    token: `eyJhbGciOi.${randomUUID()}.sig`,
    client: { id: randomUUID(), secret: 'gitea-client-secret' },
    hooks: hooksState(),
  }
  const merged = new Map([
    [1, false],
    [2, false],
  ])
  const rest = (request: Received, path: string): FullReply => {
    // routers/api/v1/misc/version.go: without a token
    if (path === '/version') return { body: { version: '1.25.0' } }
    const [authorization] = valuesOf(request, 'authorization')
    const known = authorization === `Bearer ${state.token}` || authorization === `token ${state.token}`
    // A private repository does not exist for a stranger who reads.
    if (!known) return request.method === 'GET' ? notFound : refused(401, 'token is required')
    if (path === '/user') return { body: { id: 1, login: 'mona', full_name: '', email: 'mona@example.org' } }
    if (path.startsWith('/repos/octo/old/')) return renamed(request)
    const [, rest = ''] = /^\/repos\/octo\/demo(\/.*)$/.exec(path) ?? []
    if (rest.startsWith('/hooks')) return answerHooks(state.hooks, request, rest.replace(/\?.*/, ''))
    const [, number, verb] = /^\/pulls\/(\d+)(\/merge)?$/.exec(rest) ?? []
    const isMerged = merged.get(Number(number))
    if (isMerged === undefined) return verb ? noPull : notFound
    if (!verb) return pullReply(Number(number), isMerged)
    // 1.15 looks first whether it is closed, which a merged one is.
    if (isMerged) return notFound
    if (number === '2') return { status: 201 }
    merged.set(Number(number), true)
    return { status: 200 }
  }
  const server = await receiver((request) => {
    if (!request.path.startsWith(`${path}/api/v1/`)) return { status: 404, body: '404 page not found\n' }
    return rest(request, request.path.slice(`${path}/api/v1`.length))
  })
  return {
    /** With its path. */
    url: `${server.url}${path}`,
    /** Every request that reached it, in order. */
    received: server.received,
    state,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** RedirectToRepo (services/context/repo.go): 307, with the path alone. */
function renamed({ path }: Received): FullReply {
  return { status: 307, headers: { location: path.replace('/octo/old/', '/octo/demo/') } }
}

function pullReply(number: number, merged: boolean): FullReply {
  const state = merged ? 'closed' : 'open'
  const merge_commit_sha = merged ? MERGE_COMMIT : null
  return { body: { number, state, head: { sha: 'a'.repeat(40) }, merged, mergeable: true, merge_commit_sha } }
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
