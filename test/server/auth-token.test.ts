import { describe, expect, it } from 'vitest'
import { brief, JSON_TYPE, PRIVATE, refused, startRelay } from './auth-rig.js'

describe('DELETE /auth/token/:userId', () => {
  it('revokes a token at once, and succeeds when there is none', async () => {
    await using relay = await startRelay()
    relay.rig.server.grant = { refresh_token: 'ghr_1' }
    const { back, cookie } = await relay.agreed()
    await relay.ask('GET', back, { Cookie: cookie })
    const bearer = (await relay.rig.tokens.get('alice'))?.accessToken ?? ''
    expect(await relay.rig.tokens.findByBearer(bearer)).toMatchObject({ userId: 'alice' })

    for (let i = 0; i < 2; i++) {
      const answer = await relay.ask('DELETE', '/auth/token/alice')
      expect(brief(answer)).toEqual({ status: 200, type: JSON_TYPE, body: '{"ok":true}', ...PRIVATE })
      expect(await relay.rig.contents()).toEqual({})
      expect(await relay.rig.tokens.findByBearer(bearer)).toBeUndefined()
    }
  })

  it.each([
    '__proto__',
    'a%25b',
    '%25zz',
    '%F0%9F%98%80',
    '%F0%9F%98%80'.repeat(64),
    'a'.repeat(256),
    'a%3Fb%23c',
  ])('accepts the userId %s unchanged', async (userId) => {
    await using relay = await startRelay()
    const signIn = { accessToken: 't', expiresAt: relay.rig.time.now + 1000, origin: 'https://code.test' }
    await relay.rig.tokens.save(decodeURIComponent(userId), signIn)
    await relay.rig.tokens.save('bystander', signIn)
    expect((await relay.ask('DELETE', `/auth/token/${userId}?x=/y`)).status).toBe(200)
    expect(await relay.rig.database.store.list('token:')).toEqual(['token:bystander'])
  })

  it.each([
    ['0 bytes', ''],
    ['257 bytes', 'a'.repeat(257)],
    ['a slash', 'a%2Fb'],
    ['a slash in lower case', 'a%2fb'],
    ['a space', 'a%20b'],
    ['a control character', 'a%0Ab'],
    ['broken percent-encoding', '%zz'],
    ['bytes that are not UTF-8', '%FF'],
    ['half a character', '%ED%A0%BD'],
  ])('refuses a userId of %s', async (_, userId) => {
    await using relay = await startRelay()
    expect(brief(await relay.ask('DELETE', `/auth/token/${userId}`))).toEqual(refused(400, 'Invalid userId'))
  })

  it.each([
    ['.', 400],
    ['%2e', 400],
    ['..', 404],
    ['%2E%2e', 404],
  ])('never accepts %s as a userId: URLs resolve it', async (userId, status) => {
    await using relay = await startRelay()
    expect((await relay.ask('DELETE', `/auth/token/${userId}`)).status).toBe(status)
  })

  it.each(['get', 'write'] as const)(
    'answers 503 when the store fails (%s), and nothing is lost',
    async (method) => {
      await using relay = await startRelay()
      const { tokens, time, broken } = relay.rig
      await tokens.save('alice', { accessToken: 't', expiresAt: time.now + 1000, origin: 'o' })
      const before = await relay.rig.contents()
      broken.add(method)
      expect(brief(await relay.ask('DELETE', '/auth/token/alice'))).toEqual(refused(503, 'The store failed'))
      expect(await relay.rig.contents()).toEqual(before)
    },
  )
})
