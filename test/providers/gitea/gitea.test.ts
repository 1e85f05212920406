import { describe, expect, it } from 'vitest'
import { createProvider } from '../../../src/providers/open.js'
import { fakeGitea, MERGE_COMMIT } from '../../kit/gitea.js'
import { scriptedServer, type Answer, type Received } from '../../helpers/scripted-server.js'

const demo = { owner: 'octo', repo: 'demo' }
const hidden = '(no such repository or number, or no access to it)'

async function start() {
  const gitea = await fakeGitea()
  const provider = createProvider({ name: 'gitea', url: gitea.url })
  const lines = () =>
    gitea.received.map(({ method, path }) => `${method} ${path.replace('/gitea/api/v1', '')}`)
  return {
    gitea,
    provider,
    token: gitea.state.token,
    lines,
    [Symbol.asyncDispose]: gitea[Symbol.asyncDispose],
  }
}

it('describes a server under a path', () => {
  const { name, url, origin, webhook, oauth } = createProvider({
    name: 'gitea',
    url: 'https://git.example.org/gitea/',
  })
  expect({ name, url, origin, webhook, oauth }).toEqual({
    name: 'gitea',
    url: 'https://git.example.org/gitea',
    origin: 'https://git.example.org',
    webhook: {
      eventHeader: 'x-gitea-event',
      deliveryHeader: 'x-gitea-delivery',
      formSignature: 'payload',
      digestHeaders: ['x-gitea-signature'],
      events: expect.objectContaining({ marks: expect.any(Object) }),
      style: expect.any(Function),
      headers: expect.any(Function),
      verify: expect.any(Function),
      proof: { 'x-hub-signature-256': /^sha256=[0-9a-f]{64}$/ },
      summary: {
        action: ['action'],
        number: ['number', 'issue.number', 'pull_request.number'],
        repo: ['forkee.full_name', 'repository.full_name'],
      },
    },
    oauth: {
      authorizationEndpoint: 'https://git.example.org/gitea/login/oauth/authorize',
      tokenEndpoint: 'https://git.example.org/gitea/login/oauth/access_token',
      issuer: undefined,
      scopes: ['write:issue', 'write:repository', 'read:user'],
    },
  })
})

it('returns the account of the token', async () => {
  await using t = await start()
  expect(await t.provider.whoAmI(t.token)).toEqual({ login: 'mona' })
})

describe('comments', () => {
  it('on an issue', async () => {
    await using t = await start()
    expect(await t.provider.comment(t.token, { ...demo, issueNumber: 7, body: 'héllo' })).toEqual({
      id: 1,
      url: `${t.gitea.url}/octo/demo/issues/7#issuecomment-1`,
    })
    expect(t.gitea.state.comments).toEqual([{ issue: 7, body: 'héllo' }])
    expect(Object.fromEntries(t.gitea.received[0]?.headers ?? [])).toMatchObject({
      authorization: `Bearer ${t.token}`,
      accept: 'application/json',
      'user-agent': 'webhook-relay',
    })
  })

  it('on a missing issue: reading the issue explains the 500', async () => {
    await using t = await start()
    await expect(t.provider.comment(t.token, { ...demo, issueNumber: 8, body: 'x' })).rejects.toMatchObject({
      kind: 'not_found',
      message: `Gitea refused: Not Found ${hidden}`,
    })
    expect(t.lines()).toEqual(['POST /repos/octo/demo/issues/8/comments', 'GET /repos/octo/demo/issues/8'])
  })

  it.each<[string, Answer]>([
    ['there', { body: { number: 7 } }],
    ['unreadable', { status: 503 }],
    ['silent', 'reset'],
  ])('a 500 for an issue that is %s stays one, and nothing is posted again', async (_, issue) => {
    await using server = await scriptedServer(({ method }) => (method === 'POST' ? { status: 500 } : issue))
    const provider = createProvider({ name: 'gitea', url: server.url })
    await expect(provider.comment('t', { ...demo, issueNumber: 7, body: 'x' })).rejects.toMatchObject({
      kind: 'provider_failed',
      message: 'Gitea failed (500); the request may have been carried out all the same',
    })
    expect(server.received.map(({ method }) => method)).toEqual(['POST', 'GET'])
  })

  it('on a locked issue, and with a bad token', async () => {
    await using t = await start()
    await expect(t.provider.comment(t.token, { ...demo, issueNumber: 9, body: 'x' })).rejects.toMatchObject({
      kind: 'forbidden',
      message: 'Gitea refused: Issue is locked',
    })
    await expect(t.provider.comment('other', { ...demo, issueNumber: 7, body: 'x' })).rejects.toMatchObject({
      kind: 'invalid_token',
      message: 'Invalid or expired token',
    })
  })
})

describe('merges', () => {
  it('with an empty answer, reading the commit afterwards', async () => {
    await using t = await start()
    const options = { method: 'squash', title: 'T', message: 'M' } as const
    expect(await t.provider.merge(t.token, { ...demo, pullNumber: 1, ...options })).toEqual({
      merged: true,
      sha: MERGE_COMMIT,
    })
    expect(t.gitea.state.merges).toEqual([
      { pull: 1, body: { Do: 'squash', MergeTitleField: 'T', MergeMessageField: 'M' } },
    ])
    expect(t.lines()).toEqual(['POST /repos/octo/demo/pulls/1/merge', 'GET /repos/octo/demo/pulls/1'])
  })

  it('only the head that was meant', async () => {
    await using t = await start()
    const merge = (sha: string) => t.provider.merge(t.token, { ...demo, pullNumber: 1, sha })
    await expect(merge('b'.repeat(40))).rejects.toMatchObject({
      kind: 'conflict',
      message: 'Not merged: the head of the pull request is another commit',
    })
    expect(t.gitea.state.merges).toEqual([])
    const head = 'a'.repeat(40)
    expect(await merge(head)).toEqual({ merged: true, sha: MERGE_COMMIT })
    expect(t.gitea.state.merges).toEqual([{ pull: 1, body: { Do: 'merge', head_commit_id: head } }])
  })

  it('later, when checks are pending', async () => {
    await using t = await start()
    expect(await t.provider.merge(t.token, { ...demo, pullNumber: 2 })).toEqual({ merged: false, sha: null })
    expect(t.lines()).toEqual(['POST /repos/octo/demo/pulls/2/merge'])
  })

  it.each([
    [3, 'conflict', 'Not merged: it conflicts with its base branch, or the code host is still checking that'],
    [4, 'conflict', 'Gitea refused: Merge Conflict Error: exit status 1'],
    [5, 'not_found', `Gitea refused: Not Found ${hidden}`],
  ])('not pull request %i', async (pullNumber, kind, message) => {
    await using t = await start()
    await expect(t.provider.merge(t.token, { ...demo, pullNumber })).rejects.toMatchObject({ kind, message })
    expect(t.gitea.state.merges).toHaveLength(1)
  })

  it.each<[string, Answer, string]>([
    ['fails', { status: 502 }, 'Gitea failed (502)'],
    [
      'does not show the merge yet',
      { body: { merged: false } },
      'Gitea gave an answer that was not understood',
    ],
  ])('reports that it merged when reading the commit %s', async (_, pull, why) => {
    const answer = ({ method }: Received): Answer => (method === 'POST' ? { status: 200 } : pull)
    await using server = await scriptedServer(answer)
    const provider = createProvider({ name: 'gitea', url: server.url })
    await expect(provider.merge('t', { ...demo, pullNumber: 1 })).rejects.toMatchObject({
      kind: 'provider_failed',
      message: `Gitea merged it, but did not return the commit: ${why}`,
    })
    expect(server.received.map(({ method }) => method)).toEqual(['POST', 'GET'])
  })

  it('once when the connection breaks', async () => {
    await using server = await scriptedServer(() => 'reset')
    const provider = createProvider({ name: 'gitea', url: server.url })
    await expect(provider.merge('t', { ...demo, pullNumber: 1 })).rejects.toMatchObject({
      kind: 'provider_failed',
    })
    expect(server.received).toHaveLength(1)
  })
})

describe('reactions', () => {
  it('have no id, and say whether they are new', async () => {
    await using t = await start()
    const react = () => t.provider.react(t.token, { ...demo, issueNumber: 7, content: 'heart' })
    expect([await react(), await react()]).toEqual([
      { id: null, content: 'heart', created: true },
      { id: null, content: 'heart', created: false },
    ])
  })

  it('go to comments and review comments alike', async () => {
    await using t = await start()
    await t.provider.react(t.token, { ...demo, issueNumber: 7, content: 'eyes', commentId: 3 })
    await t.provider.react(t.token, { ...demo, issueNumber: 7, content: 'eyes', reviewCommentId: 4 })
    expect([...t.gitea.state.reactions]).toEqual(['comment 3 eyes', 'comment 4 eyes'])
  })
})
