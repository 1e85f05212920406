import { describe, expect, it } from 'vitest'
import {
  ACCESS_TOKEN,
  AuthorizationServer,
  CLIENT_ID,
  CLIENT_SECRET,
  s256,
} from '../helpers/authorization-server.js'
import { createRig, NOW, REDIRECT_URI, SIGNED_IN, signedIn, TOKEN_TTL } from './rig.js'

describe('a successful sign-in', () => {
  it('calls the token endpoint according to the RFCs and stores the token', async () => {
    await using rig = await createRig()
    rig.server.grant = { expires_in: 28_800, scope: 'public_repo,gist' }
    const { location, approved } = await rig.begin()

    expect(await rig.come(approved)).toEqual(SIGNED_IN)

    const [request] = rig.server.requests
    const verifier = request?.form['code_verifier'] ?? ''
    expect(rig.server.requests).toEqual([
      {
        method: 'POST',
        path: '/login/oauth/access_token',
        contentType: 'application/x-www-form-urlencoded;charset=UTF-8',
        accept: 'application/json',
        authorization: undefined,
        form: {
          grant_type: 'authorization_code',
          code: approved.get('code'),
          redirect_uri: REDIRECT_URI,
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
          code_verifier: verifier,
        },
      },
    ])
    expect(s256(verifier)).toBe(new URL(location).searchParams.get('code_challenge'))
    expect(await rig.contents()).toEqual(signedIn(rig, NOW + 28_800_000))
    expect(await rig.tokens.findByBearer(ACCESS_TOKEN)).toEqual({
      userId: 'alice',
      accessToken: ACCESS_TOKEN,
      expiresAt: NOW + 28_800_000,
      origin: rig.server.url,
    })
    expect(rig.log.lines).toEqual([])
  })

  it.each([
    { expires_in: '3600', lives: 3_600_000 },
    { expires_in: 0.5, lives: 500 },
    { expires_in: undefined, lives: TOKEN_TTL },
    { expires_in: 0, lives: TOKEN_TTL },
    { expires_in: 1e300, lives: 3650 * 86_400_000 },
  ])(
    'lets a token live as long as expires_in says, within reason: $expires_in',
    async ({ expires_in, lives }) => {
      await using rig = await createRig()
      rig.server.grant = { expires_in }
      const { approved } = await rig.begin()
      expect(await rig.come(approved)).toEqual(SIGNED_IN)
      expect(await rig.contents()).toEqual(signedIn(rig, NOW + lives))
    },
  )

  it('does not store a refresh token in the token record', async () => {
    await using rig = await createRig()
    rig.server.grant = { expires_in: 60, refresh_token: 'ghr_1', refresh_token_expires_in: 120 }
    const { approved } = await rig.begin()
    expect(await rig.come(approved)).toEqual(SIGNED_IN)

    const refresh = { refreshToken: 'ghr_1', origin: rig.server.url }
    const { 'unconfirmed:alice': unconfirmed, ...rest } = signedIn(rig, NOW + 60_000)
    const lasting = { 'refresh:alice': refresh, 'unconfirmed:alice': unconfirmed }
    expect(await rig.contents()).toEqual({ ...rest, ...lasting })
    rig.time.now = NOW + 61_000
    expect(await rig.contents()).toEqual(lasting)
    rig.time.now = NOW + 120_000
    expect(await rig.contents()).toEqual({})
  })

  it('replaces the token of an earlier sign-in', async () => {
    await using rig = await createRig()
    rig.server.grant = { access_token: 'gho_first' }
    expect(await rig.come((await rig.begin()).approved)).toEqual(SIGNED_IN)
    rig.server.grant = {}
    expect(await rig.come((await rig.begin()).approved)).toEqual(SIGNED_IN)
    expect(await rig.contents()).toEqual(signedIn(rig, NOW + TOKEN_TTL))
  })

  it('works for two interleaved sign-ins of one browser', async () => {
    await using rig = await createRig()
    const alice = await rig.begin('alice')
    rig.server.grant = { access_token: 'gho_bob' }
    const bob = await rig.begin('bob')
    expect(await rig.come(bob.approved)).toEqual({ auth: 'success', userId: 'bob' })
    rig.server.grant = {}
    expect(await rig.come(alice.approved)).toEqual(SIGNED_IN)
    expect((await rig.tokens.get('alice'))?.accessToken).toBe(ACCESS_TOKEN)
    expect((await rig.tokens.get('bob'))?.accessToken).toBe('gho_bob')
  })

  it('repeats the redirect URI of the authorize request', async () => {
    let port = 8787
    await using rig = await createRig({ redirectUri: () => `http://127.0.0.1:${port}/auth/github/callback` })
    const { approved } = await rig.begin()
    port = 9000
    expect(await rig.come(approved)).toEqual(SIGNED_IN)
    expect(rig.server.requests[0]?.form['redirect_uri']).toBe(REDIRECT_URI)
  })

  it('works without iss (Gitea, and GitHub before 2026)', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    approved.delete('iss')
    expect(await rig.come(approved)).toEqual(SIGNED_IN)
  })

  it.each(['https://elsewhere.test', ''])(
    'ignores iss "%s" of a provider whose issuer is not known',
    async (iss) => {
      await using server = await AuthorizationServer.start()
      const oauth = { ...server.endpoints, issuer: undefined }
      await using rig = await createRig({ provider: { name: 'gitea', origin: server.url, oauth } })
      const { location, state } = await rig.begin()
      const code = server.approve(location).get('code') ?? ''
      expect(await rig.come({ code, state, iss })).toEqual(SIGNED_IN)
    },
  )

  it('logs the scopes that the user did not grant', async () => {
    await using rig = await createRig()
    rig.server.grant = { scope: 'gist,read:user' }
    const { approved } = await rig.begin()
    expect(await rig.come(approved)).toEqual(SIGNED_IN)
    expect(rig.log.lines).toEqual([
      'warn The provider did not grant public_repo: some actions may be refused',
    ])
  })

  it.each(['', 'public_repo gist', 'gist,public_repo'])(
    'has nothing to say of the scopes "%s"',
    async (scope) => {
      await using rig = await createRig()
      rig.server.grant = { scope }
      const { approved } = await rig.begin()
      expect(await rig.come(approved)).toEqual(SIGNED_IN)
      expect(rig.log.lines).toEqual([])
    },
  )
})
