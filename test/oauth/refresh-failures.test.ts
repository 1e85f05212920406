import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { renew } from '../../src/oauth/refresh.js'
import { answerJson, answerText, CLIENT_ID, CLIENT_SECRET } from '../helpers/authorization-server.js'
import { createRenewRig, failed, github, NEW, OLD, records } from './refresh-rig.js'
import { MINUTE, NOW } from './rig.js'

const OLD_TOKEN = { accessToken: OLD.accessToken, expiresAt: NOW + MINUTE / 2 }

describe('a provider that refuses a renewal', () => {
  it.each([
    [200, 'bad_refresh_token'],
    [400, 'unauthorized_client'],
    [400, 'invalid_grant'],
  ])(
    'with status %i and %s: the refresh token is forgotten, and signing in is asked for',
    async (status, error) => {
      await using rig = await createRenewRig()
      rig.server.misbehave = answerJson(status, {
        error,
        error_description: OLD.refreshToken,
        error_uri: 'x',
      })
      expect(await failed(rig)).toEqual({
        kind: 'unauthenticated',
        message: `The token of alice could not be renewed (the provider answered ${error}); sign in again: relay login`,
        leaked: [],
      })
      expect(await rig.contents()).toEqual(records(rig.server.url, OLD_TOKEN))

      rig.time.now = NOW + MINUTE
      expect(await failed(rig)).toMatchObject({ kind: 'unauthenticated' })
      expect(rig.server.requests).toHaveLength(1)
    },
  )

  it.each([200, 400])('an unknown client, with status %i: nothing changes', async (status) => {
    await using rig = await createRenewRig()
    rig.server.refusalStatus = status
    const client = { id: CLIENT_ID, secret: new Secret('wrong') }
    expect(await failed(rig, renew({ ...rig.parts, client }, 'alice'))).toEqual({
      kind: 'not_configured',
      message:
        'The token of alice could not be renewed (the provider answered invalid_client); check RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
      leaked: [],
    })
    expect(await rig.contents()).toEqual(records(rig.server.url, OLD_TOKEN, OLD.refreshToken))
    rig.server.misbehave = answerJson(200, { error: 'incorrect_client_credentials' })
    expect(await failed(rig)).toMatchObject({ kind: 'not_configured' })
  })
})

describe('a provider with an invalid response: nothing changes', () => {
  const HTML = 'the response of the token endpoint is not JSON'
  it.each([
    ['502', answerJson(502, github(NEW)), 'the token endpoint answered 502'],
    ['HTML', answerText(200, '<html>'), HTML],
    ['too many requests', answerText(429, 'slow down'), HTML],
    [
      'no token',
      answerJson(200, { token_type: 'bearer' }),
      'the token endpoint gave no token (OAUTH_INVALID_RESPONSE)',
    ],
    [
      'a token that is none',
      answerJson(200, { ...github(NEW), access_token: 'a b' }),
      'the token is not well formed',
    ],
    [
      'more than it should',
      answerText(200, 'x'.repeat(70_000)),
      'the token endpoint answered more than 65536 bytes',
    ],
    [
      'that it is busy',
      answerJson(400, { error: 'temporarily_unavailable' }),
      'the provider answered temporarily_unavailable',
    ],
    ['secrets', answerJson(400, { error: CLIENT_SECRET }), 'the provider gave an unknown error'],
  ])('%s', async (_, misbehave, why) => {
    await using rig = await createRenewRig()
    rig.server.misbehave = misbehave
    expect(await failed(rig)).toEqual({
      kind: 'provider_failed',
      message: `The token of alice could not be renewed (${why})`,
      leaked: [],
    })
    expect(await rig.contents()).toEqual(records(rig.server.url, OLD_TOKEN, OLD.refreshToken))
    rig.server.misbehave = undefined
    expect((await rig.renew()).accessToken).toBe(NEW.accessToken)
  })

  it('a connection that is reset or refused', async () => {
    await using rig = await createRenewRig()
    rig.server.misbehave = (response) => response.socket?.resetAndDestroy()
    expect(await failed(rig)).toMatchObject({ kind: 'provider_failed', leaked: [] })
    await rig.server[Symbol.asyncDispose]()
    expect(await failed(rig)).toEqual({
      kind: 'provider_failed',
      message:
        'The token of alice could not be renewed (the token endpoint could not be reached (connection refused))',
      leaked: [],
    })
    expect(await rig.contents()).toEqual(records(rig.server.url, OLD_TOKEN, OLD.refreshToken))
  })

  it.each([
    ['answer', () => {}],
    ['body', (response: ServerResponse) => void response.writeHead(200).write('{')],
  ])('one whose %s does not come in time', async (_, misbehave) => {
    await using rig = await createRenewRig()
    rig.server.misbehave = misbehave
    expect(await failed(rig, renew({ ...rig.parts, exchangeTimeout: 100 }, 'alice'))).toEqual({
      kind: 'provider_timeout',
      message: 'The token of alice could not be renewed (the token endpoint did not answer in time)',
      leaked: [],
    })
    expect(await rig.contents()).toEqual(records(rig.server.url, OLD_TOKEN, OLD.refreshToken))
  })
})

describe('a store that fails', () => {
  it('before the request to the provider: nothing is lost', async () => {
    await using rig = await createRenewRig()
    rig.broken.add('update')
    expect(await failed(rig)).toEqual({ kind: 'storage', message: 'The store failed', leaked: [] })
    expect(rig.server.requests).toEqual([])
    rig.broken.clear()
    expect((await rig.renew()).accessToken).toBe(NEW.accessToken)
  })

  it('after the response: reports it', async () => {
    await using rig = await createRenewRig()
    rig.server.misbehave = (response) => {
      rig.broken.add('update')
      answerJson(200, github(NEW))(response)
    }
    expect(await failed(rig)).toEqual({ kind: 'storage', message: 'The store failed', leaked: [] })
  })
})

describe('a change during the request to the provider', () => {
  it('that revokes the token: it is not stored again', async () => {
    await using rig = await createRenewRig()
    rig.server.misbehave = (response) =>
      void rig.tokens.revoke('alice').then(() => answerJson(200, github(NEW))(response))
    expect(await failed(rig)).toEqual({
      kind: 'unauthenticated',
      message: 'The token of alice was revoked meanwhile; sign in again: relay login',
      leaked: [],
    })
    expect(await rig.contents()).toEqual({})
  })

  it.each([
    ['renewed', answerJson(200, github(NEW))],
    ['refused', answerJson(200, { error: 'bad_refresh_token' })],
  ])('is a new sign-in: it stays, and the %s result is dropped', async (_, answer) => {
    await using rig = await createRenewRig()
    const signIn = {
      accessToken: 'gho_signed_in',
      refreshToken: 'ghr_signed_in',
      expiresAt: NOW + MINUTE * 9,
    }
    rig.server.misbehave = (response) =>
      void rig.tokens.save('alice', { ...signIn, origin: rig.server.url }).then(() => answer(response))
    expect((await rig.renew()).accessToken).toBe('gho_signed_in')
    expect(await rig.contents()).toEqual(records(rig.server.url, signIn, 'ghr_signed_in'))
  })

  it('that signs in at another provider: its token is not returned', async () => {
    await using rig = await createRenewRig()
    const signIn = { accessToken: 'gho_signed_in', expiresAt: NOW + MINUTE * 9 }
    rig.server.misbehave = (response) =>
      void rig.tokens
        .save('alice', { ...signIn, origin: 'https://elsewhere.test' })
        .then(() => answerJson(200, github(NEW))(response))
    expect(await failed(rig)).toMatchObject({ kind: 'unauthenticated', leaked: [] })
    expect(await rig.contents()).toEqual(records('https://elsewhere.test', signIn))
  })
})
