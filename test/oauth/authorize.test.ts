import { createHash } from 'node:crypto'
import { calculatePKCECodeChallenge } from 'oauth4webapi'
import { describe, expect, it } from 'vitest'
import { PROVIDER_NAMES } from '../../src/base/settings.js'
import { createProvider } from '../../src/providers/open.js'
import { CLIENT_ID, s256 } from '../helpers/authorization-server.js'
import { createRig, MINUTE, NOW, REDIRECT_URI } from './rig.js'

describe('authorize', () => {
  it('builds the authorize URL and stores the sign-in', async () => {
    await using rig = await createRig()
    const { location, cookie } = await rig.oauth.authorize('alice')

    const address = new URL(location)
    const { state = '', code_challenge, ...query } = Object.fromEntries(address.searchParams)
    expect(address.origin + address.pathname).toBe(rig.server.endpoints.authorizationEndpoint)
    expect(query).toEqual({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      scope: 'public_repo',
      code_challenge_method: 'S256',
    })
    // 32 bytes each.
    expect(Buffer.from(state, 'base64url')).toHaveLength(32)
    expect(Buffer.from(cookie.value, 'base64url')).toHaveLength(32)
    expect(cookie).toEqual({
      name: `relay_oauth_${sha256(state).slice(0, 8)}`,
      value: cookie.value,
      path: '/auth/github/callback',
      secure: false,
      maxAge: 600,
    })

    const stored = await rig.contents()
    const verifier = String(Object(stored[`oauth-state:${state}`]).verifier)
    expect(verifier).toMatch(/^[\w-]{43}$/)
    expect(s256(verifier)).toBe(code_challenge)
    expect(stored).toEqual({
      [`oauth-state:${state}`]: {
        provider: 'github',
        origin: rig.server.url,
        userId: 'alice',
        verifier,
        redirectUri: REDIRECT_URI,
      },
    })
  })

  it('derives the challenge of RFC 7636 appendix B from its verifier', async () => {
    expect(await calculatePKCECodeChallenge('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe(
      'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    )
  })

  it('removes the sign-in after ten minutes', async () => {
    await using rig = await createRig()
    await rig.oauth.authorize('alice')
    rig.time.now = NOW + 10 * MINUTE - 1
    expect(Object.keys(await rig.contents())).toHaveLength(1)
    rig.time.now = NOW + 10 * MINUTE
    expect(await rig.contents()).toEqual({})
  })

  it('sets a Secure cookie for the path of the public callback URL', async () => {
    await using rig = await createRig({ redirectUri: () => 'https://relay.test/hooks/auth/github/callback' })
    const { cookie } = await rig.oauth.authorize('alice')
    expect(cookie).toMatchObject({ path: '/hooks/auth/github/callback', secure: true })
  })

  it('keeps the query of the authorize endpoint and requests no scope when none is needed', async () => {
    await using rig = await createRig()
    const endpoints = {
      ...rig.server.endpoints,
      authorizationEndpoint: 'https://code.test/a?b=c',
      scopes: [],
    }
    await using other = await createRig({
      provider: { name: 'github', origin: 'https://code.test', oauth: endpoints },
    })
    const { location } = await other.oauth.authorize('alice')
    expect(location).toMatch(/^https:\/\/code\.test\/a\?b=c&response_type=code&/)
    expect(new URL(location).searchParams.has('scope')).toBe(false)
  })

  it.each(PROVIDER_NAMES)(
    'asks %s for no OpenID Connect, whose id_token relay could not check',
    async (name) => {
      await using rig = await createRig({ provider: createProvider({ name, url: 'https://code.test' }) })
      const { location } = await rig.oauth.authorize('alice')
      expect(new URL(location).searchParams.get('scope')?.split(' ')).not.toContain('openid')
    },
  )

  it('never gives the same state, verifier or cookie twice', async () => {
    await using rig = await createRig()
    const all = await Promise.all(Array.from({ length: 50 }, () => rig.oauth.authorize('alice')))
    const values = all.flatMap(({ location, cookie }) => {
      const { state = '', code_challenge = '' } = Object.fromEntries(new URL(location).searchParams)
      return [state, code_challenge, cookie.value]
    })
    expect(new Set(values).size).toBe(150)
  })

  it('names the missing settings when no client is configured, and stores nothing', async () => {
    await using rig = await createRig({ client: undefined })
    await expect(rig.oauth.authorize('alice')).rejects.toMatchObject({
      kind: 'not_configured',
      message: 'Sign-in is not configured: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
    })
    expect(await rig.contents()).toEqual({})
  })

  it('fails when the sign-in cannot be stored', async () => {
    await using rig = await createRig()
    rig.broken.add('put')
    await expect(rig.oauth.authorize('alice')).rejects.toMatchObject({ kind: 'storage' })
  })
})

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
