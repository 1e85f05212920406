import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Sandbox } from '../../../src/sandbox/start.js'
import { answerOf, call, json, NOW, refusal, start } from '../rig.js'
import { type Converted, install, jwt, makeApp } from './rig.js'

const HOUR = 3_600_000

let now: number
let sandbox: Sandbox
let app: Converted
beforeEach(async () => {
  now = NOW
  sandbox = await start({ clock: () => now })
  app = await makeApp(sandbox)
})
afterEach(() => sandbox.close())

const asApp = (request: string, body?: unknown): Promise<Response> =>
  call(sandbox, request, jwt(app, now), body)

interface Token {
  readonly token: string
}

const COMMENT = 'POST /repos/octo/demo/issues/1/comments'
const TOKENS = 'POST /app/installations/401/access_tokens'
const bearer = ({ token }: Token) => ({ authorization: `Bearer ${token}` })

it('are listed, and found by id and by repository, for the App alone', async () => {
  expect(await json(asApp('GET /app/installations'))).toEqual([])
  const paths = ['/app/installations/401', '/repos/octo/demo/installation']
  for (const path of paths)
    expect(await answerOf(await asApp(`GET ${path}`))).toEqual(refusal(404, 'Not Found'))
  await install(sandbox, app)
  await install(sandbox, app)
  const shown = {
    id: 401,
    app_id: app.id,
    app_slug: 'my-relay',
    repository_selection: 'all',
    permissions: { issues: 'write' },
    access_tokens_url: `${sandbox.url}/api/v3/app/installations/401/access_tokens`,
  }
  expect(await json(asApp('GET /app/installations'))).toMatchObject([shown])
  for (const path of paths) expect(await json(asApp(`GET ${path}`))).toMatchObject(shown)
  for (const path of ['/app/installations/402', '/repos/octo/nowhere/installation'])
    expect(await answerOf(await asApp(`GET ${path}`))).toEqual(refusal(404, 'Not Found'))
  const other = await makeApp(sandbox, { name: 'Other' }, 'Other')
  for (const path of paths) expect((await call(sandbox, `GET ${path}`, jwt(other, now))).status).toBe(404)
})

it('give tokens for an hour, with which the App acts by itself', async () => {
  await install(sandbox, app)
  const given = await answerOf(await asApp(TOKENS))
  expect(given).toEqual({
    status: 201,
    body: {
      token: expect.stringMatching(/^ghs_[0-9a-f]{40}$/),
      expires_at: '2026-05-04T04:02:01Z',
      permissions: { issues: 'write', repository_hooks: 'write' },
      repository_selection: 'all',
    },
  })
  const headers = bearer(await json<Token>(asApp(TOKENS)))
  const comment = await json(call(sandbox, COMMENT, headers, { body: 'by itself' }))
  expect(comment).toMatchObject({ user: { login: 'my-relay[bot]', type: 'Bot' } })
  expect(await answerOf(await call(sandbox, 'GET /user', headers))).toEqual(
    refusal(403, 'Resource not accessible by integration'),
  )
  expect((await call(sandbox, 'PUT /repos/octo/demo/pulls/2/merge', headers)).status).toBe(403)
  now += HOUR
  expect(await answerOf(await call(sandbox, COMMENT, headers, { body: 'late' }))).toEqual(
    refusal(401, 'Bad credentials'),
  )
})

it('give tokens with fewer permissions and repositories, and none with more', async () => {
  await install(sandbox, app)
  const few = { permissions: { issues: 'read' }, repositories: ['demo'] }
  const token = await json<Token>(asApp(TOKENS, few))
  expect(token).toMatchObject({
    permissions: { issues: 'read' },
    repository_selection: 'selected',
    repositories: [{ full_name: 'octo/demo' }],
  })
  expect((await call(sandbox, COMMENT, bearer(token), { body: 'x' })).status).toBe(403)
  expect((await call(sandbox, 'GET /repos/octo/demo', bearer(token))).status).toBe(200)
  expect((await call(sandbox, 'GET /repos/octo/no-issues', bearer(token))).status).toBe(404)
  for (const permissions of [{ contents: 'read' }, { issues: 'admin' }, 'issues'])
    expect(await answerOf(await asApp(TOKENS, { permissions }))).toEqual(
      refusal(422, 'The permissions requested are not granted to this installation.'),
    )
  for (const body of [{ repositories: ['nowhere'] }, { repository_ids: [7] }])
    expect(await answerOf(await asApp(TOKENS, body))).toEqual(
      refusal(
        422,
        'There is at least one repository that does not exist or is not accessible to the parent installation.',
      ),
    )
})
