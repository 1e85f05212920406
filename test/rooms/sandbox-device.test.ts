import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { answerOf, call, CLIENT, json, NOW, start } from './sandbox-rig.js'

const JSON_TYPE = { accept: 'application/json' }
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

interface Codes {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
}

let now: number
let sandbox: Sandbox
beforeEach(async () => {
  now = NOW
  sandbox = await start({ clock: () => now })
})
afterEach(() => sandbox[Symbol.asyncDispose]())

const post = (path: string, fields: Record<string, string>, headers = {}): Promise<Response> =>
  fetch(sandbox.url + path, { method: 'POST', body: new URLSearchParams(fields), headers })
const requestCodes = (scope = 'repo'): Promise<Codes> =>
  json<Codes>(post('/login/device/code', { client_id: CLIENT.id, scope }, JSON_TYPE))
/** Polls without a client secret, as a device does. */
const poll = ({ device_code }: Pick<Codes, 'device_code'>, changes: Record<string, string> = {}) =>
  json<Record<string, unknown>>(
    post(
      '/login/oauth/access_token',
      { client_id: CLIENT.id, device_code, grant_type: DEVICE_GRANT, ...changes },
      JSON_TYPE,
    ),
  )
/** Enters the code in the page and presses a button of the next. */
const decide = async (userCode: string, authorize: '0' | '1'): Promise<Response> => {
  const page = await (await post('/login/device', { user_code: userCode })).text()
  const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
  return post('/login/device/confirmation', { authenticity_token: token, authorize })
}
const failure = (error: string) => ({
  error,
  error_description: expect.any(String),
  error_uri: expect.stringMatching(/^https:\/\/docs\.github\.com\//),
})

describe('the device flow', () => {
  it('signs in a device when the user has entered its code and agreed', async () => {
    const codes = await requestCodes('repo read:user')
    expect(codes).toEqual({
      device_code: expect.stringMatching(/^[0-9a-f]{40}$/),
      user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
      verification_uri: `${sandbox.url}/login/device`,
      expires_in: 900,
      interval: 5,
    })
    expect(await poll(codes)).toEqual(failure('authorization_pending'))
    const page = await decide(codes.user_code.toLowerCase().replace('-', ' '), '1')
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('You are signed in')])
    now += 5000
    const granted = await poll(codes)
    expect(granted).toEqual({
      access_token: expect.stringMatching(/^gho_/),
      scope: 'repo,read:user',
      token_type: 'bearer',
    })
    const user = call(sandbox, 'GET /user', { authorization: `Bearer ${String(granted['access_token'])}` })
    expect(await json(user)).toMatchObject({ login: 'octo' })
    now += 5000
    expect(await poll(codes)).toEqual(failure('incorrect_device_code'))
  })

  it('slows down a device that polls too often, by 5 seconds each time', async () => {
    const codes = await requestCodes()
    await poll(codes)
    now += 4999
    expect(await poll(codes)).toEqual({ ...failure('slow_down'), interval: 10 })
    now += 9999
    expect(await poll(codes)).toEqual({ ...failure('slow_down'), interval: 15 })
    now += 15_000
    expect(await poll(codes)).toEqual(failure('authorization_pending'))
  })

  it('ends when the user refuses', async () => {
    const codes = await requestCodes()
    expect(await (await decide(codes.user_code, '0')).text()).toContain('You were not signed in')
    expect(await poll(codes)).toEqual(failure('access_denied'))
    now += 5000
    expect(await poll(codes)).toEqual(failure('access_denied'))
    expect((await decide(codes.user_code, '1')).status).toBe(422)
  })

  it('ends after 15 minutes', async () => {
    const codes = await requestCodes()
    now += 899_999
    expect(await poll(codes)).toEqual(failure('authorization_pending'))
    now += 1
    expect(await poll(codes)).toEqual(failure('expired_token'))
    expect((await post('/login/device', { user_code: codes.user_code })).status).toBe(422)
  })

  it('refuses another device code, another client and another client’s device code', async () => {
    const codes = await requestCodes()
    expect(await poll({ device_code: 'other' })).toEqual(failure('incorrect_device_code'))
    expect(await poll(codes, { client_id: 'other' })).toEqual(failure('incorrect_client_credentials'))
    const unknown = await post('/login/device/code', { client_id: 'other' }, JSON_TYPE)
    expect(await answerOf(unknown)).toEqual({ status: 404, body: { error: 'Not Found' } })
  })

  it('can be switched off for the application', async () => {
    await using strict = await start({ deviceFlow: false })
    const body = new URLSearchParams({ client_id: CLIENT.id })
    const answer = await fetch(`${strict.url}/login/device/code`, {
      method: 'POST',
      body,
      headers: JSON_TYPE,
    })
    expect(await answerOf(answer)).toEqual({ status: 400, body: failure('device_flow_disabled') })
  })

  it('asks for consent in a form that works once', async () => {
    const codes = await requestCodes()
    const page = await (await post('/login/device', { user_code: codes.user_code })).text()
    const [, authenticity_token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
    expect((await post('/login/device/confirmation', { authorize: '1' })).status).toBe(422)
    expect(await poll(codes)).toEqual(failure('authorization_pending'))
    const confirm = { authenticity_token, authorize: '1' }
    expect((await post('/login/device/confirmation', confirm)).status).toBe(200)
    expect((await post('/login/device/confirmation', confirm)).status).toBe(422)
  })
})

describe('a personal access token', () => {
  it.each([
    ['classic', /^ghp_[0-9a-f]{40}$/, 'repo'],
    ['write', /^github_pat_[0-9a-f]{40}$/, null],
    ['read', /^github_pat_[0-9a-f]{40}$/, null],
  ])(
    'of the kind %s looks like %s, has the scopes %s, and may do everything',
    async (kind, shape, scopes) => {
      const form = await (await fetch(`${sandbox.url}/settings/tokens/new`)).text()
      const [, authenticity_token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(form) ?? []
      const page = await (await post('/settings/tokens', { authenticity_token, kind })).text()
      const [, token = ''] = /<code id="token">([^<]+)</.exec(page) ?? []
      expect(token).toMatch(shape)
      const headers = { authorization: `Bearer ${token}` }
      const user = await call(sandbox, 'GET /user', headers)
      expect(['scopes', 'client-id'].map((name) => user.headers.get(`x-oauth-${name}`))).toEqual([
        scopes,
        null,
      ])
      const made = await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'x' })
      expect(made.status).toBe(201)
    },
  )

  it('is made only by the form', async () => {
    const answer = await post('/settings/tokens', { kind: 'classic' })
    expect([answer.status, await answer.text()]).toEqual([422, expect.not.stringContaining('ghp_')])
  })
})
