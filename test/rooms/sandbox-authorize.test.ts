import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { authorizeUrl, landing, NOW, REDIRECT_URI, start } from './sandbox-rig.js'

let now = NOW
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await start({ clock: () => now })
})
afterAll(() => sandbox[Symbol.asyncDispose]())

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
