import { describe, expect, it } from 'vitest'
import { startSandbox, TEST_SECRET } from '../../src/testing/index.js'
import { startTarget, valuesOf } from '../helpers/target.js'
import { verify } from '../helpers/sign.js'
import { Secret } from '../../src/base/secret.js'

function comment(url: string, token: string): Promise<Response> {
  return fetch(`${url}/api/v3/repos/octo/demo/issues/1/comments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ body: 'hello' }),
  })
}

describe('startSandbox', () => {
  it('issues tokens for its API and shows what they were used for', async () => {
    await using sandbox = await startSandbox()
    expect((await comment(sandbox.url, await sandbox.token())).status).toBe(201)
    expect(sandbox.comments).toMatchObject([{ repo: 'octo/demo', issueNumber: 1, body: 'hello' }])
    const { requests } = sandbox
    expect(requests.at(-1)).toEqual({ method: 'POST', path: '/api/v3/repos/octo/demo/issues/1/comments' })
    expect((await comment(sandbox.url, await sandbox.token('read:user'))).status).toBe(404)
  })

  it('sends signed webhooks', async () => {
    let url = ''
    await using sandbox = await startSandbox({ webhook: () => url })
    await using app = await startTarget()
    url = `${app.url}/hooks`
    await comment(sandbox.url, await sandbox.token())
    await sandbox.idle()
    const [handed] = app.received
    if (!handed) throw new Error('none was sent')
    expect([handed.path, ...valuesOf(handed, 'x-github-event')]).toEqual(['/hooks', 'issue_comment'])
    const [signature] = valuesOf(handed, 'x-hub-signature-256')
    expect(verify(signature, handed.body, { current: new Secret(TEST_SECRET) })).toBe('current')
  })

  it('fails with the faults that are set', async () => {
    await using sandbox = await startSandbox()
    const token = await sandbox.token()
    sandbox.faults.next('comment', '502')
    const statuses = [await comment(sandbox.url, token), await comment(sandbox.url, token)]
    expect(statuses.map(({ status }) => status)).toEqual([502, 201])
    sandbox.faults.next('token', '502')
    await expect(sandbox.token()).rejects.toMatchObject({ kind: 'unauthenticated' })
  })

  it('uses the given application, whose tokens expire', async () => {
    const client = { id: 'mine', secret: 'also mine' }
    await using sandbox = await startSandbox({ client, lifetimes: { access: 0, refresh: 60 } })
    expect((await comment(sandbox.url, await sandbox.token())).status).toBe(401)
  })
})
