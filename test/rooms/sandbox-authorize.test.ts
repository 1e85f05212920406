import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import {
  authorizeUrl,
  CLIENT,
  consent,
  landing,
  NOW,
  postConsent,
  REDIRECT_URI,
  start,
} from './sandbox-rig.js'

let now = NOW
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await start({ clock: () => now })
})
afterAll(() => sandbox[Symbol.asyncDispose]())

describe('the consent page', () => {
  it('shows the application, the scopes, the account and the redirect URI', async () => {
    const page = await fetch(authorizeUrl(sandbox))
    const text = (await page.text()).replaceAll(/\s+/g, ' ')
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(text).toContain(`<strong>${CLIENT.id}</strong>`)
    expect(text).toContain('your account <strong>octo</strong>')
    expect(text).toContain('<small>(public_repo)</small>')
    expect(text).toContain('<small>(read:user)</small>')
    expect(text).toContain(`<code>${REDIRECT_URI}</code>`)
  })

  it('runs no script, loads nothing, cannot be framed, and may redirect its form to any site', async () => {
    const { headers } = await fetch(authorizeUrl(sandbox))
    const policy = headers.get('content-security-policy')?.replace(/sha256-[^']+/, 'sha256-…')
    expect(policy).toBe(
      "default-src 'none'; style-src 'sha256-…'; form-action 'self' http: https:; base-uri 'none'; frame-ancestors 'none'",
    )
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
  })

  it('escapes values from the URL', async () => {
    const page = await fetch(
      authorizeUrl(sandbox, { redirect_uri: 'http://localhost/"><script>alert(1)</script>' }),
    )
    expect(page.status).toBe(200)
    expect(await page.text()).not.toContain('<script')
  })
})

describe('the decision', () => {
  it('Authorize returns to the application with a code, its state and the issuer', async () => {
    const { status, to, query } = landing(await consent(sandbox))
    expect({ status, to, query }).toEqual({
      status: 302,
      to: REDIRECT_URI,
      query: {
        code: expect.stringMatching(/^[0-9a-f]{40}$/),
        state: 'st&te=é',
        iss: `${sandbox.url}/login/oauth`,
      },
    })
  })

  it('keeps the query of the redirect URI, and adds no state', async () => {
    const redirect = `${REDIRECT_URI}?a=1&b=%20`
    const { query } = landing(await consent(sandbox, { redirect_uri: redirect, state: null }))
    expect(Object.keys(query)).toEqual(['a', 'b', 'code', 'iss'])
    expect(query).toMatchObject({ a: '1', b: ' ' })
  })

  it('Cancel returns with access_denied', async () => {
    expect(landing(await consent(sandbox, {}, '0'))).toEqual({
      status: 302,
      to: REDIRECT_URI,
      query: {
        error: 'access_denied',
        error_description: 'The user has denied your application access.',
        state: 'st&te=é',
        iss: `${sandbox.url}/login/oauth`,
      },
    })
  })

  it.each([
    ['without the anti-forgery token', {}],
    ['with an empty one', { authenticity_token: '' }],
    ['with a made-up one', { authenticity_token: '0'.repeat(40) }],
  ])('is refused %s', async (_, fields) => {
    expect(await errorPage(await postConsent(sandbox, { ...fields, authorize: '1' }))).toEqual(refused(422))
  })

  it('works once per page', async () => {
    const page = await (await fetch(authorizeUrl(sandbox))).text()
    const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
    const decide = () => postConsent(sandbox, { authenticity_token: token, authorize: '1' })
    expect((await decide()).status).toBe(302)
    expect(await errorPage(await decide())).toEqual(refused(422))
  })

  it('works for 10 minutes', async () => {
    const page = await (await fetch(authorizeUrl(sandbox))).text()
    const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
    now += 600_000
    expect(
      await errorPage(await postConsent(sandbox, { authenticity_token: token, authorize: '1' })),
    ).toEqual(refused(422))
  })
})

describe('an invalid request', () => {
  it.each([
    ['an unknown client', { client_id: 'other' }, 404],
    ['no client', { client_id: null }, 404],
    ['no redirect URI', { redirect_uri: null }, 400],
    ['a redirect URI that is no address', { redirect_uri: '/callback' }, 400],
    ['another computer', { redirect_uri: 'http://example.com/callback' }, 400],
    ['a name that only looks local', { redirect_uri: 'http://localhost.example.com/' }, 400],
    ['an address that only looks local', { redirect_uri: 'http://127.0.0.1@example.com/' }, 400],
    ['credentials in the redirect URI', { redirect_uri: 'http://user:pass@127.0.0.1/' }, 400],
    ['a fragment in the redirect URI', { redirect_uri: `${REDIRECT_URI}#x` }, 400],
    ['a script as redirect URI', { redirect_uri: 'javascript://localhost/%0aalert(1)' }, 400],
  ])('%s: is shown to the user, not sent to the redirect URI', async (_, changes, status) => {
    const answer = await fetch(authorizeUrl(sandbox, changes), { redirect: 'manual' })
    expect(answer.headers.get('location')).toBeNull()
    expect(await errorPage(answer)).toEqual(refused(status))
  })

  it('a repeated parameter: is shown to the user', async () => {
    expect(await errorPage(await fetch(`${authorizeUrl(sandbox)}&redirect_uri=http://localhost/`))).toEqual(
      refused(400),
    )
  })

  it.each([
    [
      'response_type',
      { response_type: 'token' },
      'unsupported_response_type',
      'Only the response type "code" is supported.',
    ],
    ['a plain challenge', { code_challenge_method: 'plain' }, ...PKCE()],
    ['a challenge without method', { code_challenge_method: null }, ...PKCE()],
    ['a method without challenge', { code_challenge: null }, ...PKCE()],
    ['a challenge of the wrong length', { code_challenge: 'abc' }, ...PKCE()],
  ])('%s: is sent to the application', async (_, changes, error, error_description) => {
    const answer = await fetch(authorizeUrl(sandbox, changes), { redirect: 'manual' })
    expect(landing(answer)).toEqual({
      status: 302,
      to: REDIRECT_URI,
      query: { error, error_description, state: 'st&te=é', iss: `${sandbox.url}/login/oauth` },
    })
  })

  it.each(['http://localhost:1/', 'https://app.localhost/x', 'http://127.9.9.9/', 'http://[::1]:5/'])(
    '%s is an address of this computer',
    async (redirect) => {
      expect((await fetch(authorizeUrl(sandbox, { redirect_uri: redirect }))).status).toBe(200)
    },
  )
})

function PKCE(): [string, string] {
  return ['invalid_request', 'Only a code challenge made with S256 is supported.']
}

/** Status, content type and heading of an error page. */
async function errorPage(answer: Response): Promise<unknown[]> {
  const [, heading] = /<h1>(.*)<\/h1>/.exec(await answer.text()) ?? []
  return [answer.status, answer.headers.get('content-type'), heading]
}

function refused(status: number): unknown[] {
  return [status, 'text/html; charset=utf-8', 'This sign-in cannot continue']
}
