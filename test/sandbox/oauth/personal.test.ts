import { afterAll, describe, expect, it } from 'vitest'
import { answerOf, call, json, refusal, start } from '../rig.js'

const sandbox = await start()
afterAll(() => sandbox[Symbol.asyncDispose]())

/** Makes a token in the page, as a browser sends its form. */
async function make(
  ...fields: [string, string][]
): Promise<{ token: string; headers: { authorization: string } }> {
  const form = await (await fetch(`${sandbox.url}/settings/tokens/new`)).text()
  const [, authenticity = ''] = /name="authenticity_token" value="([^"]+)"/.exec(form) ?? []
  const body = new URLSearchParams([['authenticity_token', authenticity], ...fields])
  const page = await (await fetch(`${sandbox.url}/settings/tokens`, { method: 'POST', body })).text()
  const [, token = ''] = /<code id="token">([^<]+)</.exec(page) ?? []
  return { token, headers: { authorization: `Bearer ${token}` } }
}

const hooks = 'GET /repos/octo/demo/hooks'
const comment = 'POST /repos/octo/demo/issues/1/comments'

describe('a personal access token', () => {
  it('that is classic has the scopes that were chosen', async () => {
    const { token, headers } = await make(['kind', 'classic'], ['scope', 'repo'], ['scope', 'made-up'])
    expect(token).toMatch(/^ghp_[0-9a-f]{40}$/)
    const user = await call(sandbox, 'GET /user', headers)
    expect([user.headers.get('x-oauth-scopes'), user.headers.get('x-oauth-client-id')]).toEqual([
      'repo',
      null,
    ])
    expect(await json(user)).toMatchObject({ login: 'octo', id: 1 })
    expect((await call(sandbox, hooks, headers)).status).toBe(200)
    expect((await call(sandbox, comment, headers, { body: 'x' })).status).toBe(201)
  })

  it('without a scope may only read', async () => {
    const { headers } = await make(['kind', 'classic'])
    const user = await call(sandbox, 'GET /user', headers)
    expect([user.status, user.headers.get('x-oauth-scopes')]).toEqual([200, ''])
    expect((await call(sandbox, comment, headers, { body: 'x' })).status).toBe(404)
  })

  it('that is fine-grained has permissions instead of scopes', async () => {
    const { token, headers } = await make(['kind', 'write'])
    expect(token).toMatch(/^github_pat_[0-9a-f]{40}$/)
    const user = await call(sandbox, 'GET /user', headers)
    expect([user.status, user.headers.get('x-oauth-scopes')]).toEqual([200, null])
    expect((await call(sandbox, comment, headers, { body: 'x' })).status).toBe(201)
  })

  it('that may only read names the permission that is missing', async () => {
    const { headers } = await make(['kind', 'read'])
    expect((await call(sandbox, hooks, headers)).status).toBe(200)
    const created = await call(sandbox, 'POST /repos/octo/demo/hooks', headers, {})
    expect(created.headers.get('x-accepted-github-permissions')).toBe('repository_hooks=write')
    expect(await answerOf(created)).toEqual(refusal(403, 'Resource not accessible by personal access token'))
  })

  it('is made only by the form', async () => {
    const body = new URLSearchParams({ kind: 'classic', scope: 'repo' })
    const answer = await fetch(`${sandbox.url}/settings/tokens`, { method: 'POST', body })
    expect([answer.status, await answer.text()]).toEqual([422, expect.not.stringContaining('ghp_')])
  })
})
