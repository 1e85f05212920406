import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { missingScopes, TokenEndpoint, TokenError } from '../../src/auth/token-endpoint.js'
import { openHost } from '../../src/codehost/hosts.js'
import { CLIENT, NOW, shown, WEB } from './auth-rig.js'
import { type Answer, failure, type Reply, servers } from './codehost-rig.js'

const { oauth: GITHUB } = await openHost({ name: 'github', url: WEB })
const { oauth: GITEA } = await openHost({ name: 'gitea', url: WEB })
const ACCESS_TOKEN = 'gho_the-access-token'
const OLD = { refreshToken: 'ghr_Old1' }
const GOOD = { access_token: ACCESS_TOKEN, token_type: 'bearer' }
const json = (body: object, status = 200): Reply => ({ status, body })

function endpoint(reply: Answer, options = {}, oauth = GITHUB) {
  const { sendOnce, asked } = servers(() => reply)
  const at = new TokenEndpoint({ origin: WEB, oauth }, CLIENT, { sendOnce, timeLimit: 50, ...options })
  return { asked, at }
}

describe('a call to the token endpoint', () => {
  it('sends id and secret in the form, not as Basic, and repeats the redirect URI only where asked', async () => {
    const { at, asked } = endpoint(json(GOOD))
    await at.refresh(OLD)
    await at.refresh({ ...OLD, redirectUri: 'https://relay.example/callback' })
    const client = { client_id: CLIENT.id, client_secret: CLIENT.secret.reveal() }
    const form = { grant_type: 'refresh_token', refresh_token: 'ghr_Old1', ...client }
    const again = { ...form, redirect_uri: 'https://relay.example/callback' }
    expect(asked.map(({ form: sent }) => sent)).toEqual([form, again])
    expect(asked[0]).toMatchObject({ url: GITHUB.tokenEndpoint, method: 'POST' })
    expect(Object.keys(asked[0]?.headers ?? {})).not.toContain('authorization')
  })

  it.each<[string, Answer, Partial<TokenError>]>([
    ['429', json({ error: 'many' }, 429), { passing: true, message: 'the token endpoint answered 429' }],
    ['429 in HTML', { status: 429, body: 'slow down' }, { passing: true }],
    ['a form, as GitHub does unless asked', { body: `access_token=${ACCESS_TOKEN}` }, { passing: true }],
    ['half of JSON', { headers: { 'content-type': 'application/json' }, body: '{"a' }, { passing: true }],
    ['more than it should', json({ ...GOOD, x: 'x'.repeat(70_000) }), { passing: true }],
    ['nothing in time', 'hang', { passing: true, kind: 'provider_timeout' }],
    ['a reset', 'reset', { passing: true }],
    ['204', { status: 204 }, { passing: false, code: undefined }],
    [
      'a redirect',
      { status: 307, headers: { location: `${WEB}/moved?code=secret` } },
      { passing: false, code: undefined, message: expect.stringContaining(`(307) to ${WEB}/moved: if`) },
    ],
    ['no token', json({ token_type: 'bearer' }), { passing: false, code: undefined }],
    ['an empty error', json({ error: '' }), { passing: false, code: undefined }],
    ['a token with a space', json({ ...GOOD, access_token: 'a b' }), { passing: false, code: undefined }],
    ['one of 8193 characters', json({ ...GOOD, access_token: 'x'.repeat(8193) }), { passing: false }],
    ['scopes that are no text', json({ ...GOOD, scope: 7 }), { passing: false, code: undefined }],
    ['that it is busy', json({ error: 'temporarily_unavailable' }, 400), { passing: true }],
    ["GitHub's unknown client", json({ error: 'Not Found' }, 404), { code: '', passing: false }],
  ])('that is answered with %s', async (_, reply, wanted) => {
    const error: unknown = await endpoint(reply)
      .at.refresh(OLD)
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TokenError)
    expect(error).toMatchObject({ kind: 'provider_failed', ...wanted })
    expect(error).not.toHaveProperty('cause')
  })

  it('shows nothing of request or answer, whatever the answer says', async () => {
    const canary = fc.constantFrom(ACCESS_TOKEN, CLIENT.secret.reveal(), 'ghr_Old1', '\u{1b}[2J<script>')
    await fc.assert(
      fc.asyncProperty(canary, fc.constantFrom(200, 302, 400, 401, 500), async (secret, status) => {
        const errors = { error: secret, error_description: secret, error_uri: secret }
        const members = { ...errors, access_token: `${secret} ` }
        const headers = { 'www-authenticate': `Basic realm="${secret}"` }
        const call = endpoint({ status, headers, body: members }).at.refresh(OLD)
        const all = `${await shown(call)}${(await failure(call)).message}`
        for (const text of [ACCESS_TOKEN, CLIENT.secret.reveal(), 'ghr_Old1', '\u{1b}'])
          if (all.includes(text)) throw new Error(`it shows ${text}: ${all}`)
      }),
    )
    expect(await shown(endpoint('reset').at.refresh(OLD))).not.toContain('ghr_Old1')
  })

  it('is not made to an address that is neither https nor on this machine', async () => {
    const plain = { ...GITHUB, tokenEndpoint: 'http://git.example/token' }
    const { at, asked } = endpoint(json(GOOD), {}, plain)
    expect(await failure(at.refresh(OLD))).toMatchObject({ kind: 'provider_failed' })
    expect(asked).toEqual([])
  })
})

describe('the exchange of a code', () => {
  const sent = { state: 'a-state', redirectUri: 'http://127.0.0.1:8787/callback', verifier: 'v'.repeat(43) }
  const callback = (more: string) => new URLSearchParams(`code=c&state=a-state${more}`)

  it.each([
    ['without iss', GITHUB, '', true],
    ['of the known issuer', { ...GITHUB, issuer: WEB }, `&iss=${WEB}`, true],
    ['with any iss where none is known', GITEA, '&iss=https://elsewhere.example', true],
    ['with a code given twice', GITHUB, '&code=other', false],
    ['with a state given twice', GITHUB, '&state=a-state', false],
  ])('%s', async (_, oauth, more, succeeds) => {
    const { at, asked } = endpoint(json(GOOD), {}, oauth)
    const [{ status }] = await Promise.allSettled([at.exchange(callback(more), sent)])
    expect([status === 'fulfilled', asked.length]).toEqual([succeeds, succeeds ? 1 : 0])
  })
})

describe('an answer', () => {
  it.each([
    [undefined, undefined],
    [0, undefined],
    [0.5, 500],
    ['3600', 3_600_000],
    [1e300, 3650 * 86_400_000],
  ])('with expires_in %s', async (expires_in, lives) => {
    const options = { tokenTtl: 7, clock: () => NOW }
    const { expiresAt } = await endpoint(json({ ...GOOD, expires_in }), options).at.refresh(OLD)
    expect(expiresAt).toBe(NOW + (lives ?? 7))
    expect(new Date(expiresAt).toISOString()).toHaveLength(24)
  })

  it('has the scopes that it names, however they are separated, and unknown ones where it names none', async () => {
    const name = fc.stringMatching(/^[a-z:_]{1,12}$/)
    const separator = fc.constantFrom(' ', ',', ', ', '  ')
    await fc.assert(
      fc.asyncProperty(fc.array(name, { maxLength: 5 }), separator, async (names, by) => {
        const { scopes } = await endpoint(json({ ...GOOD, scope: names.join(by) })).at.refresh(OLD)
        const granted = names.length === 0 ? undefined : names
        expect(scopes).toEqual(granted)
        const isMissing = granted !== undefined && !granted.includes('repo')
        expect(missingScopes({ scopes: ['repo'] }, scopes)).toEqual(isMissing ? ['repo'] : [])
      }),
    )
  })
})

describe('whether a client is known', () => {
  it.each<[string, Answer, boolean | undefined]>([
    ['an invalid token', json({ error: 'bad_refresh_token' }), true],
    ['an invalid grant', json({ error: 'invalid_grant' }, 400), true],
    ['an invalid client', json({ error: 'invalid_client' }, 401), false],
    ["GitHub's wrong secret", json({ error: 'incorrect_client_credentials' }), false],
    ["GitHub's unknown id", json({ error: 'Not Found' }, 404), false],
    ['a token, as from a server that checks nothing', json(GOOD), true],
    ['nothing', 'reset', undefined],
    ['503', { status: 503 }, undefined],
    ['HTML', { status: 404, body: '<html>' }, undefined],
  ])('by %s', async (_, reply, known) => {
    expect(await endpoint(reply).at.knowsClient()).toBe(known)
  })
})
