import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { agree, consent, device, formOf, post as submit } from '../kit/pages.js'
import {
  answerOf,
  authorizeUrl,
  call,
  CLIENT,
  type Fields,
  json,
  NOW,
  post,
  REDIRECT_URI,
  refusal,
  start,
  VERIFIER,
} from './sandbox-rig.js'

let now = NOW
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await start({ clock: () => now, lifetimes: { access: 28_800, refresh: 15_897_600 } })
})
beforeEach(() => void (now = NOW))
afterAll(() => sandbox[Symbol.asyncDispose]())

interface Answer {
  readonly error?: string
  readonly access_token?: string
  readonly refresh_token?: string
  readonly scope?: string
}

const NO_CHALLENGE = { code_challenge: null, code_challenge_method: null }

/** A code that the user has agreed to. */
async function getCode(changes: Fields = {}): Promise<string> {
  const landing = await consent(authorizeUrl(sandbox, changes))
  return new URL(landing).searchParams.get('code') ?? ''
}

/** What the token endpoint answers to a valid request with `changes`. */
async function redeem(code: string, changes: Fields = {}): Promise<Answer> {
  const client = { client_id: CLIENT.id, client_secret: CLIENT.secret }
  const fields = { ...client, code, redirect_uri: REDIRECT_URI, code_verifier: VERIFIER, ...changes }
  const answer = await post(sandbox, '/login/oauth/access_token', fields)
  // As GitHub, also for a refusal.
  expect(answer.status).toBe(200)
  return json<Answer>(answer)
}

const manifest = (changes: object = {}): string =>
  JSON.stringify({
    name: 'My relay',
    url: 'https://example.com/',
    redirect_url: REDIRECT_URI,
    default_events: ['issue_comment'],
    default_permissions: { issues: 'write' },
    ...changes,
  })

/** Registers an App of that name. Its code, and what only the answer to the code shows. */
async function register(name: string) {
  const action = `${sandbox.url}/settings/apps/new`
  const landing = await agree({ action, manifest: manifest({ name }) })
  const code = new URL(landing).searchParams.get('code') ?? ''
  const app = await json<{ id: number; client_id: string; client_secret: string; pem: string }>(
    call(sandbox, `POST /app-manifests/${code}/conversions`, {}),
  )
  return { code, ...app }
}

/** The codes that a device gets. */
const deviceCodes = (): Promise<{ user_code: string; device_code: string }> =>
  json(post(sandbox, '/login/device/code', { client_id: CLIENT.id, scope: 'repo' }))

/** What a device is answered that polls without a client secret. */
const poll = (device_code: string, changes: Fields = {}): Promise<Answer> =>
  redeem('', {
    client_secret: null,
    device_code,
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    ...changes,
  })

const TOKEN = expect.stringMatching(/^gho_[0-9a-f]{40}$/)
const BAD_CODE = 'bad_verification_code'

describe('an authorization request', () => {
  it.each([
    ['an unknown client', { client_id: 'other' }, 404],
    ['no redirect URI', { redirect_uri: null }, 400],
    ['another computer', { redirect_uri: 'http://example.com/callback' }, 400],
    ['a name that only looks local', { redirect_uri: 'http://localhost.example.com/' }, 400],
    ['an address that only looks local', { redirect_uri: 'http://127.0.0.1@example.com/' }, 400],
    ['a fragment in the redirect URI', { redirect_uri: `${REDIRECT_URI}#x` }, 400],
    ['a script as redirect URI', { redirect_uri: 'javascript://localhost/%0aalert(1)' }, 400],
  ])('with %s is refused without a redirect', async (_, changes, status) => {
    const answer = await fetch(authorizeUrl(sandbox, changes), { redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([status, null])
  })

  it.each(['client_id', 'redirect_uri', 'state'])('with %s twice is refused without one', async (name) => {
    const answer = await fetch(`${authorizeUrl(sandbox)}&${name}=x`, { redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
  })

  it('leads back with the query of the redirect URI, the state and the sender', async () => {
    const landing = await consent(authorizeUrl(sandbox, { redirect_uri: `${REDIRECT_URI}?a=1&b=%26` }))
    const { code: _, ...query } = Object.fromEntries(new URL(landing).searchParams)
    expect(query).toEqual({ a: '1', b: '&', state: 'st&te=é', iss: `${sandbox.url}/login/oauth` })
  })

  it.each([
    ['another response type', { response_type: 'token' }, 'unsupported_response_type'],
    ['a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a challenge without method', { code_challenge_method: null }, 'invalid_request'],
    ['a challenge of the wrong length', { code_challenge: 'abc' }, 'invalid_request'],
  ])('with %s is refused to the application', async (_, changes, error) => {
    const answer = await fetch(authorizeUrl(sandbox, changes), { redirect: 'manual' })
    const { searchParams } = new URL(answer.headers.get('location') ?? '')
    const { error_description: _text, ...query } = Object.fromEntries(searchParams)
    expect(query).toEqual({ error, state: 'st&te=é', iss: `${sandbox.url}/login/oauth` })
  })
})

it('a form is taken once, and only with the token of its page', async () => {
  await register('Installed')
  const { user_code } = await deviceCodes()
  for (const [page, fields, status] of [
    [fetch(authorizeUrl(sandbox)), { authorize: '1' }, 302],
    [submit(`${sandbox.url}/login/device`, { user_code }), { authorize: '1' }, 200],
    [fetch(`${sandbox.url}/settings/tokens/new`), { kind: 'classic' }, 200],
    [submit(`${sandbox.url}/settings/apps/new`, { manifest: manifest() }), { name: 'Once' }, 302],
    [fetch(`${sandbox.url}/apps/installed/installations/new`), {}, 200],
  ] as const) {
    const { url, token: authenticity_token } = await formOf(await page)
    const statuses: number[] = []
    for (const token of [{}, { authenticity_token: 'x' }, { authenticity_token }, { authenticity_token }])
      statuses.push((await submit(url, Object.entries({ ...fields, ...token }))).status)
    expect([url, ...statuses]).toEqual([url, 422, 422, status, 422])
  }
})

describe('a code', () => {
  it.each([
    ['a wrong secret', { client_secret: 'wrong' }, 'incorrect_client_credentials'],
    ['no secret', { client_secret: null }, 'incorrect_client_credentials'],
    ['an unknown client', { client_id: 'other' }, 'incorrect_client_credentials'],
    ['another code', { code: '0'.repeat(40) }, BAD_CODE],
    ['a wrong redirect URI', { redirect_uri: `${REDIRECT_URI}/` }, 'redirect_uri_mismatch'],
    ['a wrong verifier', { code_verifier: VERIFIER.replace('d', 'e') }, BAD_CODE],
    ['no verifier', { code_verifier: null }, BAD_CODE],
    ['a grant type it does not know', { grant_type: 'password' }, 'unsupported_grant_type'],
  ])('is refused for %s', async (_, changes, error) => {
    expect(await redeem(await getCode(), changes)).toMatchObject({ error })
  })

  it('needs no PKCE, like GitHub, and no redirect URI; with PKCE a verifier of the right length', async () => {
    const without = { code_verifier: null, redirect_uri: null }
    expect(await redeem(await getCode(NO_CHALLENGE), without)).toMatchObject({ access_token: TOKEN })
    expect(await redeem(await getCode(NO_CHALLENGE))).toMatchObject({ error: BAD_CODE })
    const challenge = createHash('sha256').update('short').digest('base64url')
    const short = await redeem(await getCode({ code_challenge: challenge }), { code_verifier: 'short' })
    expect(short).toMatchObject({ error: BAD_CODE })
  })

  it('works once, for 10 minutes; a wrong verifier uses it up, a wrong secret does not', async () => {
    const [once, spoilt, kept, early, late] = await Promise.all(Array.from({ length: 5 }, () => getCode()))
    expect(await redeem(once ?? '')).toMatchObject({ access_token: TOKEN })
    expect(await redeem(once ?? '')).toMatchObject({ error: BAD_CODE })
    await redeem(spoilt ?? '', { code_verifier: 'x'.repeat(43) })
    expect(await redeem(spoilt ?? '')).toMatchObject({ error: BAD_CODE })
    await redeem(kept ?? '', { client_secret: 'wrong' })
    expect(await redeem(kept ?? '')).toMatchObject({ access_token: TOKEN })
    now += 599_999
    expect(await redeem(early ?? '')).toMatchObject({ access_token: TOKEN })
    now += 1
    expect(await redeem(late ?? '')).toMatchObject({ error: BAD_CODE })
  })
})

it('a refresh token works once and rotates, and the access token ends with its use and its time', async () => {
  const user = async ({ access_token }: Answer): Promise<number> =>
    (await call(sandbox, 'GET /user', { authorization: `Bearer ${access_token}` })).status
  const refresh = ({ refresh_token = '' }: Answer) =>
    redeem('', { grant_type: 'refresh_token', refresh_token })
  const first = await redeem(await getCode())
  expect(first).toEqual({
    access_token: TOKEN,
    scope: 'public_repo,read:user',
    token_type: 'bearer',
    expires_in: 28_800,
    refresh_token: expect.stringMatching(/^ghr_[0-9a-f]{40}$/),
    refresh_token_expires_in: 15_897_600,
  })
  const second = await refresh(first)
  expect([await user(first), await user(second)]).toEqual([401, 200])
  expect(await refresh(first)).toMatchObject({ error: 'bad_refresh_token' })
  now += 28_800_000
  expect(await user(second)).toBe(401)
  const third = await refresh(second)
  expect(await user(third)).toBe(200)
  now += 15_897_600_000
  expect(await refresh(third)).toMatchObject({ error: 'bad_refresh_token' })
})

it('a device that polls too often is slowed down by 5 s each time; its code ends after 15 minutes', async () => {
  const { device_code } = await deviceCodes()
  const says: unknown[] = []
  for (const wait of [0, 4999, 9999, 15_000, 900_000 - 29_998]) {
    now += wait
    says.push(await poll(device_code))
  }
  expect(says).toMatchObject([
    { error: 'authorization_pending' },
    { error: 'slow_down', interval: 10 },
    { error: 'slow_down', interval: 15 },
    { error: 'authorization_pending' },
    { error: 'expired_token' },
  ])
  expect(await poll('other')).toMatchObject({ error: 'incorrect_device_code' })
  expect(await poll(device_code, { client_id: 'other' })).toMatchObject({
    error: 'incorrect_client_credentials',
  })
})

it('the code of a device is entered in any case, with or without its hyphen, and has consonants only', async () => {
  for (const change of ['toLowerCase', 'toUpperCase'] as const) {
    const { user_code, device_code } = await deviceCodes()
    await device(`${sandbox.url}/login/device`, user_code[change]().replace('-', ''))
    expect(await poll(device_code)).toMatchObject({ access_token: TOKEN })
  }
  for (const { user_code } of await Promise.all(Array.from({ length: 20 }, deviceCodes)))
    expect(user_code).toMatch(/^(?:[^AEIOUY\W]{4}-?){2}$/)
})

it('a device asks by form or JSON, is answered by form unless Accept names JSON, and two errors have a status', async () => {
  const [form, asJson] = ['application/x-www-form-urlencoded', 'application/json']
  const ask = async (type: string, body: string, accept: string): Promise<unknown[]> => {
    const headers = { 'content-type': type, accept }
    const answer = await fetch(`${sandbox.url}/login/device/code`, { method: 'POST', headers, body })
    return [answer.status, answer.headers.get('content-type')?.split(';')[0], await answer.text()]
  }
  const codes = expect.stringMatching(/^device_code=\w+&user_code=/)
  expect(await ask(form, `client_id=${CLIENT.id}`, '*/*')).toEqual([200, form, codes])
  const object = expect.stringContaining('{"device_code":"')
  expect(await ask(asJson, JSON.stringify({ client_id: CLIENT.id }), asJson)).toEqual([200, asJson, object])
  expect(await ask(form, 'client_id=other', '*/*')).toEqual([404, form, 'error=Not+Found'])
  const { client_id } = await register('No device')
  const disabled = expect.stringContaining('"error":"device_flow_disabled"')
  expect(await ask(form, `client_id=${client_id}`, asJson)).toEqual([400, asJson, disabled])
})

it('scopes are asked for with spaces or commas and answered with commas, but not for an App', async () => {
  const { client_id, client_secret } = await register('Scopes')
  const answers = [
    await redeem(await getCode({ scope: 'repo,read:user admin:repo_hook' })),
    await redeem(await getCode({ scope: null })),
    await redeem(await getCode({ client_id, scope: 'repo' }), { client_id, client_secret }),
  ]
  const shown: unknown[] = []
  for (const { scope, access_token } of answers) {
    const { headers } = await call(sandbox, 'GET /user', { authorization: `Bearer ${access_token}` })
    shown.push([scope, headers.get('x-oauth-scopes')])
  }
  expect(shown).toEqual([
    ['repo,read:user,admin:repo_hook', 'repo, read:user, admin:repo_hook'],
    ['', ''],
    ['', null],
  ])
})

it('an application ends its own tokens, and no others', async () => {
  const { client_id, client_secret } = await register('Another')
  const { access_token } = await redeem(await getCode())
  const { id, secret } = CLIENT
  for (const [user, password, named, body, status] of [
    [id, 'wrong', id, { access_token }, 401],
    [id, secret, client_id, { access_token }, 404],
    [client_id, client_secret, client_id, { access_token }, 404],
    [id, secret, id, {}, 422],
    [id, secret, id, { access_token }, 204],
  ] as const) {
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    const answer = await call(sandbox, `DELETE /applications/${named}/token`, { authorization }, body)
    expect([user, password, named, answer.status]).toEqual([user, password, named, status])
  }
})

describe('an App', () => {
  it.each([
    ['no JSON', '{'],
    ['no object', '[]'],
    ['no homepage', manifest({ url: undefined })],
    ['a long name', manifest({ name: 'x'.repeat(35) })],
    ['a redirect to another machine', manifest({ redirect_url: 'https://example.com/' })],
    ['an unknown event', manifest({ default_events: ['pushed'] })],
    ['an unknown access', manifest({ default_permissions: { issues: 'all' } })],
    ['a hook without an address', manifest({ hook_attributes: { active: true } })],
    ['eleven callbacks', manifest({ callback_urls: Array.from({ length: 11 }, () => REDIRECT_URI) })],
  ])('is not registered from a manifest with %s', async (_, text) => {
    const answer = await post(sandbox, '/settings/apps/new', { manifest: text })
    expect([answer.status, await answer.text()]).toEqual([
      422,
      expect.stringContaining('No App was registered'),
    ])
  })

  it('is known by a token that it signed, of at most 10 minutes', async () => {
    const { id, client_id, pem } = await register('My relay')
    expect(pem).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n/)
    const seconds = NOW / 1000
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const ask = (claims: object, alg = 'RS256', key = createPrivateKey(pem)) => {
      const usual = { iat: seconds - 60, exp: seconds + 540, iss: id }
      const signed = `${part({ alg, typ: 'JWT' })}.${part({ ...usual, ...claims })}`
      const signature = sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')
      return answerOf(call(sandbox, 'GET /app', { authorization: `Bearer ${signed}.${signature}` }))
    }
    for (const iss of [id, client_id]) expect(await ask({ iss })).toMatchObject({ status: 200, body: { id } })
    const undecodable = 'A JSON web token could not be decoded'
    const { privateKey: other } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    expect(await ask({}, 'RS256', other)).toEqual(refusal(401, undecodable))
    expect(await ask({}, 'none')).toEqual(refusal(401, undecodable))
    for (const claims of [{ exp: seconds }, { exp: seconds + 601 }, { iat: seconds + 1 }, { iss: undefined }])
      expect(await ask(claims)).toMatchObject({
        status: 401,
        body: { message: expect.stringContaining('claim') },
      })
    expect(await ask({ iss: 999 })).toEqual(refusal(404, 'Integration not found'))
  })

  it('has a code that the list of requests does not show; nor does it show a query', async () => {
    const { code } = await register('Recorded')
    await fetch(authorizeUrl(sandbox))
    const { requests } = sandbox.state
    expect(requests.slice(-2)).toEqual([
      { method: 'POST', path: '/api/v3/app-manifests/{code}/conversions' },
      { method: 'GET', path: '/login/oauth/authorize' },
    ])
    expect(JSON.stringify(requests)).not.toContain(code)
  })
})
