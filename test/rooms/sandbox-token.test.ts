import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import {
  answerOf,
  call,
  CLIENT,
  getCode,
  json,
  NOW,
  redeem,
  REDIRECT_URI,
  refusal,
  signIn,
  start,
  VERIFIER,
} from './sandbox-rig.js'

let now = NOW
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await start({ clock: () => now })
})
afterAll(() => sandbox[Symbol.asyncDispose]())

const TOKEN = expect.stringMatching(/^gho_[0-9a-f]{40}$/)

describe('the exchange of a code', () => {
  it('requires no PKCE, like GitHub, and no redirect URI', async () => {
    const code = await getCode(sandbox, { code_challenge: null, code_challenge_method: null })
    const answer = await redeem(sandbox, code, { code_verifier: null, redirect_uri: null })
    expect(await answer.json()).toMatchObject({ access_token: TOKEN })
  })
})

describe('a code is refused, with status 200,', () => {
  const badCode = ['bad_verification_code', 'The code passed is incorrect or expired.'] as const
  const badClient = [
    'incorrect_client_credentials',
    'The client_id and/or client_secret passed are incorrect.',
  ] as const
  const badUri = [
    'redirect_uri_mismatch',
    'The redirect_uri MUST match the registered callback URL for this application.',
  ] as const

  it.each([
    ['a wrong secret', { client_secret: 'wrong' }, badClient],
    ['no secret', { client_secret: null }, badClient],
    ['an unknown client', { client_id: 'other' }, badClient],
    ['a made-up code', { code: '0'.repeat(40) }, badCode],
    ['no code', { code: null }, badCode],
    ['a wrong redirect URI', { redirect_uri: `${REDIRECT_URI}/` }, badUri],
    ['a wrong verifier', { code_verifier: VERIFIER.replace('d', 'e') }, badCode],
    ['no verifier', { code_verifier: null }, badCode],
    [
      'a grant type it does not know',
      { grant_type: 'password' },
      ['unsupported_grant_type', 'The grant type is not supported.'],
    ],
  ])('for %s', async (_, changes, [error, error_description]) => {
    const answer = await answerOf(await redeem(sandbox, await getCode(sandbox), changes))
    expect(answer).toEqual({
      status: 200,
      body: { error, error_description, error_uri: expect.stringMatching(/^https:\/\/docs\.github\.com\//) },
    })
  })

  it('for a verifier without a challenge', async () => {
    const code = await getCode(sandbox, { code_challenge: null, code_challenge_method: null })
    expect(await (await redeem(sandbox, code)).json()).toMatchObject({ error: badCode[0] })
  })

  it('for a verifier that is too short, though its hash matches', async () => {
    const challenge = createHash('sha256').update('short').digest('base64url')
    const code = await getCode(sandbox, { code_challenge: challenge })
    expect(await (await redeem(sandbox, code, { code_verifier: 'short' })).json()).toMatchObject({
      error: badCode[0],
    })
  })

  it('when it was already used', async () => {
    const code = await getCode(sandbox)
    expect(await (await redeem(sandbox, code)).json()).toMatchObject({ access_token: TOKEN })
    expect(await (await redeem(sandbox, code)).json()).toMatchObject({ error: badCode[0] })
  })

  it('when it was already used with the wrong verifier', async () => {
    const code = await getCode(sandbox)
    await redeem(sandbox, code, { code_verifier: 'x'.repeat(43) })
    expect(await (await redeem(sandbox, code)).json()).toMatchObject({ error: badCode[0] })
  })

  it('but not used up by a request with a wrong client secret', async () => {
    const code = await getCode(sandbox)
    await redeem(sandbox, code, { client_secret: 'wrong' })
    expect(await (await redeem(sandbox, code)).json()).toMatchObject({ access_token: TOKEN })
  })

  it('after 10 minutes', async () => {
    const [early, late] = [await getCode(sandbox), await getCode(sandbox)]
    now += 599_999
    expect(await (await redeem(sandbox, early)).json()).toMatchObject({ access_token: TOKEN })
    now += 1
    expect(await (await redeem(sandbox, late)).json()).toMatchObject({ error: badCode[0] })
  })
})

describe('tokens that expire', () => {
  interface Pair {
    readonly access_token: string
    readonly refresh_token: string
  }

  it('have a refresh token that works once and rotates', async () => {
    let now = NOW
    await using sandbox = await start({
      clock: () => now,
      lifetimes: { access: 28_800, refresh: 15_897_600 },
    })
    const user = async ({ access_token }: Pair): Promise<number> =>
      (await call(sandbox, 'GET /user', { authorization: `Bearer ${access_token}` })).status
    const refresh = async ({ refresh_token }: Pair) =>
      json<Pair>(redeem(sandbox, '', { grant_type: 'refresh_token', refresh_token }))

    const first = await json<Pair>(redeem(sandbox, await getCode(sandbox)))
    expect(first).toEqual({
      access_token: TOKEN,
      scope: 'public_repo,read:user',
      token_type: 'bearer',
      expires_in: 28_800,
      refresh_token: expect.stringMatching(/^ghr_[0-9a-f]{40}$/),
      refresh_token_expires_in: 15_897_600,
    })
    const second = await refresh(first)
    expect(second).toMatchObject({ access_token: TOKEN, scope: 'public_repo,read:user' })
    expect([await user(first), await user(second)]).toEqual([401, 200])
    expect(await refresh(first)).toMatchObject({ error: 'bad_refresh_token' })

    now += 28_800_000
    expect(await user(second)).toBe(401)
    const third = await refresh(second)
    expect(await user(third)).toBe(200)
    now += 15_897_600_000
    expect(await refresh(third)).toMatchObject({ error: 'bad_refresh_token' })
  })
})

describe('revocation by the application', () => {
  const basic = `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`
  const revoke = (body: unknown, authorization = basic, client = CLIENT.id): Promise<Response> =>
    call(sandbox, `DELETE /applications/${client}/token`, { authorization }, body)

  it('ends the token at once, and responds 404 the second time', async () => {
    const headers = await signIn(sandbox)
    const access_token = headers.authorization.replace('Bearer ', '')
    const answer = await revoke({ access_token })
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    const user = await call(sandbox, 'GET /user', headers)
    expect(await answerOf(user)).toEqual(refusal(401, 'Bad credentials'))
    expect(await answerOf(await revoke({ access_token }))).toEqual(refusal(404, 'Not Found'))
  })
})
