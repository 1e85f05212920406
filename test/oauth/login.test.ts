import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { awaitLogin, parseLogin } from '../../src/oauth/login.js'
import { answerJson } from '../helpers/authorization-server.js'
import { createRig, failure, MINUTE, NOW, SIGNED_IN, signedIn, TOKEN_TTL, type Rig } from './rig.js'

const LOGIN = 'A-login_of-our0wn'

/** A sign-in that `awaitLogin` waits for. */
async function begin(rig: Rig) {
  const { location, cookie } = await rig.oauth.authorize('alice', LOGIN)
  rig.jar.set(cookie.name, cookie.value)
  return rig.server.approve(location)
}

describe('the nonce of an awaited sign-in', () => {
  it.each(['A'.repeat(16), 'z'.repeat(64), 'abcABC_-0123456789'])('may be %s', (text) => {
    expect(parseLogin(text)).toBe(text)
  })

  it.each([
    '',
    'A'.repeat(15),
    'A'.repeat(65),
    `${'A'.repeat(16)}\n`,
    'A'.repeat(16) + 'é',
    'a b'.repeat(9),
    '../'.repeat(9),
  ])('may not be %j', (text) => {
    expect(() => parseLogin(text)).toThrow(new RelayError('bad_request', 'Invalid login'))
  })
})

describe('awaitLogin', () => {
  it('returns success once the token is stored', async () => {
    await using rig = await createRig()
    const approved = await begin(rig)
    const waiting = awaitLogin(rig.parts.store, LOGIN, { clock: () => rig.time.now })
    await rig.come(approved)
    expect(await rig.tokens.get('alice')).toMatchObject({ userId: 'alice' })
    expect(await waiting).toEqual(SIGNED_IN)
    expect(await rig.contents()).toEqual(signedIn(rig, NOW + TOKEN_TTL))
  })

  it('finds the published outcome for five minutes', async () => {
    await using rig = await createRig()
    await rig.come(await begin(rig))
    const row = { [`login:${LOGIN}`]: { v: 1, ...SIGNED_IN } }
    expect(await rig.contents()).toEqual({ ...signedIn(rig, NOW + TOKEN_TTL), ...row })
    rig.time.now = NOW + 5 * MINUTE - 1
    expect(await rig.contents()).toMatchObject(row)
    rig.time.now = NOW + 5 * MINUTE
    expect(await rig.contents()).toEqual(signedIn(rig, NOW + TOKEN_TTL))
  })

  it.each<[string, (rig: Rig, query: URLSearchParams) => unknown]>([
    ['access_denied', (_, query) => (query.delete('code'), query.set('error', 'access_denied'))],
    ['exchange_failed', (_, query) => query.set('iss', 'https://elsewhere.test')],
    ['provider_unavailable', (rig) => (rig.server.misbehave = answerJson(503, {}))],
    ['storage_failed', (rig) => rig.broken.add('update')],
    ['invalid_state', (rig) => rig.jar.clear()],
    ['invalid_state', (_, query) => query.append('state', 'another')],
  ])('learns that it failed: %s', async (reason, change) => {
    await using rig = await createRig()
    const query = await begin(rig)
    change(rig, query)
    expect(await rig.come(query)).toEqual(failure(reason))
    expect(await rig.contents()).toEqual({ [`login:${LOGIN}`]: { v: 1, ...failure(reason) } })
    expect(await awaitLogin(rig.parts.store, LOGIN)).toEqual(failure(reason))
    expect(await rig.contents()).toEqual({})
  })

  it('ignores callbacks with another state', async () => {
    await using rig = await createRig()
    await begin(rig)
    await rig.come({ state: 'A'.repeat(43), code: 'x' })
    expect(Object.keys(await rig.contents()).filter((key) => key.startsWith('login:'))).toEqual([])
  })

  it('gets no outcome when the store fails, which does not change the sign-in', async () => {
    await using rig = await createRig()
    const query = await begin(rig)
    rig.broken.add('put')
    expect(await rig.come(query)).toEqual(SIGNED_IN)
    expect(await rig.contents()).toEqual(signedIn(rig, NOW + TOKEN_TTL))
    expect(rig.log.lines).toEqual([
      'error The outcome of this sign-in could not be stored, so relay login does not see it',
    ])
  })

  it('gives up after five minutes', async () => {
    await using rig = await createRig()
    const clock = () => (rig.time.now += 2 * MINUTE)
    await expect(awaitLogin(rig.parts.store, LOGIN, { clock })).rejects.toMatchObject({
      kind: 'timed_out',
      message: 'No sign-in was completed within 5 minutes',
      exitCode: 7,
    })
  })

  it('may be interrupted', async () => {
    await using rig = await createRig()
    const controller = new AbortController()
    const waiting = awaitLogin(rig.parts.store, LOGIN, { signal: controller.signal })
    const reason = new RelayError('cancelled', 'Interrupted')
    controller.abort(reason)
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', cause: reason })
  })

  it.each([null, { v: 2, auth: 'success', userId: 'alice' }, { v: 1, auth: 'error', reason: 'other' }])(
    'does not take %j for an outcome',
    async (row) => {
      await using rig = await createRig()
      await rig.parts.store.put(`login:${LOGIN}`, row)
      await expect(awaitLogin(rig.parts.store, LOGIN)).rejects.toMatchObject({ kind: 'storage' })
    },
  )
})
