import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { verify } from '../helpers/sign.js'
import { type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'
import {
  answerOf,
  call,
  type Converted,
  install,
  json,
  jwt,
  makeApp,
  NOW,
  refusal,
  signIn,
  start,
} from './sandbox-rig.js'

let sandbox: Sandbox
let receiver: ScriptedServer
let status: number
let app: Converted
beforeEach(async () => {
  status = 200
  receiver = await scriptedServer(() => ({ status }))
  sandbox = await start()
  app = await makeApp(sandbox, { hook_attributes: { url: `${receiver.url}/app` } })
  await sandbox.idle()
})
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const asApp = (request: string, body?: unknown): Promise<Response> =>
  call(sandbox, request, jwt(app, NOW), body)
const comment = async (text: string): Promise<void> => {
  const headers = await signIn(sandbox)
  await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: text })
  await sandbox.idle()
}
const events = (): unknown[] => receiver.received.map(({ headers }) => headers['x-github-event'])

describe('the token of an App', () => {
  it('is accepted with the App’s id or its client id as issuer', async () => {
    const shown = await json<object>(asApp('GET /app'))
    expect(shown).toMatchObject({
      id: app.id,
      slug: app.slug,
      client_id: app.client_id,
      installations_count: 0,
    })
    for (const iss of [String(app.id), app.client_id])
      expect((await call(sandbox, 'GET /app', jwt(app, NOW, { iss }))).status).toBe(200)
    expect(Object.keys(shown)).not.toContain('pem')
  })

  const undecodable = 'A JSON web token could not be decoded'
  const expiry =
    "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
  const issued =
    "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
  const seconds = NOW / 1000
  it.each([
    ['has expired', { exp: seconds }, 401, expiry],
    ['does not expire', { exp: undefined }, 401, expiry],
    [
      'is valid for over 10 minutes',
      { exp: seconds + 601 },
      401,
      "'Expiration time' claim ('exp') is too far in the future",
    ],
    ['is from the future', { iat: seconds + 1 }, 401, issued],
    ['has no time of issue', { iat: undefined }, 401, issued],
    ['has no issuer', { iss: undefined }, 401, "Missing 'issuer' claim ('iss') in assertion"],
    ['is of an unknown App', { iss: 999 }, 404, 'Integration not found'],
  ])('is refused when it %s', async (_, claims, code, message) => {
    expect(await answerOf(await call(sandbox, 'GET /app', jwt(app, NOW, claims)))).toEqual(
      refusal(code, message),
    )
  })

  it('is refused when another key signed it, or none', async () => {
    await using elsewhere = await start()
    const other = await makeApp(elsewhere)
    expect(await answerOf(await call(sandbox, 'GET /app', jwt(other, NOW)))).toEqual(
      refusal(401, undecodable),
    )
    const { authorization } = jwt(app, NOW)
    const [header, , signature] = authorization.split('.')
    const claims = Buffer.from(JSON.stringify({ iss: app.id, iat: seconds, exp: seconds + 60 })).toString(
      'base64url',
    )
    for (const token of [
      `${header}.${claims}.${signature}`,
      `${header}.${claims}.`,
      authorization.slice(0, -9),
    ])
      expect(await answerOf(await call(sandbox, 'GET /app', { authorization: token }))).toEqual(
        refusal(401, undecodable),
      )
    const none = jwt(app, NOW, {}, { alg: 'none' })
    expect(await answerOf(await call(sandbox, 'GET /app', none))).toEqual(refusal(401, undecodable))
  })

  it('is no token of a user, nor the other way round', async () => {
    expect(await answerOf(await asApp('GET /user'))).toEqual(refusal(401, 'Bad credentials'))
    expect(await answerOf(await call(sandbox, 'GET /app', await signIn(sandbox)))).toEqual(
      refusal(401, undecodable),
    )
    expect(await answerOf(await call(sandbox, 'GET /app', {}))).toEqual(
      refusal(401, 'Requires authentication'),
    )
  })
})

describe('the webhook of an App', () => {
  it('gets a ping, the installation, and then its events, signed with its secret', async () => {
    await comment('too early')
    await install(sandbox, app)
    await comment('hello')
    await call(sandbox, 'PUT /repos/octo/demo/pulls/2/merge', await signIn(sandbox))
    await sandbox.idle()
    expect(events()).toEqual(['ping', 'installation', 'issue_comment'])
    const [ping, installation, event] = receiver.received
    expect(JSON.parse(ping?.body ?? '')).toEqual({
      zen: expect.any(String),
      hook_id: expect.any(Number),
      hook: expect.objectContaining({ type: 'App', app_id: app.id, events: ['issue_comment'] }),
    })
    expect(JSON.parse(installation?.body ?? '')).toMatchObject({
      action: 'created',
      installation: { id: 401, app_id: app.id, account: { login: 'octo' } },
      sender: { login: 'octo' },
    })
    expect(installation?.body).not.toMatch(/Codertocat|Hello-World|api\.github\.com|957387/)
    expect(event?.headers).toMatchObject({
      'x-github-hook-installation-target-type': 'integration',
      'x-github-hook-installation-target-id': String(app.id),
    })
    expect(JSON.parse(event?.body ?? '')).toMatchObject({
      installation: { id: 401 },
      comment: { body: 'hello' },
    })
    const secret = new Secret(app.webhook_secret ?? '')
    for (const { headers, body } of receiver.received)
      expect(verify(String(headers['x-hub-signature-256']), Buffer.from(body), { current: secret })).toBe(
        'current',
      )
  })

  it('has a delivery log, from which it redelivers', async () => {
    await install(sandbox, app)
    await sandbox.idle()
    status = 503
    await comment('while away')
    status = 200
    const text = await (await asApp('GET /app/hook/deliveries')).text()
    expect(JSON.parse(text)).toMatchObject([
      { event: 'issue_comment', status_code: 503, installation_id: 401, repository_id: 101 },
      { event: 'installation', status_code: 200, installation_id: 401, repository_id: null },
      { event: 'ping', status_code: 200, installation_id: null },
    ])
    const [, id] = /"id":(\d+)/.exec(text) ?? []
    expect((await asApp(`POST /app/hook/deliveries/${id}/attempts`)).status).toBe(202)
    await sandbox.idle()
    const [first, second] = receiver.received.slice(-2)
    expect([second?.body, second?.headers]).toEqual([first?.body, first?.headers])
  })

  it('shows and changes its settings', async () => {
    expect(await json(asApp('GET /app/hook/config'))).toEqual({
      content_type: 'json',
      insecure_ssl: '0',
      secret: '********',
      url: `${receiver.url}/app`,
    })
    const changed = await json(asApp('PATCH /app/hook/config', { url: `${receiver.url}/moved` }))
    expect(changed).toHaveProperty('url', `${receiver.url}/moved`)
    await install(sandbox, app)
    await comment('moved')
    expect(receiver.received.map(({ path }) => path)).toEqual(['/app', '/moved', '/moved'])
  })

  it('that is inactive gets nothing', async () => {
    const quiet = { hook_attributes: { url: `${receiver.url}/quiet`, active: false } }
    await using other = await start()
    const inactive = await makeApp(other, quiet)
    await install(other, inactive)
    const headers = await signIn(other)
    await call(other, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'x' })
    await other.idle()
    expect(events()).toEqual(['ping'])
    expect(await json(call(other, 'GET /app/hook/deliveries', jwt(inactive, NOW)))).toEqual([])
  })
})
